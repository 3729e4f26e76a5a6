"""deploy/compose without containers: the same programs with the same flags and files, until the watchdog has arrived.

What Docker adds (images, volumes, health checks, Grafana) is not tested here: no Docker is at hand.
"""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from deploy.demo import api
from deploy.demo.processes import Processes

from support.daemon import COMMAND, eventually
from support.metrics import ROOT
from support.ports import free_port
from support.programs import need

pytestmark = pytest.mark.integration
FOLDER = ROOT / "deploy" / "compose"
WITHIN_S = 90.0


def here(text: str, places: Mapping[str, str]) -> str:
    """With this machine's paths and ports in place of the containers'."""
    for there, place in places.items():
        text = text.replace(there, place)
    return text


def test_the_watchdog_goes_from_the_daemon_to_alertmanager(tmp_path: Path) -> None:
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))["services"]
    ports = {port: f"127.0.0.1:{free_port()}" for port in ("127.0.0.1:10047", "127.0.0.1:9090", "127.0.0.1:9093")}
    folders = ("/etc/prometheus", "/etc/plumbline", "/etc/alertmanager", "/prometheus", "/alertmanager", "/host")
    inside = {f"={folder}": f"={tmp_path}{folder}" for folder in folders}
    shutil.copytree(ROOT / "alerts" / "out", tmp_path / "etc/prometheus/plumbline")
    shutil.copytree(ROOT / "alerts" / "alertmanager", tmp_path / "etc/alertmanager")
    (tmp_path / "etc/prometheus/prometheus.yml").write_text(here((FOLDER / "prometheus.yml").read_text(), ports))
    (tmp_path / "etc/plumbline").mkdir()
    state = {"/var/lib/plumbline": f"{tmp_path}/state"}
    (tmp_path / "etc/plumbline/plumbline.yaml").write_text(here((FOLDER / "plumbline.yaml").read_text(), ports | state))
    (tmp_path / "host/run").mkdir(parents=True)
    for tree in ("proc", "sys", "run/udev"):
        (tmp_path / "host" / tree).symlink_to(f"/{tree}")
    programs = {
        "plumbline": [*COMMAND, "serve"],
        "alertmanager": [need("prometheus-alertmanager")],
        "prometheus": [need("prometheus")],
    }
    processes = Processes(tmp_path)
    try:
        for name, program in programs.items():
            flags = [here(flag, inside | ports) for flag in services[name]["command"]]
            processes.start(name, [*program, *flags])
        prometheus = api.Prometheus("http://" + ports["127.0.0.1:9090"])
        for port, path in (("10047", "/-/healthy"), ("9090", "/-/ready"), ("9093", "/-/ready")):
            # as the health checks ask
            assert any(f":{port}{path}" in part for each in services.values() for part in _check(each))
            url = "http://" + ports[f"127.0.0.1:{port}"] + path
            eventually(lambda url=url: _alive(processes) and api.ready(url), within_s=WITHIN_S)
        eventually(lambda: _up(prometheus) == {"plumbline": 1.0, "prometheus": 1.0}, within_s=WITHIN_S, every_s=1.0)
        eventually(lambda: "PlumblineWatchdog" in _told(ports["127.0.0.1:9093"]), within_s=WITHIN_S, every_s=1.0)
        assert prometheus.query('plumbline_build_info{cluster="local", instance="localhost"}')
    finally:
        processes.stop()


def _check(service: dict[str, dict[str, list[str]]]) -> list[str]:
    return service.get("healthcheck", {}).get("test", [])


def _alive(processes: Processes) -> bool:
    processes.check()
    return True


def _up(prometheus: api.Prometheus) -> dict[str, float]:
    return {labels["job"]: value for labels, value in prometheus.query("min by (job) (up)")}


def _told(alertmanager: str) -> set[str]:
    with urllib.request.urlopen(f"http://{alertmanager}/api/v2/alerts", timeout=10) as answer:
        return {each["labels"]["alertname"] for each in json.load(answer)}
