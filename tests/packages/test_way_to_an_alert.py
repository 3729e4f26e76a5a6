"""From a bare Debian to an alert that fires and resolves, with nothing but the package and the READMEs' words.

The commands are those of ``deploy/prometheus/README.md``, taken from there. Nine minutes, most of them
``PlumblineDown``'s own.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.debian_host import DebianHost
from support.first_commands import FIRST, arguments

pytestmark = [pytest.mark.packages, pytest.mark.needs_root, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
README = ROOT / "deploy" / "prometheus" / "README.md"
MONITORING = ("prometheus", "prometheus-alertmanager", "python3-yaml", "procps")
"""What the READMEs name, and kill(1), by which Debian reloads Prometheus: every server has that, `minbase` has not."""
INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends")
"""What is needed lies in apt's cache: the host's network leads nowhere."""
CHECKOUT = "/root/plumbline"
"""Where somebody has cloned the repository."""
TARGETS = {"plumbline.yml": [{"targets": ["localhost:10047"], "labels": {"cluster": "north", "instance": "stor01"}}]}


def commands() -> str:
    """Those of the README's chapter, with the path of the repository in its place."""
    chapter = README.read_text("utf-8").partition("\n## Install\n")[2]
    found = re.search(r"```sh\n(.*?)```", chapter, re.DOTALL)
    assert found
    assert "…" in found[1]
    return found[1].replace("…", CHECKOUT)


def alerts(machine: DebianHost, url: str) -> dict[str, str]:
    """Name → state, by Prometheus (``…/api/v1/alerts``) or Alertmanager (``…/api/v2/alerts``)."""
    try:
        answer = json.loads(machine.get(url))
    except AssertionError:  # it does not answer yet
        return {}
    if isinstance(answer, dict):
        return {each["labels"]["alertname"]: each["state"] for each in answer["data"]["alerts"]}
    return {each["labels"]["alertname"]: each["status"]["state"] for each in answer}


def in_prometheus(machine: DebianHost) -> dict[str, str]:
    return alerts(machine, "http://127.0.0.1:9090/api/v1/alerts")


def in_alertmanager(machine: DebianHost) -> dict[str, str]:
    return alerts(machine, "http://127.0.0.1:9093/api/v2/alerts")


def wait(what: str, until: Callable[[], bool], within_s: float, began: float) -> None:
    """Say when it was so."""
    deadline = time.monotonic() + within_s
    while not until():
        assert time.monotonic() < deadline, what
        time.sleep(2)
    print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)


def first_commands_read_its_configuration(machine: DebianHost) -> None:
    """Seen by a mistake in the file, which each of them names."""
    config = machine.root / "etc/plumbline/plumbline.yaml"
    right = config.read_bytes()
    config.write_text("no_such_key: 1\n", "utf-8")
    try:
        for command in (*FIRST, "plumbline doctor", "plumbline why"):
            said = machine.run("sh", "-c", f"plumbline {shlex.join(arguments(command))} 2>&1 || true")
            assert "/etc/plumbline/plumbline.yaml" in said, f"{command}: {said}"
            assert "no_such_key" in said, f"{command}: {said}"
    finally:
        config.write_bytes(right)


def test_the_package_and_two_readmes_lead_to_an_alert_and_out_again(machine: DebianHost, deb: Path) -> None:
    checkout = machine.root / CHECKOUT.lstrip("/")
    for part in ("alerts", "deploy/prometheus", "dashboards/out", "exporter/plumbline"):
        shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("vendor", "__pycache__"))
    shutil.copy(deb, machine.root / "root")
    began = time.monotonic()

    # docs/install.md, Debian package
    machine.run(*INSTALL, f"/root/{deb.name}")
    machine.get("http://127.0.0.1:10047/-/ready", within_s=60)
    machine.run("plumbline", "config", "check", "/etc/plumbline/plumbline.yaml")
    # commands without flags are about this daemon
    first_commands_read_its_configuration(machine)
    assert "no daemon runs" not in machine.run("plumbline", "probe", "list")
    assert "at http://" in machine.run("sh", "-c", "plumbline doctor || test $? = 1")
    assert machine.run("sh", "-c", "plumbline why || test $? = 1").startswith(f"{machine.run('hostname').strip()}: ")

    machine.run(*INSTALL, *MONITORING, timeout_s=600)
    # deploy/prometheus/README.md; the hosts are written before the configuration is judged
    lines = commands().splitlines()
    hosts = next(number for number, line in enumerate(lines) if "write your hosts" in line) + 1
    machine.run("sh", "-ec", "\n".join(lines[:hosts]))
    folder = machine.root / "etc/prometheus/targets"
    for file in folder.glob("*.yml"):
        file.write_text(yaml.safe_dump(TARGETS.get(file.name, [])))
    machine.run("sh", "-ec", "\n".join(["cd /etc/prometheus", *lines[hosts:]]))

    # alerts/README.md: the tree to start from
    shutil.copy(ROOT / "alerts/alertmanager/alertmanager.yaml", machine.root / "etc/prometheus/alertmanager.yml")
    machine.run("amtool", "check-config", "/etc/prometheus/alertmanager.yml")
    machine.run("systemctl", "restart", "prometheus-alertmanager")
    machine.run("systemctl", "is-active", "prometheus", "prometheus-alertmanager")

    wait("the watchdog is in Alertmanager", lambda: "PlumblineWatchdog" in in_alertmanager(machine), 180, began)
    assert "PlumblineDown" not in in_prometheus(machine)

    machine.run("systemctl", "stop", "plumbline")
    wait("PlumblineDown pending", lambda: in_prometheus(machine).get("PlumblineDown") == "pending", 180, began)
    wait("PlumblineDown firing", lambda: in_prometheus(machine).get("PlumblineDown") == "firing", 480, began)
    wait("PlumblineDown in Alertmanager", lambda: "PlumblineDown" in in_alertmanager(machine), 60, began)

    machine.run("systemctl", "start", "plumbline")
    wait("PlumblineDown gone", lambda: "PlumblineDown" not in in_prometheus(machine), 180, began)
    wait("resolved in Alertmanager", lambda: "PlumblineDown" not in in_alertmanager(machine), 420, began)
