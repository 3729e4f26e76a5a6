"""``deploy/ansible`` on real hosts: a Debian whose PID 1 is systemd, and a chroot without a service manager.

By ``make test-ansible``, in the order in which they stand: each test goes on where the one before left the host. What
Ansible said it changed is printed (``-s``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deploy.packages.project import RELEASES, project_version

from support.ansible_runs import Ansible, Run
from support.debian_host import SERVER, SUITE, DebianHost, debian_host, missing

REPOSITORY = Path(__file__).parents[2]
COLLECTION = REPOSITORY / "deploy/ansible"
PROGRAMS = os.environ.get("PLUMBLINE_ANSIBLE", "")
SECRET = "s3cr3t-of-the-test"  # no other text has it
PORT = 10047

pytestmark = [
    pytest.mark.skipif(not PROGRAMS, reason="takes minutes and an Ansible: make test-ansible"),
    pytest.mark.skipif(bool(missing()), reason=str(missing())),
]

CANARY = {"type": "canary", "name": "canary"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A short path, which the client's control socket needs."""
    made = Path(tempfile.mkdtemp(prefix="pl-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def ansible(folder: Path) -> Ansible:
    (folder / "a").mkdir()
    return Ansible(Path(PROGRAMS).absolute(), COLLECTION, folder / "a")


@pytest.fixture(scope="module")
def stor01() -> Iterator[DebianHost]:
    with debian_host(SERVER, systemd=True) as host:
        yield host


@pytest.fixture(scope="module")
def chroot() -> Iterator[DebianHost]:
    # it reaches packages as this machine does
    settings = [name for name in ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt") if Path(name).exists()]
    with debian_host(SERVER, systemd=False, copies=settings) as host:
        yield host


@pytest.fixture(scope="module")
def wheel() -> str:
    """What ``make test-ansible`` built."""
    return str(max((REPOSITORY / "dist").glob("plumbline-*.whl"), key=lambda file: file.stat().st_mtime))


@pytest.fixture(scope="module")
def wanted(folder: Path, wheel: str) -> dict[str, Any]:
    """Variables of an air-gapped node: the wheels of all dependencies come from the controller, hashes checked."""
    wheels = folder / "wheels"
    lock = REPOSITORY / "requirements/run.txt"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--python-version",
            f"3.{RELEASES[SUITE].python}",
            "-r",
            lock,
            "-d",
            wheels,
        ],
        check=True,
    )
    return {
        "plumbline_wheel": wheel,
        "plumbline_wheelhouse": str(wheels),
        "plumbline_host_packages": [],
        "plumbline_config": {"probes": [CANARY]},
    }


def said(name: str, run: Run, *, changed: int | None = None) -> Run:
    """Print the figures; the run has to have worked, and to have changed as many things as asked for."""
    print(f"\n  {name}: ok={run.ok} changed={run.changed} failed={run.failed}", end="")
    assert run.code == 0, run.output[-4000:]
    assert "WARNING" not in run.output, run.output
    if changed is not None:
        assert run.changed == changed, run.changed_tasks
    return run


def main_pid(host: DebianHost) -> str:
    return host.run("systemctl", "show", "--property=MainPID", "--value", "plumbline").strip()


def told(host: DebianHost) -> list[str]:
    """What systemd said about the service, in order."""
    journal = host.run("journalctl", "-u", "plumbline", "-o", "cat", "SYSLOG_IDENTIFIER=systemd")
    return re.findall(r"^(Started|Reloaded|Stopped) plumbline\.service", journal, re.MULTILINE)


def metrics(host: DebianHost, port: int = PORT) -> str:
    # the address listens a moment before the first page is there
    return host.get(f"http://127.0.0.1:{port}/metrics?profile=full", within_s=30)


def left(host: DebianHost) -> list[str]:
    """Everything that has our name, but for what systemd's journal and Ansible itself keep."""
    search = "find / -xdev ( -path /proc -o -path /sys -o -path /run/log ) -prune -o -iname *plumbline* -print"
    return host.run(*search.split()).split()


# --- a node with systemd


def test_check_mode_on_a_fresh_node_fails_at_nothing_and_writes_nothing(
    ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]
) -> None:
    run = said("fresh, --check", ansible.play("node", stor01.inventory(), wanted, "--check", "--diff"))

    assert run.changed > 5
    assert left(stor01) == []


