"""The daemon under a real Prometheus with our rules: every panel has data, every rule works, nothing gets lost."""

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

from plumbline.scheduler import splay
from support import dashboards
from support.daemon import Daemon, eventually, run, running, write_config
from support.disks import disk_folder
from support.prometheus import CLUSTER, RULES, Prometheus, prometheus

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not any(RULES.glob("*.yaml")), reason="alerts/out holds no rendered rules"),
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]

STATISTICS = ("p50", "p99", "mean")

ONLY_WHERE_THE_HOST_HAS = {
    "plumbline-node / Frames lost, by cause": "plumbline_nic_drops_total",
    "plumbline-node / Mean disk latency": "plumbline_disk_io_total",  # a container may be shown no disk at all
    "plumbline-node / Disk operations": "plumbline_disk_io_total",
    "plumbline-node / Disk busy share and queue": "plumbline_disk_io_total",
    "plumbline-network / Frames lost, by cause": "plumbline_nic_drops_total",
    "plumbline-network / Frames damaged, by cause": "plumbline_nic_errors_total",
}
"""Panels whose hardware not every machine has: they must have data exactly where the daemon exports the metric."""

HEALTHY = "nothing is wrong here"
IDLE = "a port without packets has no share of them"
ALONE = "one node has no twins"
PARAVIRTUAL = "a virtual port has no speed, no pause frames, no bond; fixtures have"
NO_NETWORK_PROBE = "no probe of the network is configured here"
EMPTY_ON_A_HEALTHY_HOST = {
    "plumbline-node / annotation Alerts": "nothing is wrong here, and the watchdog has no instance",
    "plumbline-node / annotation Recovery": "there is no Ceph here",
    "plumbline-node / annotation Upgrades": "the daemon that is here now was here a few minutes ago",
    "plumbline-network / annotation Alerts": "nothing is wrong here, and the watchdog has no instance",
    "plumbline-network / annotation Recovery": "there is no Ceph here",
    "plumbline-network / annotation Upgrades": "the daemon that is here now was here a few minutes ago",
    "plumbline-network / annotation Baseline recorded": NO_NETWORK_PROBE,
    "plumbline-nic / annotation Alerts": "nothing is wrong here, and the watchdog has no instance",
    "plumbline-nic / annotation Recovery": "there is no Ceph here",
    "plumbline-nic / annotation Upgrades": "the daemon that is here now was here a few minutes ago",
    "plumbline-nic / annotation Baseline recorded": NO_NETWORK_PROBE,
    "plumbline-tuning / annotation Alerts": "nothing is wrong here, and the watchdog has no instance",
    "plumbline-tuning / annotation Recovery": "there is no Ceph here",
    "plumbline-tuning / annotation Upgrades": "the daemon that is here now was here a few minutes ago",
    "plumbline-probes / annotation Alerts": "nothing is wrong here, and the watchdog has no instance",
    "plumbline-probes / annotation Recovery": "there is no Ceph here",
    "plumbline-probes / annotation Upgrades": "the daemon that is here now was here a few minutes ago",
    "plumbline-node / Layer to blame": HEALTHY,
    "plumbline-node / What fires": HEALTHY,
    "plumbline-node / What is not as advised": HEALTHY,
    "plumbline-node / OSDs of this node": "there is no Ceph here",
    "plumbline-node / OSD latency": "there is no Ceph here",
    "plumbline-node / OSD operations": "there is no Ceph here",
    "plumbline-node / Disk p99 against its peers": "an idle disk has no tail, and one without twins no peers",
    "plumbline-node / Disk tail against peers and past": "neither peers nor days gone by",
    "plumbline-node / Disks": "without a disk, or with idle ones, there is no tail",
    "plumbline-node / Disk health": "virtual disks tell none; rule tests and fixtures have the series",
    "plumbline-node / PCIe links": "virtual machines have none",
    "plumbline-node / Arrays, pools and paths": "no md, ZFS or multipath here",
    "plumbline-node / Ports": PARAVIRTUAL,
    "plumbline-network / Worst degradation of network probes": NO_NETWORK_PROBE,
    "plumbline-network / Throughput between nodes against its baseline": NO_NETWORK_PROBE,
    "plumbline-network / Round trips between nodes against their baseline": NO_NETWORK_PROBE,
    "plumbline-network / Path MTU and losses, probe by probe": NO_NETWORK_PROBE,
    "plumbline-network / Worst loss at a port": PARAVIRTUAL,
    "plumbline-network / Worst ports": PARAVIRTUAL,
    "plumbline-network / Pause frames by port": PARAVIRTUAL,
    "plumbline-network / Use of the links": PARAVIRTUAL,
    "plumbline-network / MTU of each network": PARAVIRTUAL,
    "plumbline-network / Bond members that carry nothing": PARAVIRTUAL,
    "plumbline-network / InfiniBand and RoCE ports": PARAVIRTUAL,
    "plumbline-network / Loss by port": HEALTHY,
    "plumbline-network / Backlog overflow by node": HEALTHY,
    "plumbline-network / Time squeeze by node": HEALTHY,
    "plumbline-network / Refused connections by node": HEALTHY,
    "plumbline-network / Ports below what they can do": HEALTHY,
    "plumbline-network / Worst share of damaged frames": IDLE,
    "plumbline-nic / Speed": PARAVIRTUAL,
    "plumbline-nic / Speed of the possible": PARAVIRTUAL,
    "plumbline-nic / Loss": PARAVIRTUAL,
    "plumbline-nic / Throughput against the speed of the link": PARAVIRTUAL,
    "plumbline-nic / Pause frames": PARAVIRTUAL,
    "plumbline-nic / Link changes": PARAVIRTUAL,
    "plumbline-nic / Where its interrupts fall": PARAVIRTUAL,
    "plumbline-nic / Vectors and CPUs at work": PARAVIRTUAL,
    "plumbline-nic / Rings": PARAVIRTUAL,
    "plumbline-nic / Queues": PARAVIRTUAL,
    "plumbline-nic / Coalescing and flow control": PARAVIRTUAL,
    "plumbline-nic / Members of its bond": PARAVIRTUAL,
    "plumbline-nic / Stands on": PARAVIRTUAL,
    "plumbline-nic / Identity and roles": PARAVIRTUAL,
    "plumbline-nic / Open findings of this port": HEALTHY,
    "plumbline-nic / Alerts of this port": HEALTHY,
    "plumbline-nic / Squeeze and backlog overflow of the node, per CPU": HEALTHY,
    "plumbline-nic / Damaged": IDLE,
    "plumbline-nic / Mean packet size": IDLE,
    "plumbline-tuning / Open findings": HEALTHY,
    "plumbline-tuning / Compliance, check by check": HEALTHY,
    "plumbline-tuning / Nodes with most open findings": HEALTHY,
    "plumbline-tuning / Followed, critical": "no critical advice applies to a virtual machine",
    "plumbline-tuning / Followed, info": "none may apply",
    "plumbline-tuning / Followed, warning": "none may apply",
    "plumbline-tuning / Kernel settings apart from the cluster's": ALONE,
    "plumbline-tuning / Ports apart from their twins": ALONE,
    "plumbline-tuning / Disks apart from their model": ALONE,
    "plumbline-tuning / Nodes with another version than most": ALONE,
    "plumbline-probes / Runs skipped, by reason": HEALTHY,
    "plumbline-probes / Time in flight": HEALTHY,
    "plumbline-probes / Figures that nothing judges": HEALTHY,
    "plumbline-probes / Schedule and age": "a probe that has not run yet has no result",
    "plumbline-probes / Latency against its baseline": "no document has a figure of a capped workload",
    "plumbline-probes / Operations per second against their baseline": "no document has a figure of a capped workload",
    "plumbline-probes / Throughput against its baseline": "no document has a figure of a capped workload",
}


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

    def evaluated() -> list[dict[str, Any]]:
        rules = stack.prometheus.rules()
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    rules = eventually(evaluated)
    assert sorted(rule["name"] for rule in rules) == sorted(rule.get("record") or rule["alert"] for rule in committed)
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
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


