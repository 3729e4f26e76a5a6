"""State survives restarts and crashes, never blocks a start, and is one daemon's alone."""

import os
import shutil
import subprocess

import pytest

from plumbline.errors import StateError
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.state import ProbeRecord, StateStore

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


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"schema_version": 99, "probes": {}}', b"[]", b"\0" * 50])
def test_a_damaged_file_is_kept_aside_and_the_daemon_starts(tmp_path, damage, caplog):
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
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount], check=True)
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
