"""The Debian package on a fresh Debian 12: installed, in service, upgraded, removed, purged; nothing is left.

`make test-packages` builds the package and runs this; `make test` does not, see CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.machine import Machine, in_tree
from support.scraped import Scrape

pytestmark = [pytest.mark.packages, pytest.mark.needs_root]

INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends")
ELSEWHERE = re.compile(
    r"/(proc|sys|dev|run|tmp)(/|$)|/var/(lib/(dpkg|apt|systemd|private)|cache/(apt|ldconfig|debconf)|log|tmp)(/|$)"
    r"|/root/|/etc/(machine-id|\.pwd\.lock|ld\.so\.cache|mtab)$|.*/__pycache__(/|$)"
)
"""What the system itself keeps books in; bytecode only where it is not ours, see :func:`files`."""


def files(tree: Path) -> set[str]:
    """Every file, folder and link that belongs to somebody."""
    found = set()
    for folder, names, plain in os.walk(tree):
        for name in (*names, *plain):
            path = str(Path(folder, name)).removeprefix(str(tree))
            if not ELSEWHERE.match(path) or "plumbline" in path:
                found.add(path)
    return found


def ours(tree: Path) -> list[str]:
    """Everything whose path names us, wherever; dpkg's own list of packages and the package itself apart."""
    own = ("/root/", "/var/log/", "/var/lib/dpkg/", "/var/cache/apt", "/proc", "/sys", "/tmp", "/dev", "/run/systemd")
    return sorted(path for path in files(tree) if "plumbline" in path and not path.startswith(own))


def test_from_a_bare_debian_to_metrics_and_back(minimal: Path, deb: Path) -> None:
    shutil.copy(deb, minimal / "root")
    package = f"/root/{deb.name}"
    assert in_tree(minimal, "apt-get", "update", "-q").returncode == 0
    before = files(minimal)

    done = in_tree(minimal, *INSTALL, package)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    assert in_tree(minimal, "plumbline", "--version").stdout.startswith("plumbline ")
    assert in_tree(minimal, "plumbline", "config", "check", "/etc/plumbline/plumbline.yaml").returncode == 0
    checked = in_tree(minimal, "plumbline", "check", "--json", "--wait", "1s")
    assert checked.returncode in (0, 1, 2), checked.stderr
    assert json.loads(checked.stdout)["findings"]
    script = r"""
        plumbline serve --web.listen-address 127.0.0.1:0 --storage.path /root/state >/root/said 2>/root/log & pid=$!
        for _ in $(seq 300); do grep -q metrics /root/said && break; sleep 0.2; done
        python3 -c 'import re, urllib.request as r
print(r.urlopen(re.search(r"http://\S+/metrics", open("/root/said").read())[0]).read().decode())'
        kill "$pid"; wait "$pid"
    """
    served = in_tree(minimal, "sh", "-c", script)
    assert served.returncode == 0, served.stderr
    scrape = Scrape.of_text(served.stdout.strip() + "\n")
    assert scrape.get("plumbline_collector_success", collector="softnet") == 1

    shown = in_tree(minimal, "plumbline", "uninstall", "--storage.path", "/root/state")
    assert "rm /root/state/canary/canary.dat" in shown.stdout, shown.stdout + shown.stderr
    assert "apt-get purge plumbline" in shown.stdout
    assert (minimal / "root/state/canary").is_dir()
    assert in_tree(minimal, "plumbline", "uninstall", "--storage.path", "/root/state", "--apply").returncode == 0
    assert not (minimal / "root/state").exists()
    assert in_tree(minimal, "apt-get", "purge", "-y", "-q", "plumbline").returncode == 0
    assert in_tree(minimal, "apt-get", "autoremove", "--purge", "-y", "-q").returncode == 0
    assert ours(minimal) == []
    assert files(minimal) - before == set()


def test_life_of_the_service(machine: Machine, deb: Path) -> None:
    """No network: what the package needs is in it or in Debian. systemd is real, so are its sandbox and its user."""
    shutil.copy(deb, machine.root / "root")
    package = f"/root/{deb.name}"
    before = files(machine.root)

    machine.run("dpkg", "-i", package)
    assert machine.run("systemctl", "is-enabled", "plumbline").stdout == "enabled\n"
    scrape = Scrape.of_text(machine.get("/metrics"))
    failed = {each.labels["collector"] for each in scrape.series("plumbline_collector_success") if each.value == 0}
    assert failed <= {"osd"}, failed
    assert "plumbline" in machine.get("/").lower()
    shown = machine.run("systemctl", "show", "plumbline", "-p", "NRestarts,User,DynamicUser").stdout
    assert {"NRestarts=0", "DynamicUser=yes"} <= set(shown.split())
    assert machine.run("getent", "passwd", "plumbline", check=False).stdout.split(":")[2:3] != ["0"]
    assert not (machine.root / "etc/passwd").read_text().count("plumbline")

    # a configuration that somebody changed outlives an upgrade and a removal; so does the state
    config = machine.root / "etc/plumbline/plumbline.yaml"
    config.write_text(config.read_text().replace("name: canary\n", "name: my-canary\n"))
    machine.run("dpkg", "-i", "--force-confold", package)
    machine.get("/-/ready")
    assert 'probe="my-canary"' in machine.get("/metrics")
    machine.run("systemctl", "disable", "--now", "plumbline")
    machine.run("dpkg", "-i", "--force-confold", package)
    assert machine.run("systemctl", "is-enabled", "plumbline", check=False).stdout == "disabled\n"
    assert machine.run("systemctl", "is-active", "plumbline", check=False).stdout == "inactive\n"
    machine.run("systemctl", "enable", "--now", "plumbline")
    machine.get("/-/ready")

    machine.run("dpkg", "--remove", "plumbline")
    left = {path for path in ours(machine.root) if not path.startswith("/var/lib/private/plumbline/")}
    assert left >= {"/etc/plumbline/plumbline.yaml", "/etc/default/plumbline", "/var/lib/plumbline"}
    assert not [path for path in left if path.startswith(("/opt", "/usr", "/lib"))]
    assert (machine.root / "var/lib/private/plumbline/my-canary").is_dir()
    assert machine.run("systemctl", "is-active", "plumbline", check=False).stdout == "inactive\n"

    machine.run("dpkg", "--purge", "plumbline")
    assert ours(machine.root) == []
    assert files(machine.root) - before == set()
    assert before - files(machine.root) == set()
    assert machine.run("systemctl", "list-unit-files", "plumbline.service", "--no-legend", check=False).stdout == ""


def test_two_builds_are_the_same_bytes(deb: Path, tmp_path: Path) -> None:
    import sys

    root = Path(__file__).parents[2]
    environment = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "TMPDIR": str(tmp_path)}
    subprocess.run(
        [str(root / ".venv/bin/python") if (root / ".venv").exists() else sys.executable,
         "-m", "deploy.debian", "--out", str(tmp_path / "again")],
        cwd=root, env=environment, check=True, capture_output=True, umask=0o077, timeout=600,
    )  # fmt: skip
    again = tmp_path / "again" / deb.name
    assert again.read_bytes() == deb.read_bytes()