@pytest.mark.parametrize("path", dashboards.DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_has_data(stack: Stack, path: Path) -> None:
    queries = list(dashboards.expressions(dashboards.load(path)))
    assert queries

    def without_data() -> list[str]:
        exported = stack.daemon.metrics().names()
        return [
            f"{where}: {expression}"
            for where, expression in queries
            if not _has_data(stack, expression)
            and where not in EMPTY_ON_A_HEALTHY_HOST
            and ONLY_WHERE_THE_HOST_HAS.get(where, "plumbline_build_info") in exported
        ]

    eventually(lambda: not (lacking := without_data()) or _tell(lacking), within_s=60)
    known = {where for where, _ in queries}
    mine = {where for where in (*ONLY_WHERE_THE_HOST_HAS, *EMPTY_ON_A_HEALTHY_HOST) if where.startswith(path.stem)}
    assert mine <= known, "an exception for a panel that is no more"


@pytest.mark.parametrize("path", dashboards.DASHBOARDS, ids=lambda path: path.stem)
def test_every_variable_has_values(stack: Stack, path: Path) -> None:
    page = stack.daemon.metrics()
    expected = {"cluster": {CLUSTER}, "instance": {stack.instance}}
    expected |= {each: page.labels("plumbline_probe_info", each) for each in ("layer", "device_class", "probe")}
    expected["workload"] = page.labels("plumbline_baseline_missing", "workload")
    ports = page.labels("plumbline_nic_info", "device") - {"lo"}
    expected["device"] = ports if path.stem == "plumbline-nic" else page.labels("plumbline_disk_info", "device")
    asked = {
        variable["name"]: dashboards.substitute(variable["query"], instance=stack.instance)
        for variable in dashboards.load(path)["templating"]["list"]
        if variable["type"] == "query"
    }

    for name, query in asked.items():
        assert stack.prometheus.variable(query) == expected[name], name
    assert "cluster" in asked


def test_prometheus_has_every_series_of_the_page(stack: Stack) -> None:
    def page() -> set[tuple[str, ...]]:
        return _series((each.name, each.labels) for each in stack.daemon.metrics().samples)

    def stored() -> set[tuple[str, ...]]:
        found = stack.prometheus.query(f'{{job="plumbline", instance="{stack.instance}"}}')
        return _series((labels.pop("__name__"), labels) for labels, _ in found)

    eventually(lambda: page() == stored())


def _has_data(stack: Stack, expression: str) -> bool:
    """With at least one choice of the dashboard's statistic: a documented profile may have a mean and no median."""
    one_port = min(stack.daemon.metrics().labels("plumbline_nic_info", "device") - {"lo"}, default="none")
    device = one_port if '="$device"' in expression else ".*"
    return any(
        stack.prometheus.query(
            dashboards.substitute(expression, instance=stack.instance, statistic=statistic, device=device)
        )
        for statistic in (STATISTICS if "$statistic" in expression else STATISTICS[:1])
    )


def _tell(lacking: list[str]) -> bool:
    print("without data:", *lacking, sep="\n  ")
    return False


def _series(samples: Any) -> set[tuple[str, ...]]:
    """Ours, without what Prometheus adds to them."""
    added = {"job", "instance", "cluster"}
    return {
        (name, *(f"{key}={value}" for key, value in sorted(labels.items()) if key not in added and value))
        for name, labels in samples
        if name.startswith(("plumbline_", "process_"))
    }
