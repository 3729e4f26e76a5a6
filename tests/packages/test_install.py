"""The Debian package on a fresh Debian: installed, in service, upgraded, removed, purged; nothing is left.

`make test-packages` builds the package and runs this; `make test` does not, see CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from support.debian_host import DebianHost
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
    device = tree.stat().st_dev
    for folder, names, plain in os.walk(tree):
        # not into what is mounted there
        paths = {name: Path(folder, name) for name in names}
        names[:] = [name for name, path in paths.items() if path.is_symlink() or path.stat().st_dev == device]
        for name in (*names, *plain):
            path = str(Path(folder, name)).removeprefix(str(tree))
            if not ELSEWHERE.match(path) or "plumbline" in path:
                found.add(path)
    return found


def ours(tree: Path) -> list[str]:
    """Everything whose path names us, wherever; dpkg's own list of packages and the package itself apart."""
    own = ("/root/", "/var/log/", "/var/lib/dpkg/", "/var/cache/apt", "/proc", "/sys", "/tmp", "/dev", "/run/systemd")
    return sorted(path for path in files(tree) if "plumbline" in path and not path.startswith(own))


def answer(host: DebianHost, path: str) -> str:
    """The daemon's, as soon as there is one."""
    try:
        return host.get(f"http://127.0.0.1:10047{path}", within_s=60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{journal(host)[-2000:]}") from None


def journal(host: DebianHost) -> str:
    """What the service said."""
    return host.run("journalctl", "-u", "plumbline", "--no-pager", "-o", "cat")


def test_from_a_bare_debian_to_metrics_and_back(minimal: DebianHost, deb: Path) -> None:
    shutil.copy(deb, minimal.root / "root")
    package = f"/root/{deb.name}"
    assert minimal.call("apt-get", "update", "-q").returncode == 0
    before = files(minimal.root)

    done = minimal.call(*INSTALL, package)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    assert "/opt/plumbline" in ours(minimal.root)
    assert minimal.call("plumbline", "--version").stdout.startswith("plumbline ")
    assert minimal.call("plumbline", "config", "check", "/etc/plumbline/plumbline.yaml").returncode == 0
    # docs/upgrade.md: a release that is not installed yet looks at the configuration
    looked = f"dpkg -x {package} /root/new; PYTHONPATH=$(echo /root/new/opt/plumbline/lib/python3*/site-packages)"
    looked += " python3 -m plumbline config check /etc/plumbline/plumbline.yaml; code=$?; rm -r /root/new; exit $code"
    assert minimal.call("sh", "-c", looked).returncode == 0
    checked = minimal.call("plumbline", "check", "--json", "--wait", "1s")
    assert checked.returncode in (0, 1, 2), checked.stderr
    assert json.loads(checked.stdout)["findings"]
    script = r"""
        plumbline serve --web.listen-address 127.0.0.1:0 --storage.path /root/state >/root/said 2>/root/log & pid=$!
        for _ in $(seq 300); do grep -q 'first page of metrics is available' /root/log && break; sleep 0.2; done
        python3 -c 'import re, urllib.request as r
print(r.urlopen(re.search(r"http://\S+/metrics", open("/root/said").read())[0]).read().decode())'
        kill "$pid"; wait "$pid"
    """
    served = minimal.call("sh", "-c", script)
    assert served.returncode == 0, served.stderr
    scrape = Scrape.of_text(served.stdout.strip() + "\n")
    assert scrape.get("plumbline_collector_success", collector="softnet") == 1

    shown = minimal.call("plumbline", "uninstall", "--storage.path", "/root/state")
    assert "rm /root/state/canary/canary.dat" in shown.stdout, shown.stdout + shown.stderr
    assert "apt-get purge plumbline" in shown.stdout
    assert (minimal.root / "root/state/canary").is_dir()
    assert minimal.call("plumbline", "uninstall", "--storage.path", "/root/state", "--apply").returncode == 0
    assert not (minimal.root / "root/state").exists()
    assert minimal.call("apt-get", "purge", "-y", "-q", "plumbline").returncode == 0
    assert minimal.call("apt-get", "autoremove", "--purge", "-y", "-q").returncode == 0
    assert ours(minimal.root) == []
    assert files(minimal.root) - before == set()


def test_life_of_the_service(machine: DebianHost, deb: Path) -> None:
    """No network: what the package needs is in it or in Debian. systemd is real, so are its sandbox and its user."""
    shutil.copy(deb, machine.root / "root")
    package = f"/root/{deb.name}"
    before = files(machine.root)

    machine.run("dpkg", "-i", package)
    assert machine.run("systemctl", "is-enabled", "plumbline") == "enabled\n"
    scrape = Scrape.of_text(answer(machine, "/metrics?profile=full"))
    failed = {each.labels["collector"] for each in scrape.series("plumbline_collector_success") if each.value == 0}
    assert failed <= {"osd"}, failed
    assert "plumbline" in answer(machine, "/").lower()
    shown = machine.run("systemctl", "show", "plumbline", "-p", "NRestarts,User,DynamicUser")
    assert {"NRestarts=0", "DynamicUser=yes"} <= set(shown.split())
    assert machine.run("getent", "passwd", "plumbline", check=False).split(":")[2:3] != ["0"]
    assert not (machine.root / "etc/passwd").read_text().count("plumbline")

    # a configuration that somebody changed outlives an upgrade and a removal; so does the state
    config = machine.root / "etc/plumbline/plumbline.yaml"
    config.write_text(config.read_text().replace("name: canary\n", "name: my-canary\n"))
    machine.run("dpkg", "-i", "--force-confold", package)
    answer(machine, "/-/ready")
    assert 'probe="my-canary"' in answer(machine, "/metrics")
    machine.run("systemctl", "disable", "--now", "plumbline")
    machine.run("dpkg", "-i", "--force-confold", package)
    assert machine.run("systemctl", "is-enabled", "plumbline", check=False) == "disabled\n"
    assert machine.run("systemctl", "is-active", "plumbline", check=False) == "inactive\n"
    machine.run("systemctl", "enable", "--now", "plumbline")
    answer(machine, "/-/ready")

    machine.run("dpkg", "--remove", "plumbline")
    left = {path for path in ours(machine.root) if not path.startswith("/var/lib/private/plumbline/")}
    assert left >= {"/etc/plumbline/plumbline.yaml", "/etc/default/plumbline", "/var/lib/plumbline"}
    assert not [path for path in left if path.startswith(("/opt", "/usr", "/lib"))]
    assert (machine.root / "var/lib/private/plumbline/my-canary").is_dir()
    assert machine.run("systemctl", "is-active", "plumbline", check=False) == "inactive\n"

    machine.run("dpkg", "--purge", "plumbline")
    assert ours(machine.root) == []
    assert files(machine.root) - before == set()
    assert before - files(machine.root) == set()
    assert machine.run("systemctl", "list-unit-files", "plumbline.service", "--no-legend", check=False) == ""


HANDED = r"""
import os
from plumbline.probes.object.s3_credentials import open_credentials, parse_credentials
directory = os.environ["CREDENTIALS_DIRECTORY"]
assert directory == "/run/credentials/plumbline.service", directory
keys = parse_credentials(os.fdopen(open_credentials(directory + "/s3-keys")).read(), source="keys")
assert keys.secret_key == "xyzzy" and os.getuid() != 0, keys
try:
    open("/etc/plumbline/s3-keys")
except PermissionError:
    print("handed and closed")
"""


def test_drop_ins_and_secrets_under_a_real_systemd(machine: DebianHost, deb: Path) -> None:
    shutil.copy(deb, machine.root / "root")
    machine.run("dpkg", "-i", f"/root/{deb.name}")
    answer(machine, "/-/ready")
    etc = machine.root / "etc"
    drop_ins = etc / "systemd/system/plumbline.service.d"
    drop_ins.mkdir()
    (etc / "plumbline/s3-keys").write_text("access_key = abc\nsecret_key = xyzzy\n")
    (etc / "plumbline/s3-keys").chmod(0o600)
    (machine.root / "usr/share/plumbline/handed.py").write_text(HANDED)
    # the unit says `serve`, so the drop-in asks in its place whether what it was handed can be read, and by whom
    (drop_ins / "asked.conf").write_text(
        "[Service]\nExecStartPre=/opt/plumbline/bin/python3 /usr/share/plumbline/handed.py\n"
    )
    for name in ("s3", "raw-devices", "pcie", "disk-latency"):
        (drop_ins / f"{name}.conf").symlink_to(f"/usr/share/plumbline/systemd/{name}.conf")
    with (etc / "plumbline/plumbline.yaml").open("a") as config:
        config.write(
            "  - {type: s3, name: rgw, endpoint: 'http://127.0.0.1:1', bucket: our-bucket,"
            " credentials_file: 'credential:s3-keys'}\n"
        )
    machine.run("plumbline", "config", "check", "/etc/plumbline/plumbline.yaml")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", "plumbline")
    answer(machine, "/-/ready")

    assert "handed and closed" in journal(machine)
    assert "xyzzy" not in journal(machine) + answer(machine, "/metrics") + answer(machine, "/")
    pid = machine.run("systemctl", "show", "plumbline", "-p", "MainPID", "--value").strip()
    status = machine.run("cat", f"/proc/{pid}/status")
    held = int(re.search(r"^CapEff:\s*(\w+)$", status, re.M)[1], 16)
    assert held == 1 << 21, f"{held:x}"  # CAP_SYS_ADMIN of pcie.conf; those for BPF were given up, or never counted
    # the administrator's command finds the same copies
    ran = machine.call("plumbline", "probe", "run", "rgw", "--config.file", "/etc/plumbline/plumbline.yaml",
                       "--storage.path", "/tmp/plumbline-by-hand")  # fmt: skip
    assert "credentials" not in ran.stdout + ran.stderr
    assert "refused" in (ran.stdout + ran.stderr).lower() or "127.0.0.1:1" in ran.stdout + ran.stderr

    # purge takes the links away, not the administrator's own file
    machine.run("dpkg", "--purge", "plumbline")
    assert (machine.root / "etc/plumbline/s3-keys").exists()
    assert [path.name for path in drop_ins.iterdir()] == ["asked.conf"]


def test_a_newer_configuration_and_state_are_refused_in_one_line(machine: DebianHost, deb: Path) -> None:
    shutil.copy(deb, machine.root / "root")
    machine.run("dpkg", "-i", f"/root/{deb.name}")
    answer(machine, "/-/ready")
    machine.run("systemctl", "stop", "plumbline")
    state = machine.root / "var/lib/private/plumbline/state.json"
    newer = b'{"schema_version": 99, "probes": {}}'
    state.write_bytes(newer)
    machine.run("systemctl", "start", "plumbline")
    deadline = time.monotonic() + 30
    while "written by a newer Plumbline" not in journal(machine):
        assert time.monotonic() < deadline, journal(machine)
        time.sleep(0.5)
    assert "Traceback" not in journal(machine)
    assert state.read_bytes() == newer