def test_the_first_run_brings_a_service_that_answers(
    ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]
) -> None:
    run = said("first run", ansible.play("node", stor01.inventory(), wanted))

    assert "Restart plumbline" in run.changed_tasks
    assert "Reload plumbline" not in run.changed_tasks
    assert stor01.run("systemctl", "is-enabled", "plumbline") == "enabled\n"
    assert "plumbline_build_info" in metrics(stor01)
    assert {"/opt/plumbline", "/etc/plumbline"} <= set(left(stor01))


def test_the_second_run_and_check_mode_change_nothing(
    ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]
) -> None:
    said("second run", ansible.play("node", stor01.inventory(), wanted), changed=0)
    said("installed, --check", ansible.play("node", stor01.inventory(), wanted, "--check", "--diff"), changed=0)


def test_a_changed_configuration_is_reloaded_not_restarted(
    ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]
) -> None:
    before, journal = main_pid(stor01), told(stor01)
    wanted["plumbline_config"] = {"collectors": {"softnet": False}, "probes": [CANARY]}
    assert "plumbline_softnet" in metrics(stor01)

    run = said("configuration", ansible.play("node", stor01.inventory(), wanted), changed=2)

    assert run.changed_tasks == ("Write the configuration", "Reload plumbline")
    assert main_pid(stor01) == before
    assert told(stor01)[len(journal) :] == ["Reloaded"]
    assert "plumbline_softnet" not in metrics(stor01)


def test_a_bad_configuration_does_not_get_there(ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]) -> None:
    before = stor01.read("/etc/plumbline/plumbline.yaml")

    run = ansible.play("node", stor01.inventory(), {**wanted, "plumbline_config": {"probez": []}}, "--tags", "config")

    assert run.code != 0
    assert "probez" in run.output
    assert stor01.read("/etc/plumbline/plumbline.yaml") == before


def test_a_secret_is_a_credential_and_in_no_output(
    ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]
) -> None:
    wanted["plumbline_credentials"] = [{"name": "s3-keys", "content": f"name\n{SECRET}\n"}]
    wanted["plumbline_drop_ins"] = ["raw-devices"]
    wanted["plumbline_listen_address"] = "127.0.0.1:10057"
    before = main_pid(stor01)

    run = said("credential, drop-in, address", ansible.play("node", stor01.inventory(), wanted, "--diff", "-vvv"))

    assert SECRET not in run.output
    assert main_pid(stor01) != before
    kept = "/etc/plumbline/credentials/s3-keys"
    assert stor01.run("stat", "-c", "%a %U", kept) == "400 root\n"
    served = f"/proc/{main_pid(stor01)}/root/run/credentials/plumbline.service/s3-keys"
    assert SECRET in stor01.read(served)
    assert SECRET not in stor01.run("systemctl", "show", "plumbline") + stor01.read(f"/proc/{main_pid(stor01)}/cmdline")
    assert "DeviceAllow=block-* r" in stor01.run("systemctl", "show", "--property=DeviceAllow", "plumbline")
    assert "plumbline_build_info" in metrics(stor01, 10057)


def test_a_web_configuration_asks_for_the_password(
    ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]
) -> None:
    if "--web.config.file" not in stor01.run("/opt/plumbline/bin/plumbline", "serve", "--help"):
        pytest.skip("this plumbline has no --web.config.file yet")
    hashed = (
        "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"  # "test", from the exporter-toolkit's examples
    )
    web = {**wanted, "plumbline_web_config": {"basic_auth_users": {"prometheus": hashed}}}

    run = said("web configuration", ansible.play("node", stor01.inventory(), web, "--diff", "-vvv"))

    assert hashed not in run.output
    with pytest.raises(AssertionError, match="401"):
        stor01.get("http://127.0.0.1:10057/metrics")
    said("without it", ansible.play("node", stor01.inventory(), wanted))


