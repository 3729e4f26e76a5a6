"""``requirements/need-debian`` with the real apt and dpkg, on a tree of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

NEED = Path(__file__).parents[3] / "requirements/need-debian"
pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("apt-get"), reason="not root, or no apt-get here"),
]

Need = Callable[..., subprocess.CompletedProcess[str]]


def _deb(repository: Path, name: str, depends: str = "") -> None:
    """A package that says no more than its name; and its paragraph for the repository's index."""
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: t <t@example>\nDescription: test\n"
    if depends:
        control += f"Depends: {depends}\n"
    folder = repository / name
    (folder / "DEBIAN").mkdir(parents=True)
    (folder / "DEBIAN/control").write_text(control)
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", folder], check=True, capture_output=True)
    deb = (repository / f"{name}.deb").read_bytes()
    with (repository / "Packages").open("a") as index:
        index.write(f"{control}Filename: ./{name}.deb\nSize: {len(deb)}\nSHA256: {sha256(deb).hexdigest()}\n\n")


@pytest.fixture
def debian(tmp_path: Path) -> Need:
    """Runs it on a machine that has nothing but apt and a repository of ``one``, ``two`` and ``broken``."""
    for name in ("etc/apt/apt.conf.d", "var/lib/dpkg/updates", "var/lib/dpkg/info", "lists/partial", "cache", "sbin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").touch()
    repository = tmp_path / "repository"
    for name, depends in (("one", ""), ("two", ""), ("broken", "nowhere")):
        _deb(repository, name, depends)
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] file:{repository} ./\n")
    config = tmp_path / "apt.conf"
    config.write_text(
        f'Dir::Etc "{tmp_path}/etc/apt";\nDir::Etc::sourcelist "{tmp_path}/sources.list";\n'
        f'Dir::State::lists "{tmp_path}/lists";\nDir::State::status "{tmp_path}/var/lib/dpkg/status";\n'
        f'Dir::Cache "{tmp_path}/cache";\nDPkg::Options:: "--root={tmp_path}";\nDPkg::Options:: "--log=/dev/null";\n'
        'APT::Sandbox::User "root";\nDir::Log::Terminal "";\nDir::Log::History "";\nAPT::Architecture "amd64";\n'
    )
    # policy-rc.d of this machine is not touched: /usr/sbin is another
    script = f"""
    set -e
    mount -t tmpfs tmpfs {tmp_path}/sbin
    mkdir {tmp_path}/sbin/upper {tmp_path}/sbin/work
    mount -t overlay sbin -o lowerdir=/usr/sbin,upperdir={tmp_path}/sbin/upper,workdir={tmp_path}/sbin/work /usr/sbin
    exec setpriv --reuid "$0" sh -s -- "$@" <{NEED}
    """
    environment = {**os.environ, "APT_CONFIG": str(config), "DPKG_ADMINDIR": str(tmp_path / "var/lib/dpkg")}

    def run(*packages: str, uid: int = 0) -> subprocess.CompletedProcess[str]:
        argv = ["unshare", "--mount", "sh", "-c", script, str(uid), *packages]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)

    return run


def installed(machine: Path) -> set[str]:
    """What dpkg has installed there."""
    argv = ["dpkg-query", f"--admindir={machine}/var/lib/dpkg", "-W", "-f", "${Package} ${db:Status-Status}\n"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    return {line.removesuffix(" installed") for line in listed if line.endswith(" installed")}


def test_what_is_missing_is_installed_after_the_lists_are_fetched(debian: Need, tmp_path: Path) -> None:
    done = debian("one", "two")  # there are no lists: apt-get update comes first

    assert (done.returncode, done.stderr) == (0, "installing one two\n")
    assert installed(tmp_path) == {"one", "two"}


def test_nothing_is_done_where_all_is_there(debian: Need) -> None:
    debian("one")

    done = debian("one")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("lacked", ["python3-nowhere", "broken"])
def test_what_apt_has_not_is_named_and_the_rest_is_installed(debian: Need, tmp_path: Path, lacked: str) -> None:
    done = debian("one", lacked, "two")

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"installing one {lacked} two",
        f"missing Debian packages (apt-get has no candidate, or not what it depends on): {lacked}",
    ]
    assert installed(tmp_path) == {"one", "two"}


def test_who_is_not_root_is_told_the_command(debian: Need) -> None:
    done = debian("one", "two", uid=65534)

    told = "missing Debian packages (not root); as root: apt-get install --no-install-recommends one two\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_what_apt_says_is_shown_where_it_fails(debian: Need, tmp_path: Path) -> None:
    (tmp_path / "repository/two.deb").write_bytes(b"not what the index says")

    done = debian("one", "two")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "missing Debian packages (apt-get failed); as root: apt-get install --no-install-recommends one two"
    )
