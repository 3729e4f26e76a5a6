"""The RPM: what is in it, what it asks for, and a real transaction of rpm: installed, upgraded, erased.

On Debian, in a copy of this machine's root: no Red Hat system is at hand, so neither dnf, nor SELinux, nor its systemd.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.packages, pytest.mark.needs_root]


def query(rpm: Path, *words: str) -> list[str]:
    """What rpm says of the package, by lines."""
    done = subprocess.run(["rpm", "-qp", *words, str(rpm)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def digests(rpm: Path) -> dict[str, str]:
    """Path → SHA-256 of each file; links and folders apart."""
    rows = (line.rsplit(" ", 10) for line in query(rpm, "--dump"))
    return {path: digest for path, _, _, digest, mode, *_ in rows if mode.startswith("0100")}


def test_it_holds_what_the_debian_package_holds(rpm: Path, deb: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", str(deb), str(tmp_path)], check=True)
    others = {
        f"/{path.relative_to(tmp_path)}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tmp_path.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    own = re.compile(r"/INSTALLER$|/plumbline\.service$|lintian|README\.Debian|/changelog\.gz$|/copyright$"
                     r"|README\.rpm|^/usr/share/licenses/plumbline/")  # fmt: skip
    mine = digests(rpm)
    assert {path: text for path, text in mine.items() if not own.search(path)} == {
        path: text for path, text in others.items() if not own.search(path)
    }
    unit = hashlib.sha256((ROOT / "systemd/plumbline.service").read_bytes()).hexdigest()
    assert mine["/usr/lib/systemd/system/plumbline.service"] == unit
    assert {"/usr/share/licenses/plumbline/LICENSE", "/usr/share/licenses/plumbline/DEPENDENCIES"} <= mine.keys()


def test_all_is_roots_and_only_commands_run(rpm: Path) -> None:
    for line in query(rpm, "--qf", r"[%{FILENAMES} %{FILEMODES:octal} %{FILEUSERNAME}:%{FILEGROUPNAME}\n]"):
        name, mode, owner = line.rsplit(" ", 2)
        assert owner == "root:root", line
        if mode.startswith("100"):
            assert mode == ("100755" if name.startswith("/opt/plumbline/bin/") else "100644"), line


def test_configuration_is_kept_and_documents_are_marked(rpm: Path) -> None:
    assert query(rpm, "--configfiles") == ["/etc/default/plumbline", "/etc/plumbline/plumbline.yaml"]
    assert "/usr/share/doc/plumbline/README.rpm.md" in query(rpm, "--docfiles")


def test_it_asks_for_its_python_and_a_c_library_and_offers_itself(rpm: Path, deb: Path) -> None:
    depends = subprocess.run(["dpkg-deb", "-f", str(deb), "Depends"], capture_output=True, text=True, check=True).stdout
    (minor,) = re.findall(r"python3 \(>= (3\.\d+)\)", depends)
    requires = query(rpm, "--requires")
    assert f"/usr/bin/python{minor}" in requires
    # RHEL 9 has glibc 2.34
    needed = [tuple(map(int, found.split("."))) for line in requires for found in re.findall(r"GLIBC_([0-9.]+)", line)]
    assert (2, 14) <= max(needed) <= (2, 34)
    assert [line for line in requires if "dist(" in line or "/opt/" in line] == []
    strange = {line.partition("(")[0].partition(" ")[0] for line in query(rpm, "--provides")} - {"plumbline", "config"}
    assert strange == set()


def test_the_builder_left_no_trace(rpm: Path) -> None:
    assert query(rpm, "--qf", "%{BUILDHOST} %{PACKAGER} %{VENDOR} %{DISTRIBUTION}") == [
        "plumbline.invalid (none) (none) (none)"
    ]
    times = set(query(rpm, "--qf", r"%{BUILDTIME}\n[%{FILEMTIMES}\n]"))
    assert len(times) == 1


TRANSACTIONS = r"""
set -eu
folder=$1 package=$2
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
mount -t proc proc "$folder/root/proc"
cp "$package" "$folder/root/plumbline.rpm"
mount -t tmpfs tmpfs "$folder/root/tmp"
mount -t tmpfs tmpfs "$folder/root/run"
exec chroot "$folder/root" sh -eu <<'INSIDE'
list() { find /opt/plumbline /etc/plumbline /usr/share/plumbline -name __pycache__ 2>/dev/null | wc -l; }
rpm --initdb
rpm -i --nodeps /plumbline.rpm
echo "installed: $(plumbline --version)"
plumbline config check /etc/plumbline/plumbline.yaml >/dev/null
rpm -V --nodeps plumbline
systemctl is-enabled plumbline.service | sed 's/^/service: /'
test "$(list)" -gt 10 && echo "compiled"
echo '# mine' >>/etc/plumbline/plumbline.yaml
rpm -U --nodeps --force /plumbline.rpm
tail -n 1 /etc/plumbline/plumbline.yaml
echo "upgraded: $(plumbline --version)"
rpm -e plumbline
test "$(list)" = 0 && echo "no bytecode"
test ! -e /opt/plumbline && echo "no environment"
ls /usr/lib/systemd/system/plumbline.service 2>/dev/null || true
find /etc/systemd/system -name 'plumbline*'
find /etc/plumbline -type f
INSIDE
"""


def test_a_transaction_of_rpm(rpm: Path, tmp_path: Path) -> None:
    if Path("/opt/plumbline").exists():
        pytest.skip("/opt/plumbline exists: this machine has a Plumbline of its own")
    probe = "mkdir u w r; mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w r"
    (tmp_path / "probe").mkdir()
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", probe], cwd=tmp_path / "probe", capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("no overlay of this machine's root can be mounted here")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", TRANSACTIONS, "sh", str(tmp_path), str(rpm)],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    version = query(rpm, "--qf", "%{VERSION}")[0]
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        f"installed: plumbline {version}",
        "service: enabled",  # as Debian's presets say
        "compiled",
        "# mine",
        f"upgraded: plumbline {version}",
        "no bytecode",
        "no environment",
        "/etc/plumbline/plumbline.yaml.rpmsave",
    ]