def test_what_is_no_longer_wanted_goes_and_an_interrupted_run_is_finished(
    ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]
) -> None:
    for name in ("plumbline_credentials", "plumbline_drop_ins", "plumbline_listen_address"):
        del wanted[name]
    inventory = stor01.inventory()
    before = main_pid(stor01)
    run = said("back to the start", ansible.play("node", inventory, wanted))

    assert main_pid(stor01) != before
    assert not stor01.exists("/etc/plumbline/credentials/s3-keys")
    assert not stor01.exists("/etc/systemd/system/plumbline.service.d/raw-devices.conf")
    assert "Remove the drop-ins that were not chosen" in run.changed_tasks

    # as after a run that installed, and then broke off before its handlers
    before = main_pid(stor01)
    time.sleep(1.1)  # systemd tells the start in whole seconds
    stor01.run("touch", "/opt/plumbline/.installed-by-ansible")
    run = said("interrupted before", ansible.play("node", inventory, wanted))
    assert "Restart plumbline" in run.changed_tasks
    assert main_pid(stor01) != before


def test_rules_fire_in_a_real_prometheus_and_reach_alertmanager(ansible: Ansible, stor01: DebianHost) -> None:
    wanted = {
        "plumbline_monitoring_packages": ["prometheus", "prometheus-alertmanager"],
        "plumbline_monitoring_parts": ["prometheus", "alertmanager", "grafana"],
        "plumbline_monitoring_targets": [{"targets": [f"127.0.0.1:{PORT}"], "labels": {"cluster": "main"}}],
        "plumbline_monitoring_alertmanagers": ["localhost:9093"],
        "plumbline_monitoring_prometheus_manage_config": True,
        "plumbline_monitoring_alertmanager_manage_config": True,
        "plumbline_monitoring_grafana_service": "",  # Debian has no Grafana: its files alone
        "plumbline_monitoring_receivers": [
            {"name": "pager", "webhook_configs": [{"url": f"http://127.0.0.1:9/{SECRET}"}]},
        ],
    }
    inventory = stor01.inventory()
    first = said("monitoring, first run", ansible.play("monitoring", inventory, wanted, "--diff", "-vvv"))
    assert SECRET not in first.output
    said("monitoring, second run", ansible.play("monitoring", inventory, wanted), changed=0)
    said("monitoring, --check", ansible.play("monitoring", inventory, wanted, "--check", "--diff"), changed=0)
    pages = stor01.run("ls", "/var/lib/grafana/dashboards/plumbline").split()
    assert sorted(pages) == sorted(page.name for page in (REPOSITORY / "dashboards/out").glob("plumbline-*.json"))

    stor01.run("systemctl", "stop", "plumbline")
    began = time.monotonic()
    firing = wait_for_alerts(stor01, {"PlumblineWatchdog", "PlumblineDown"})
    print(f"\n  PlumblineDown in Alertmanager {time.monotonic() - began:.0f} s after the stop", end="")
    assert firing["PlumblineDown"]["cluster"] == "main"
    stor01.run("systemctl", "start", "plumbline")
    began = time.monotonic()
    while "PlumblineDown" in alerts(stor01):
        assert time.monotonic() - began < 400
        time.sleep(5)
    print(f"\n  resolved {time.monotonic() - began:.0f} s after the start", end="")

    gone = {**wanted, "plumbline_monitoring_state": "absent", "plumbline_monitoring_prometheus_manage_config": False}
    said("monitoring, absent", ansible.play("monitoring", inventory, gone))
    said("monitoring, absent again", ansible.play("monitoring", inventory, gone), changed=0)
    assert [path for path in left(stor01) if "/etc/prometheus/" in path or "grafana" in path] == []


