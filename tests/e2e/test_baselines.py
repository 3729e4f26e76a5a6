"""Which baseline judges follows the files and the configuration, without a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.probes.run.state import open_storage
from support.daemon import Daemon, eventually, running

READ, WRITE = "randread-4k-qd1-j1", "randwrite-4k-qd1-j1-dsync"
CANARY = {"type": "canary", "name": "canary", "device_class": "ssd"}
SITE = {
    "schema_version": 1,
    "entries": [{"workload": READ, "device_class": "ssd", "latency": {"p50": "84us", "p99": "160us"}}],
}


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    with running(folder, config={"probes": [CANARY]}) as started:
        yield started


def missing(daemon: Daemon) -> dict[str, float]:
    """Workload → whether nothing judges it."""
    return {each.labels["workload"]: each.value for each in daemon.metrics().series("plumbline_baseline_missing")}


def judges(daemon: Daemon) -> dict[tuple[str, str], float]:
    """(source, workload) → whether it judges."""
    series = daemon.metrics().series("plumbline_baseline_applicable")
    return {(each.labels["source"], each.labels["workload"]): each.value for each in series}


def test_a_site_file_judges_and_sets_the_canarys_bound(daemon: Daemon, folder: Path) -> None:
    assert missing(daemon) == {READ: 1, WRITE: 1}
    site = folder / "site.yaml"
    site.write_text(json.dumps(SITE))

    daemon.reload({"probes": [CANARY], "baseline": {"files": [str(site)]}})

    assert missing(daemon) == {READ: 0, WRITE: 1}
    assert judges(daemon)["site", READ] == 1
    metrics = daemon.metrics()
    labels = {"layer": "disk", "device_class": "ssd", "workload": READ, "operation": "read", "source": "site"}
    assert metrics.get("plumbline_baseline_latency_seconds", **labels, statistic="p50") == 84e-6
    (entry,) = metrics.series("plumbline_baseline_applicable", **labels)
    (ran,) = metrics.series("plumbline_canary_workload_info", workload=READ)
    assert entry.labels["config_hash"] == ran.labels["config_hash"]
    (bound,) = metrics.series("plumbline_canary_slow_operations_total")
    edge = bound.labels["bound"]
    assert float(edge) == pytest.approx(1.5 * 160e-6)
    assert metrics.series("plumbline_canary_latency_seconds_bucket", workload=READ, le=edge)
    assert not metrics.series("plumbline_canary_latency_seconds_bucket", workload=WRITE, le=edge)
    assert f"site: {entry.labels['profile']}" in daemon.page()

    # broken, the last good one stays and is told of until the file is mended; both are noticed without a signal
    site.write_text(json.dumps(SITE).replace("84us", "84 parsecs"))
    eventually(lambda: daemon.metrics().get("plumbline_config_last_reload_successful") == 0, within_s=8)
    assert "84 parsecs" in daemon.said()
    assert judges(daemon)["site", READ] == 1
    site.write_text(json.dumps(SITE).replace("84us", "90us"))
    eventually(lambda: daemon.metrics().get("plumbline_config_last_reload_successful") == 1, within_s=8)
    assert daemon.metrics().get("plumbline_baseline_latency_seconds", **labels, statistic="p50") == 90e-6


def test_a_documented_profile_judges_only_where_it_is_chosen(daemon: Daemon) -> None:
    shown = judges(daemon)
    assert {source for source, _ in shown} == {"documented"}
    assert set(shown.values()) == {0}
    assert "shown only, not used to judge" in daemon.page()

    daemon.reload({"probes": [CANARY], "baseline": {"judge": {"ssd": "unnoba-2020"}}})

    assert 1 in judges(daemon).values()
    assert {workload for workload, value in missing(daemon).items() if value == 0} == {
        workload for (_, workload), value in judges(daemon).items() if value == 1
    }

    daemon.reload({"probes": [CANARY], "baseline": {"judge": {"hdd": "unnoba-2020"}}})
    assert set(judges(daemon).values()) == {0}
    assert set(missing(daemon).values()) == {1}


def test_a_damaged_recorded_baseline_fails_its_collector_and_nothing_else(folder: Path) -> None:
    open_storage(folder / "state").close()
    recorded = folder / "state" / "baseline.yaml"
    recorded.write_text("schema_version: 1\nentries: [{workload: nonsense}]\n")

    with running(folder, config={"probes": [CANARY]}) as daemon:
        metrics, page = daemon.metrics(), daemon.page()
        success = {each.labels["collector"]: each.value for each in metrics.series("plumbline_collector_success")}
        assert success.pop("baseline") == 0
        assert set(success.values()) == {1}
        assert metrics.get("plumbline_config_last_reload_successful") == 1
        assert not [name for name in metrics.names() if name.startswith("plumbline_baseline_")]
        assert str(recorded) in page
        assert str(recorded) in daemon.said()
        assert recorded.read_text().startswith("schema_version")

        recorded.unlink()
        eventually(lambda: missing(daemon) == {READ: 1, WRITE: 1}, within_s=8)
        assert daemon.metrics().get("plumbline_collector_success", collector="baseline") == 1
