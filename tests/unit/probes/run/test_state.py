"""State survives restarts and crashes, never blocks a start, and is one daemon's alone."""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from plumbline.core.wall_clock import WallClock
from plumbline.errors import StateError
from plumbline.probes.run.histogram import EDGES, OperationTotals
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.state import HISTORY_RUNS, SCHEMA_VERSION, ProbeRecord, StateStore, kept_as, read_state

RESULT = ProbeResult(
    probe="fio", layer="disk", device_class="ssd", workload="randread-4k-qd1-j1", config_hash="f8ebba40cbad",
    tool="fio", tool_version="3.33", started=1_700_000_000.5, duration=10.25, outcome=Outcome.SUCCESS,
    operations=(OperationResult(operation="read", iops=812.5, throughput=3_328_000.0, latency={"p50": 0.000412}),),
)  # fmt: skip


def failed(message):
    return ProbeResult(
        probe="fio", layer="disk", device_class="ssd", workload="w", config_hash="h", tool="fio", tool_version="3.33",
        started=1.0, duration=1.0, outcome=Outcome.FAILURE, message=message,
    )  # fmt: skip


def opened(path):
    store = StateStore(path)
    store.open()
    return store


def test_results_counters_and_skips_survive_a_restart(tmp_path):
    store = opened(tmp_path / "state")
    store.put("fio", ProbeRecord().with_skip("load", "load 9 per CPU").with_result(RESULT))
    store.close()
    again = opened(tmp_path / "state").get("fio")
    assert again.result == RESULT
    assert again.success == RESULT
    assert again.runs == {Outcome.SUCCESS: 1}
    assert again.skipped == {"load": 1}
    assert again.last_skip == ""


def test_a_failure_keeps_the_last_success_and_the_newest_failures():
    record = ProbeRecord().with_result(RESULT)
    for n in range(7):
        record = record.with_result(failed(f"run {n}"))
    assert record.success == RESULT
    assert record.result is not None
    assert record.result.message == "run 6"
    assert [f.message for f in record.failures] == ["run 6", "run 5", "run 4", "run 3", "run 2"]
    assert record.runs == {Outcome.SUCCESS: 1, Outcome.FAILURE: 7}


DAMAGES = [b"", b"{", b"\xff\xfe", b'{"schema_version": 0, "probes": {}}', b"[]", b"\0" * 50]
DAMAGES += [b'{"schema_version": 3, "probes": {"f\xff": {}}}']  # one damaged byte inside a text


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_kept_aside_and_the_daemon_starts(tmp_path, damage, caplog):
    opened(tmp_path).close()
    (tmp_path / "state.json").write_bytes(damage)
    store = opened(tmp_path)
    assert store.get("fio") == ProbeRecord()
    assert (tmp_path / "state.json.damaged-1").read_bytes() == damage
    assert "kept as state.json.damaged-1" in caplog.text


def test_a_second_daemon_is_refused_in_one_line(tmp_path):
    store = opened(tmp_path)
    with pytest.raises(StateError, match="another plumbline uses this storage path"):
        opened(tmp_path)
    store.close()
    opened(tmp_path).close()


def test_a_directory_that_cant_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"can't be used for state: Not a directory; choose another with --storage"):
        opened(tmp_path / "file" / "state")


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system: needs root")
def test_a_full_disk_keeps_results_in_memory_and_recovers(tmp_path, caplog):
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", mount], check=True)
    try:
        store = opened(mount)
        store.put("fio", ProbeRecord().with_result(RESULT))
        filler = mount / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(b"x" * 200_000)
        store.put("fio", ProbeRecord().with_result(RESULT).with_result(failed("later")))
        store.put("fio", ProbeRecord().with_result(RESULT).with_result(failed("later still")))
        assert store.save_failed
        assert caplog.text.count("can't be written") == 1
        assert store.get("fio").result.message == "later still"
        filler.unlink()
        store.put("fio", store.get("fio"))
        assert not store.save_failed
        store.close()
        assert opened(mount).get("fio").result.message == "later still"
    finally:
        subprocess.run(["umount", "-l", mount], check=True)
        shutil.rmtree(mount, ignore_errors=True)