def alerts(host: DebianHost) -> dict[str, dict[str, str]]:
    """The labels of what is active in Alertmanager, by name; AssertionError when it stays silent for half a minute."""
    answer = host.get("http://127.0.0.1:9093/api/v2/alerts?active=true", within_s=30)
    return {alert["labels"]["alertname"]: alert["labels"] for alert in json.loads(answer)}


def wait_for_alerts(host: DebianHost, names: set[str]) -> dict[str, dict[str, str]]:
    deadline = time.monotonic() + 600
    while not names <= set(found := alerts(host)):
        assert time.monotonic() < deadline, sorted(found)
        time.sleep(5)
    return found


def test_absent_leaves_nothing(ansible: Ansible, stor01: DebianHost, wanted: dict[str, Any]) -> None:
    gone = {**wanted, "plumbline_state": "absent"}
    inventory = stor01.inventory()

    run = said("absent, --check", ansible.play("node", inventory, gone, "--check", "--diff"))
    assert run.changed > 0
    assert main_pid(stor01) != "0"
    said("absent", ansible.play("node", inventory, gone))
    said("absent again", ansible.play("node", inventory, gone), changed=0)

    assert left(stor01) == []
    assert "LoadState=not-found" in stor01.run("systemctl", "show", "--property=LoadState", "plumbline")
    assert stor01.run("systemctl", "list-units", "--all", "--plain", "--no-legend", "plumbline*") == ""


# --- a chroot, from the index


def test_a_chroot_gets_everything_but_a_running_service(ansible: Ansible, chroot: DebianHost, wheel: str) -> None:
    wanted = {"plumbline_wheel": wheel, "plumbline_host_packages": []}
    inventory = chroot.inventory()

    said("chroot, fresh, --check", ansible.play("node", inventory, wanted, "--check", "--diff"))
    said("chroot, first run", ansible.play("node", inventory, wanted))
    said("chroot, second run", ansible.play("node", inventory, wanted), changed=0)
    said("chroot, --check", ansible.play("node", inventory, wanted, "--check", "--diff"), changed=0)
    assert chroot.run("/opt/plumbline/bin/plumbline", "--version").startswith("plumbline ")
    assert chroot.exists("/etc/systemd/system/plumbline.service")
    said("chroot, absent", ansible.play("node", inventory, {**wanted, "plumbline_state": "absent"}))
    assert left(chroot) == []


def test_a_wheel_that_is_not_the_meant_one_is_refused(ansible: Ansible, chroot: DebianHost, wheel: str) -> None:
    run = ansible.play("node", chroot.inventory(), {"plumbline_wheel": wheel, "plumbline_wheel_sha256": "0" * 64})

    assert run.code != 0
    assert "plumbline_wheel_sha256" in run.output
    assert left(chroot) == []


def test_a_debian_package_is_installed_and_purged(ansible: Ansible, chroot: DebianHost) -> None:
    built = list((REPOSITORY / "dist").glob(f"plumbline_{RELEASES[SUITE].version(project_version())}_*.deb"))
    if not built:
        pytest.skip(f"no Debian package for {SUITE} in dist/; make packages SUITE={SUITE} builds it")
    wanted = {"plumbline_package": str(built[0]), "plumbline_host_packages": []}
    inventory = chroot.inventory()

    said("package, first run", ansible.play("node", inventory, wanted))
    said("package, second run", ansible.play("node", inventory, wanted), changed=0)
    assert chroot.run("/opt/plumbline/bin/plumbline", "--version").startswith("plumbline ")
    assert not chroot.exists("/etc/systemd/system/plumbline.service")
    said("package, absent", ansible.play("node", inventory, {**wanted, "plumbline_state": "absent"}))
    assert left(chroot) == []


# --- the judges


def test_the_linters_find_nothing(ansible: Ansible, folder: Path) -> None:
    place = folder / "lint/ansible_collections/plumbline/deploy"
    shutil.copytree(COLLECTION, place)

    # what they leave out is named relative to here
    ansible.call("ansible-lint", "--offline", "--profile", "production", "-q", ".", cwd=place)
    ansible.call("yamllint", "--strict", ".", cwd=place)
