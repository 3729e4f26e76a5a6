"""The daemon under a real Prometheus with our rules: every rule works, nothing gets lost.

What panels show is ``test_dashboards_live.py``'s.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.scheduler import splay
from support.daemon import Daemon, eventually, run, running, write_config
from support.disks import disk_folder
from support.prometheus import CLUSTER, RULES, Prometheus, prometheus

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not any(RULES.glob("*.yaml")), reason="alerts/out holds no rendered rules"),
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]


@dataclass(frozen=True)
class Stack:
    daemon: Daemon
    prometheus: Prometheus
    instance: str
    fio: str


SITE = {
    "schema_version": 1,
    "entries": [
        {"workload": "randwrite-4k-qd1-j1", "device_class": "ssd", "rate_iops": 50, "iops": 50,
         "throughput": "200 KiB/s", "latency": {"p50": "1ms", "p99": "2ms", "mean": "1ms"}},
    ],
}  # fmt: skip
"""For the capped fio probe: recording leaves out IOPS and throughput where a cap decides them."""


def configuration(folder: Path) -> dict[str, Any]:
    """Probes that give figures in seconds. The class is that of a documented profile, so that one is shown, too."""
    site = folder / "site.yaml"
    site.write_text(json.dumps(SITE))
    host = os.uname().nodename
    fio = next(name for n in itertools.count() if splay(host, name := f"fio-{n}", 20) < 1)
    return {
        "baseline": {"files": [str(site)]},
        "probes": [
            {"type": "canary", "name": "canary", "device_class": "ssd", "rate": 40, "file_size": "4MiB"},
            {"type": "fio", "name": fio, "device_class": "ssd", "workload": "randwrite-4k-qd1-j1", "rate_iops": 50,
             "file_size": "4MiB", "interval": "20s", "runtime": "1s", "timeout": "10s",
             "max_load_per_cpu": 1000, "max_device_busy": 1.0},
        ]
    }  # fmt: skip


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """This host's baseline recorded, the daemon started, Prometheus looking at it."""
    with disk_folder(tmp_path_factory) as folder:
        yield from _start(folder)


def _start(folder: Path) -> Iterator[Stack]:
    config = configuration(folder)
    recorded = run(
        "baseline", "record", "--probe", "canary", "--force", "--runs", "3", "--run-duration", "1s",
        "--storage.path", folder / "state", "--config.file", write_config(folder, config),
    )  # fmt: skip
    assert recorded.returncode == 0, recorded.stderr
    with running(folder, config=config) as daemon:
        target = daemon.url.removeprefix("http://")
        with prometheus(folder, target=target) as server:
            yield Stack(daemon, server, target, config["probes"][1]["name"])


def test_every_rule_is_evaluated_without_a_mistake(stack: Stack) -> None:
    committed = [
        rule
        for file in sorted(RULES.glob("*.yaml"))
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]
    assert stack.prometheus.mistakes() == []
    assert sorted(rule["name"] for rule in stack.prometheus.rules()) == sorted(
        rule.get("record") or rule["alert"] for rule in committed
    )
    assert stack.prometheus.alert_states()["PlumblineWatchdog"] == "firing"


def test_degradation_is_measured_against_this_hosts_own_baseline(stack: Stack) -> None:
    expected = {("canary", operation, each) for operation in ("read", "write") for each in ("p50", "mean")}
    expected |= {(stack.fio, "write", each) for each in ("p50", "p99", "mean", "iops", "throughput")}

    def ratios() -> dict[tuple[str, str, str], tuple[dict[str, str], float]]:
        found = stack.prometheus.query("plumbline:degradation:ratio")
        return {(labels["probe"], labels["operation"], labels["statistic"]): (labels, value) for labels, value in found}

    eventually(lambda: not (expected - ratios().keys()), within_s=60)
    for (probe, _, _), (labels, value) in ratios().items():
        assert labels["source"] == ("site" if probe == stack.fio else "measured")
        assert (labels["instance"], labels["cluster"]) == (stack.instance, CLUSTER)
        assert 0 < value < 1e4
    ((layer, worst),) = eventually(lambda: stack.prometheus.query("plumbline:layer_degradation:ratio"))
    assert layer["layer"] == "disk"
    assert worst > 0
    assert stack.prometheus.query("plumbline_baseline_missing == 1") == []

    def agrees() -> bool:
        """Baseline ÷ measured for what should be high, measured ÷ baseline for what should be low."""
        page, now = stack.daemon.metrics(), ratios()
        latency = page.get("plumbline_probe_latency_seconds", probe=stack.fio, statistic="p50") or 0.0
        return now[stack.fio, "write", "iops"][1] == pytest.approx(50 / page.total("plumbline_probe_iops")) and now[
            stack.fio, "write", "p50"
        ][1] == pytest.approx(latency / 1e-3)

    eventually(agrees)


def test_prometheus_has_every_series_of_the_page(stack: Stack) -> None:
    def page() -> set[tuple[str, ...]]:
        return _series((each.name, each.labels) for each in stack.daemon.metrics("").samples)

    def stored() -> set[tuple[str, ...]]:
        found = stack.prometheus.query(f'{{job="plumbline", instance="{stack.instance}"}}')
        return _series((labels.pop("__name__"), labels) for labels, _ in found)

    eventually(lambda: page() == stored())


def _series(samples: Any) -> set[tuple[str, ...]]:
    """Ours, without what Prometheus adds to them."""
    added = {"job", "instance", "cluster"}
    return {
        (name, *(f"{key}={value}" for key, value in sorted(labels.items()) if key not in added and value))
        for name, labels in samples
        if name.startswith(("plumbline_", "process_"))
    }