def test_probes_no_longer_configured_are_dropped(tmp_path):
    store = opened(tmp_path)
    store.put("old", ProbeRecord().with_result(RESULT))
    store.put("kept", ProbeRecord().with_result(RESULT))
    store.forget_others(frozenset({"kept"}))
    assert store.get("old") == ProbeRecord()
    assert store.get("kept").result == RESULT


# --- totals over runs

BINS = tuple((0.0001 * 1.008**n, 3) for n in range(400))


def measured(*, config_hash="f8ebba40cbad", device_class="ssd", outcome=Outcome.SUCCESS, bins=BINS):
    operation = OperationResult(operation="read", iops=812.5, bins=bins)
    return msgspec.structs.replace(
        RESULT, config_hash=config_hash, device_class=device_class, outcome=outcome, operations=(operation,)
    )


def test_bins_are_added_up_and_not_remembered_run_by_run(tmp_path):
    store = opened(tmp_path)
    record = ProbeRecord()
    for _ in range(50):
        record = record.with_result(measured())
    record = record.with_result(measured(outcome=Outcome.FAILURE))
    store.put("fio", record)
    store.close()

    kept = opened(tmp_path).get("fio")
    assert (
        kept.result.operations[0].bins == kept.success.operations[0].bins == kept.failures[0].operations[0].bins == ()
    )
    histogram = kept.totals["read"].histogram()
    assert histogram.count == histogram.cumulative[-1] == 50 * 3 * len(BINS)
    assert histogram.sum == pytest.approx(50 * sum(seconds * count for seconds, count in BINS))
    # 400 bins of 50 runs: a number for each standard edge at most
    assert len(kept.totals["read"].counts) <= len(EDGES)
    assert (tmp_path / "state.json").stat().st_size < 8000


@pytest.mark.parametrize("change", [{"config_hash": "other"}, {"device_class": "nvme"}])
def test_another_experiment_begins_its_totals_anew(change):
    record = ProbeRecord().with_result(measured()).with_result(measured(**change, bins=((0.001, 7),)))
    assert record.totals["read"].histogram().count == 7


def test_what_tells_no_distribution_has_no_totals():
    assert ProbeRecord().with_result(RESULT).totals == {}


def test_beyond_the_last_edge_is_counted_and_edges_of_another_release_still_count():
    totals = OperationTotals(counts={17_123: 5}).plus(((1e4, 2),))
    histogram = totals.histogram()
    assert (histogram.cumulative[-1], histogram.count) == (5, 7)


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_earlier_release_is_read(tmp_path, version):
    known = {"result": msgspec.to_builtins(RESULT), "runs": {"success": 3}}
    if version == 2:
        known |= {"totals_of": "f8ebba40cbad ssd", "ticked": 5.0}
    old = {"schema_version": version, "probes": {"fio": known}}
    (tmp_path / "state.json").write_bytes(msgspec.json.encode(old))
    store = opened(tmp_path)
    record = store.get("fio")
    assert (record.result, record.runs, record.totals) == (RESULT, {Outcome.SUCCESS: 3}, {})
    assert record.recent == ()
    assert record.with_result(RESULT).recent == (RESULT.operations,)
    store.put("fio", record)
    assert b'"schema_version":3' in (tmp_path / "state.json").read_bytes()
    assert not list(tmp_path.glob("*.damaged-*"))


