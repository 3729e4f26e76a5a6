"""A changed configuration holds without a restart; a bad one changes nothing but the metric that says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import Daemon, eventually, running, write_config

QUIET: dict[str, object] = {"probes": []}
CANARY = {"type": "canary", "name": "canary"}


@pytest.fixture(scope="module")
def daemon(module_folder: Path) -> Iterator[Daemon]:
    """One daemon for everything that a reload refuses."""
    with running(module_folder, config=QUIET) as started:
        yield started


def nic_devices(daemon: Daemon) -> set[str]:
    samples = daemon.metrics().samples
    return {each.labels["device"] for each in samples if each.name.startswith("plumbline_nic_")}


def test_an_excluded_port_disappears_and_comes_back(daemon: Daemon) -> None:
    assert "lo" in nic_devices(daemon)

    assert daemon.reload({**QUIET, "devices": {"nic_exclude": "l.*"}}).endswith("reloaded\n")
    assert "lo" not in nic_devices(daemon)
    daemon.reload(QUIET)
    assert "lo" in nic_devices(daemon)


def test_a_collector_is_switched_off_and_on(daemon: Daemon) -> None:
    daemon.reload({**QUIET, "collectors": {"softnet": False}})
    metrics = daemon.metrics()
    assert not [name for name in metrics.names() if name.startswith("plumbline_softnet_")]
    assert metrics.get("plumbline_collector_success", collector="softnet") is None
    assert metrics.get("plumbline_collector_success", collector="link") == 1

    daemon.reload(QUIET)
    assert daemon.metrics().series("plumbline_softnet_packets_processed_total")


def test_what_is_read_each_minute_is_there_at_once_when_it_is_switched_on(folder: Path) -> None:
    with running(folder, config={**QUIET, "collectors": {"queue": False}}) as daemon:
        assert not daemon.metrics().series("plumbline_disk_queue_info")
        daemon.reload(QUIET)
        eventually(lambda: daemon.metrics().series("plumbline_disk_queue_info"), within_s=10)


def test_the_time_of_the_reload_is_told(daemon: Daemon) -> None:
    def loaded() -> float:
        return daemon.metrics().get("plumbline_config_last_reload_success_timestamp_seconds") or 0.0

    before = loaded()
    daemon.reload(QUIET)
    middle = loaded()
    daemon.reload({"prob": []})

    assert 0 < before < middle == loaded()
    daemon.reload(QUIET)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"probs": []}, ": probs: no such key; see the configuration reference"),
        ({"probes": 5}, ": probes = 5: expected `array`, got `int`"),
        ({"probes": [{**CANARY, "file_size": "16 MB"}]}, "probes[0].file_size = '16 MB': expected bytes or a size"),
        ({"probes": [{**CANARY, "rate": 0}]}, ": probes[0].rate = 0: expected `float` > 0.0"),
        ({"probes": [{**CANARY, "workloads": ["randread-5k"]}]}, "randread-5k"),
        ({"probes": [CANARY, CANARY]}, ": probes[1].name = 'canary': another probe has this name"),
        ({"probes": [{"type": "iperf", "name": "x"}]}, "iperf"),
        ({"devices": {"nic_exclude": "("}}, ": devices.nic_exclude = '(': not a regular expression: "),
        ({"collectors": {"softnets": False}}, ": collectors.softnets: no such collector; there are: array, baseline, "),
        ({"web": {"listen_address": "here"}}, ": web.listen_address = 'here': expected host:port"),
        ({"baseline": {"judge": {"ssd": "nobody-1999"}}}, "nobody-1999"),
        ({"baseline": {"files": ["/nowhere/site.yaml"]}}, "/nowhere/site.yaml: can't be read: No such file or "),
        ("probes: [}\n", "plumbline.yaml:1: not valid YAML: "),
        ("probes: []\nprobes: []\n", "plumbline.yaml:2: not valid YAML: duplicate key 'probes'"),
        ("- probes\n", "expected `object`, got `array`"),
    ],
    ids=lambda value: re.sub(r"\W+", "-", json.dumps(value))[:40].strip("-") if not isinstance(value, str) else None,
)
def test_a_bad_configuration_is_refused_and_the_old_one_stays(daemon: Daemon, config: object, says: str) -> None:
    shown = daemon.metrics().names()

    line = daemon.reload(config)

    assert says in line
    assert "ERROR" in line
    metrics = daemon.metrics()
    assert metrics.get("plumbline_config_last_reload_successful") == 0
    assert metrics.names() == shown
    assert daemon.get("/-/ready").status == 200
    reason = line.partition("stays: ")[2].strip()
    assert " ".join(reason.split()) in daemon.page()

    assert daemon.reload(QUIET).endswith("reloaded\n")
    assert daemon.metrics().get("plumbline_config_last_reload_successful") == 1
    assert reason not in daemon.page()


def test_a_changed_file_is_noticed_and_so_is_its_loss(daemon: Daemon) -> None:
    file = write_config(daemon.storage.parent, {**QUIET, "collectors": {"softnet": False}})
    eventually(lambda: not daemon.metrics().series("plumbline_softnet_packets_processed_total"), within_s=8)

    file.unlink()
    eventually(lambda: daemon.metrics().get("plumbline_config_last_reload_successful") == 0, within_s=8)
    assert f"{file}: can't be read: No such file or directory" in daemon.said()
    assert not daemon.metrics().series("plumbline_softnet_packets_processed_total")

    daemon.reload(QUIET)


def test_probes_whose_plan_is_unchanged_go_on_undisturbed(folder: Path) -> None:
    def count() -> float:
        return daemon.metrics().total("plumbline_canary_latency_seconds_count")

    config = {"probes": [CANARY]}
    with running(folder, config=config) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1)
        worker, before = daemon.worker(), count()

        fio = {"type": "fio", "name": "fio-new", "workload": "randwrite-4k-qd1-j1", "rate_iops": 10}
        daemon.reload({"probes": [CANARY, fio], "collectors": {"softnet": False}})

        assert daemon.worker() == worker
        assert count() >= before
        metrics = daemon.metrics()
        assert metrics.labels("plumbline_probe_info", "probe") == {"canary", "fio-new"}
        assert metrics.get("plumbline_probe_runs_total", probe="fio-new", result="success") == 0
        assert metrics.get("plumbline_baseline_missing", probe="fio-new") == 1
        assert "fio-new" in daemon.page()

        # another plan is another canary: its counts start afresh, in the same file
        daemon.reload({"probes": [{**CANARY, "rate": 20}]})
        assert daemon.metrics().labels("plumbline_probe_info", "probe") == {"canary"}
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1)
        assert daemon.worker() != worker

        daemon.reload({"probes": [{**CANARY, "enabled": False}]})
        assert daemon.children() == []
        assert daemon.metrics().series("plumbline_probe_info") == []
        assert "No probe is configured" in daemon.page()


def test_what_needs_a_restart_is_said(folder: Path) -> None:
    with running(folder, config=QUIET) as daemon:
        daemon.reload({**QUIET, "web": {"max_requests": 7}})

        assert "web.* and storage_path take effect at the next restart" in daemon.said()
        assert daemon.metrics().get("plumbline_config_last_reload_successful") == 1


def test_flags_hold_over_every_file(folder: Path) -> None:
    with running(folder, "--no-collector.softnet", config={**QUIET, "collectors": {"softnet": True}}) as daemon:
        assert daemon.metrics().get("plumbline_collector_success", collector="softnet") is None
        daemon.reload(QUIET)
        assert daemon.metrics().get("plumbline_collector_success", collector="softnet") is None
