"""From a bare Debian 12 to an alert that fires and resolves, with nothing but the package and the READMEs' words.

The commands are those of ``deploy/prometheus/README.md``, taken from there. Nine minutes, most of them
``PlumblineDown``'s own.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from support.machine import PACKAGES, Machine, booted, copied, debian_tree

pytestmark = [pytest.mark.packages, pytest.mark.needs_root, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
README = ROOT / "deploy" / "prometheus" / "README.md"
MONITORING = ("procps", "prometheus", "prometheus-alertmanager", "python3-yaml")
"""What the READMEs name, and kill(1), by which Debian reloads Prometheus: every server has that, `minbase` has not."""
CHECKOUT = "/root/plumbline"
"""Where somebody has cloned the repository."""
TARGETS = {"plumbline.yml": [{"targets": ["localhost:10047"], "labels": {"cluster": "north", "instance": "stor01"}}]}


@pytest.fixture
def monitored(cache: Path, tmp_path: Path) -> Iterator[Machine]:
    """A running Debian 12 that has Debian's Prometheus and Alertmanager."""
    tree = debian_tree(cache, "monitored", (*PACKAGES, *MONITORING))
    with copied(tree, tmp_path) as copy:
        (copy / "etc/hosts").write_text("127.0.0.1 localhost\n")  # as Debian's installer does, other than debootstrap
        # this machine has no network: without an address of its own Alertmanager can't have a cluster of one
        (copy / "etc/default/prometheus-alertmanager").write_text('ARGS="--cluster.listen-address="\n')
        with booted(copy) as machine:
            yield machine


def commands() -> str:
    """Those of the README's chapter, with the path of the repository in its place."""
    chapter = README.read_text("utf-8").partition("\n## Install\n")[2]
    found = re.search(r"```sh\n(.*?)```", chapter, re.DOTALL)
    assert found
    assert "…" in found[1]
    return found[1].replace("…", CHECKOUT)


def alerts(machine: Machine, url: str) -> dict[str, str]:
    """Name → state, by Prometheus (``…/api/v1/alerts``) or Alertmanager (``…/api/v2/alerts``)."""
    fetch = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=20).read().decode())"
    done = machine.run("python3", "-c", fetch, url, check=False)
    if done.returncode:
        return {}
    answer = json.loads(done.stdout)
    if isinstance(answer, dict):
        return {each["labels"]["alertname"]: each["state"] for each in answer["data"]["alerts"]}
    return {each["labels"]["alertname"]: each["status"]["state"] for each in answer}


def in_prometheus(machine: Machine) -> dict[str, str]:
    return alerts(machine, "http://127.0.0.1:9090/api/v1/alerts")


def in_alertmanager(machine: Machine) -> dict[str, str]:
    return alerts(machine, "http://127.0.0.1:9093/api/v2/alerts")


def wait(what: str, until: Callable[[], bool], within_s: float, began: float) -> None:
    """Say when it was so."""
    deadline = time.monotonic() + within_s
    while not until():
        assert time.monotonic() < deadline, what
        time.sleep(2)
    print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)


def test_the_package_and_two_readmes_lead_to_an_alert_and_out_again(monitored: Machine, deb: Path) -> None:
    checkout = monitored.root / CHECKOUT.lstrip("/")
    for part in ("alerts", "deploy/prometheus", "dashboards/out", "exporter/plumbline"):
        shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("vendor", "__pycache__"))
    shutil.copy(deb, monitored.root / "root")
    began = time.monotonic()

    # docs/install.md, Debian package
    monitored.run("dpkg", "-i", f"/root/{deb.name}")  # apt-get install without a network
    monitored.get("/-/ready")
    monitored.run("plumbline", "config", "check", "/etc/plumbline/plumbline.yaml")

    # deploy/prometheus/README.md; the hosts are written before the configuration is judged
    lines = commands().splitlines()
    hosts = next(number for number, line in enumerate(lines) if "write your hosts" in line) + 1
    monitored.run("sh", "-ec", "\n".join(lines[:hosts]))
    folder = monitored.root / "etc/prometheus/targets"
    for file in folder.glob("*.yml"):
        file.write_text(yaml.safe_dump(TARGETS.get(file.name, [])))
    monitored.run("sh", "-ec", "\n".join(["cd /etc/prometheus", *lines[hosts:]]))

    # alerts/README.md: the tree to start from
    shutil.copy(ROOT / "alerts/alertmanager/alertmanager.yaml", monitored.root / "etc/prometheus/alertmanager.yml")
    monitored.run("amtool", "check-config", "/etc/prometheus/alertmanager.yml")
    monitored.run("systemctl", "restart", "prometheus-alertmanager")
    monitored.run("systemctl", "is-active", "prometheus", "prometheus-alertmanager")

    wait("the watchdog is in Alertmanager", lambda: "PlumblineWatchdog" in in_alertmanager(monitored), 180, began)
    assert "PlumblineDown" not in in_prometheus(monitored)

    monitored.run("systemctl", "stop", "plumbline")
    wait("PlumblineDown pending", lambda: in_prometheus(monitored).get("PlumblineDown") == "pending", 180, began)
    wait("PlumblineDown firing", lambda: in_prometheus(monitored).get("PlumblineDown") == "firing", 480, began)
    wait("PlumblineDown in Alertmanager", lambda: "PlumblineDown" in in_alertmanager(monitored), 60, began)

    monitored.run("systemctl", "start", "plumbline")
    wait("PlumblineDown gone", lambda: "PlumblineDown" not in in_prometheus(monitored), 180, began)
    wait("resolved in Alertmanager", lambda: "PlumblineDown" not in in_alertmanager(monitored), 420, began)