OLD = Path(__file__).parents[3] / "fixtures" / "state"
"""Written by daemons of earlier commits: ORIGIN.md there."""


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_an_earlier_daemon_wrote_is_read_and_kept_beside_the_new_file(tmp_path, version, caplog):
    caplog.set_level("INFO")
    written = (OLD / f"version-{version}.json").read_bytes()
    assert msgspec.json.decode(written)["schema_version"] == version
    shutil.copy(OLD / f"version-{version}.json", tmp_path / "state.json")
    assert read_state(tmp_path).keys() == {"fio-randread-4k"}
    store = opened(tmp_path)
    record = store.get("fio-randread-4k")
    assert record.runs[Outcome.SUCCESS] >= 7
    assert record.success.operations[0].iops > 1000
    assert record.success == record.result
    assert (record.totals != {}, len(record.recent)) == (version > 1, 3 if version > 2 else 0)
    # until something is written the old file is the state
    assert (tmp_path / "state.json").read_bytes() == written

    store.put("fio-randread-4k", record)
    store.put("fio-randread-4k", record.with_skip("load", "busy"))
    store.close()
    assert msgspec.json.decode((tmp_path / "state.json").read_bytes())["schema_version"] == SCHEMA_VERSION
    kept = kept_as(tmp_path / "state.json", version)
    if version < SCHEMA_VERSION:
        assert kept.read_bytes() == written
        assert caplog.text.count(f"the previous file is state.json.version-{version}") == 1
    else:
        assert not kept.exists()
    again = opened(tmp_path).get("fio-randread-4k")
    assert (again.success, again.skipped) == (record.success, {"load": 1})


def test_a_full_disk_costs_the_old_file_nothing(tmp_path):
    shutil.copy(OLD / "version-1.json", tmp_path / "state.json")
    written = (tmp_path / "state.json").read_bytes()
    store = opened(tmp_path)
    (tmp_path / "state.json.version-1").mkdir()  # where the old one is to be kept nothing can be written
    store.put("fio", ProbeRecord())
    assert store.save_failed
    assert (tmp_path / "state.json").read_bytes() == written
    (tmp_path / "state.json.version-1").rmdir()
    store.put("fio", ProbeRecord())
    assert not store.save_failed
    assert (tmp_path / "state.json.version-1").read_bytes() == written


NEWER = b'{"schema_version": 4, "probes": ["another shape"], "more": {}}'


def test_state_of_a_newer_release_is_refused_and_never_touched(tmp_path):
    opened(tmp_path).close()
    (tmp_path / "state.json").write_bytes(NEWER)
    with pytest.raises(StateError) as refused:
        opened(tmp_path)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path}/state.json: schema version 4 was written by a newer Plumbline; this one (")
    assert said.endswith(
        "reads 3 and below. Install the newer one again, or move the file away; the daemon then starts afresh"
    )
    with pytest.raises(StateError, match="written by a newer"):
        read_state(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".plumbline-storage", "lock", "state.json"]
    assert (tmp_path / "state.json").read_bytes() == NEWER

    # what it was before the upgrade is named, and the directory is free for whoever comes next
    shutil.copy(OLD / "version-2.json", tmp_path / "state.json.version-2")
    with pytest.raises(StateError, match=r"state\.json\.version-2 next to it is the last file of this schema"):
        opened(tmp_path)
    (tmp_path / "state.json.version-2").replace(tmp_path / "state.json")
    assert opened(tmp_path).get("fio-randread-4k").runs


def test_the_figures_of_the_last_three_good_runs_are_kept(tmp_path):
    def run(iops, **changes):
        figures = OperationResult(operation="read", iops=iops, bins=BINS)
        return msgspec.structs.replace(RESULT, operations=(figures,), **changes)

    record = ProbeRecord()
    for iops in (1.0, 2.0, 3.0):
        record = record.with_result(run(iops))
    record = record.with_result(failed("no space")).with_result(run(4.0, config_hash="f8ebba40cbad"))
    store = opened(tmp_path)
    store.put("fio", record)
    store.close()
    # the failed one was of other parameters: what came before it is another experiment's
    assert [each[0].iops for each in opened(tmp_path).get("fio").recent] == [4.0]

    record = ProbeRecord()
    for iops in (1.0, 2.0, 3.0, 4.0):
        record = record.with_result(run(iops))
    record = record.with_result(msgspec.structs.replace(RESULT, outcome=Outcome.FAILURE, operations=()))
    assert [each[0].iops for each in record.recent] == [4.0, 3.0, 2.0]
    assert all(each[0].bins == () for each in record.recent)
    assert record.with_result(run(5.0, device_class="nvme")).recent[0][0].iops == 5.0
    assert len(record.with_result(run(5.0, device_class="nvme")).recent) == 1


def test_it_is_read_beside_the_daemon_without_a_trace(tmp_path):
    assert read_state(tmp_path / "nowhere") == {}
    store = opened(tmp_path)
    store.put("fio", ProbeRecord().with_skip("load", "busy", at=1_700_000_000.0))
    before = sorted(path.name for path in tmp_path.iterdir())
    assert read_state(tmp_path)["fio"].ticked == 1_700_000_000.0
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    (tmp_path / "state.json").write_bytes(b"{")
    with pytest.raises(StateError, match="unreadable state"):
        read_state(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_leading_figure_of_the_last_runs_is_kept_as_a_history(tmp_path):
    def run(iops, **changes):
        figures = OperationResult(operation="read", latency={"p50": 1 / iops}, iops=iops)
        return msgspec.structs.replace(RESULT, operations=(figures,), **changes)

    record = ProbeRecord()
    for iops in range(1, 2 * HISTORY_RUNS):
        record = record.with_result(run(float(iops)))
    record = record.with_result(msgspec.structs.replace(RESULT, outcome=Outcome.FAILURE, operations=()))
    store = opened(tmp_path)
    store.put("fio", record)
    store.close()
    kept = opened(tmp_path).get("fio")
    assert kept.history == {"read": tuple(1 / iops for iops in range(HISTORY_RUNS, 2 * HISTORY_RUNS))}
    assert kept.with_result(run(5.0, config_hash="other")).history == {"read": (0.2,)}


@pytest.mark.parametrize(
    ("figures", "leading"),
    [
        ({"latency": {"p50": 1.0, "mean": 2.0}, "iops": 3.0}, ("p50", 1.0)),
        ({"latency": {"mean": 2.0}, "throughput": 3.0}, ("mean", 2.0)),
        ({"throughput": 3.0, "iops": 4.0}, ("throughput", 3.0)),
        ({"iops": 4.0}, ("iops", 4.0)),
        ({"latency": {"p99": 1.0}}, None),
        ({}, None),
    ],
)
def test_one_figure_stands_for_a_run(figures, leading):
    result = OperationResult(operation="read", **figures)
    assert result.leading == leading
    record = ProbeRecord().with_result(msgspec.structs.replace(RESULT, operations=(result,)))
    assert record.history == ({"read": (leading[1],)} if leading else {})


def test_a_clock_that_is_set_changes_no_age(tmp_path):
    now = {"set": 1_700_000_100.0, "elapsed": 0.0}
    clock = WallClock(lambda: now["set"] + now["elapsed"], lambda: now["elapsed"])
    store = StateStore(tmp_path / "state", clock)
    store.open()
    bad = failed("no")
    store.put("fio", ProbeRecord().with_result(RESULT).with_result(bad).with_skip("load", "busy", at=1_700_000_090.0))
    for jump, in_all in ((86400.0, 86400.0), (-2 * 86400.0, -86400.0), (10.0, -86400.0), (86400.0, 0.0)):
        now["set"] += jump
        assert store.follow_clock() == in_all
        record = store.get("fio")
        assert record.success.started == RESULT.started + in_all
        assert record.result.started == record.failures[0].started == bad.started + in_all
        assert record.ticked == 1_700_000_090.0 + in_all
    store.close()


def test_a_success_of_the_future_becomes_old(tmp_path):
    """Its time would hide for years that nothing has succeeded since."""

    def at(now):
        store = StateStore(tmp_path / "state", WallClock(lambda: now, lambda: 0.0))
        store.open()
        return store

    store = at(RESULT.started)
    store.put(
        "fio",
        ProbeRecord().with_result(RESULT).with_result(msgspec.structs.replace(failed("x"), started=RESULT.started)),
    )
    store.close()
    store = at(RESULT.started - 400 * 86400)
    record = store.get("fio")
    assert (record.result, record.failures, record.ticked) == (None, (), None)
    assert record.success.started == RESULT.started - 400 * 86400
    assert record.runs == {Outcome.SUCCESS: 1, Outcome.FAILURE: 1}
    store.close()
    store = at(RESULT.started + 1e6)
    assert store.get("fio").success == RESULT
    store.close()
