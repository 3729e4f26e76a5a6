"""What a claim leaves in the storage path, and what the daemon takes of what stands there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline import cli
from plumbline.background.claims import ClaimWatch
from plumbline.claims import first_write
from plumbline.claims.claim_file import (
    MAX_BYTES,
    MOST,
    ClaimState,
    add_result,
    identity_of,
    parse_claim,
    read_claims,
)
from plumbline.collectors import probe
from plumbline.core.storage_names import reserved
from plumbline.errors import ParseError, StateError
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.state import StateStore

STATE = ClaimState("fast", "rook-ceph-block", 21600.0, 300.0)
IDENTITY = identity_of("fast", "rook-ceph-block")
FILE = "volume-claim.fast.json"


def result(started: float, seconds: float | None) -> ProbeResult:
    latency = {} if seconds is None else {"mean": seconds, "p50": seconds}
    operations = () if seconds is None else (OperationResult(operation="total", latency=latency, bins=((seconds, 1),)),)
    return IDENTITY.result(
        tool_version="v1.34.4",
        started=started,
        duration=3.0,
        outcome=Outcome.FAILURE if seconds is None else Outcome.SUCCESS,
        operations=operations,
        message="" if seconds else "not bound within 300 s",
    )


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """As a daemon leaves it."""
    store = StateStore(tmp_path / "storage")
    store.open()
    store.close()
    return tmp_path / "storage"


def test_results_add_up_over_jobs_and_the_daemon_shows_them_like_its_own(storage: Path) -> None:
    for started, seconds in ((1000.0, 4.0), (2000.0, 6.0), (3000.0, 5.0), (4000.0, None)):
        add_result(storage, STATE, result(started, seconds))
    assert (storage / FILE).stat().st_mode & 0o777 == 0o640
    watch = ClaimWatch(storage, "container")
    assert watch.statuses() == []
    watch.slot.refresh()
    shown = {
        (spec.name, labels): value
        for spec, labels, value in probe.samples(probe.ProbesReading(tuple(watch.statuses()), now=4010.0))
    }
    place = ("claim/fast", "client", "rook-ceph-block", "claim-1g-write-4k", "total")
    assert shown["plumbline_probe_latency_seconds", (*place, "mean")] == 5.0
    assert shown["plumbline_probe_median_of_three_latency_seconds", (*place, "p50")] == 5.0
    assert shown["plumbline_probe_success", ("claim/fast",)] == 0
    assert shown["plumbline_probe_last_run_timestamp_seconds", ("claim/fast",)] == 4003.0
    assert shown["plumbline_probe_runs_total", ("claim/fast", "success")] == 3
    assert shown["plumbline_probe_runs_total", ("claim/fast", "failure")] == 1
    assert shown["plumbline_probe_target_info", ("claim/fast", "rook-ceph-block", "")] == 1


def test_probe_list_has_them(storage: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_result(storage, STATE, result(1000.0, None))
    (tmp_path / "plumbline.yaml").write_text("probes: []")
    flags = ["--storage.path", str(storage), "--config.file", str(tmp_path / "plumbline.yaml")]
    assert cli.main(["probe", "list", *flags, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["probes"]
    assert (row["probe"], row["type"], row["layer"], row["schedule"]) == ("claim/fast", "claim", "client", "every 6h")
    assert (row["result"], row["message"]) == ("failure", "not bound within 300 s")
    assert cli.main(["probe", "list", *flags]) == 0
    assert "claim/fast: not bound within 300 s" in capsys.readouterr().out


def test_another_class_under_the_same_name_starts_anew(storage: Path) -> None:
    add_result(storage, STATE, result(1000.0, 4.0))
    other = ClaimState("fast", "slow", 21600.0, 300.0)
    slow = identity_of("fast", "slow")
    one = slow.result(tool_version="", started=2.0, duration=1.0, outcome=Outcome.SUCCESS)
    assert add_result(storage, other, one).record.runs == {Outcome.SUCCESS: 1}


def test_where_no_daemon_has_been_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="start the daemon on this node first"):
        add_result(tmp_path, STATE, result(1.0, 1.0))
    assert list(tmp_path.iterdir()) == []
    assert read_claims(tmp_path / "missing") == ((), ())


def test_a_damaged_file_is_set_aside_and_the_result_kept(storage: Path) -> None:
    (storage / FILE).write_text('{"version":1,"storage_class":"x"')
    assert add_result(storage, STATE, result(1.0, 2.0)).record.runs == {Outcome.SUCCESS: 1}
    assert (storage / f"{FILE}.damaged-1").read_text() == '{"version":1,"storage_class":"x"'
    ((found,), wrong) = read_claims(storage)
    assert (found.name, wrong) == ("fast", ())


@pytest.fixture
def good(storage: Path) -> dict[str, Any]:
    add_result(storage, STATE, result(1000.0, 4.0))
    found: dict[str, Any] = json.loads((storage / FILE).read_bytes())
    return found


def changed(content: dict[str, Any], path: str, value: object) -> bytes:
    *steps, last = path.split("/")
    node: Any = content
    for step in steps:
        node = node[int(step)] if isinstance(node, list) else node[step]
    node[last] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("storage_class", 'x"} 1\nfake_metric{'),
        ("storage_class", "other"),
        ("interval_s", 0),
        ("interval_s", 1e300),
        ("timeout_s", -1),
        ("record/result/probe", "canary"),
        ("record/result/layer", "osd"),
        ("record/result/device_class", "x" * 300),
        ("record/result/workload", "randwrite-4k-qd1-j1-dsync"),
        ("record/result/started", -1.0),
        ("record/result/message", "x" * 2000),
        ("record/result/tool_version", "x" * 100),
        ("record/success/operations/0/operation", "read"),
        ("record/success/operations/0/latency", {"p42": 1.0}),
        ("record/success/operations/0/latency", {"p50": -1.0}),
        ("record/success/operations/0/latency", {"p50": 1e9}),
        ("record/success/operations/0/iops", 5.0),
        ("record/recent/0/0/operation", "fake"),
        ("record/recent/0/0/latency", {"fake": 1.0}),
        ("record/totals/fake", {}),
        ("record/skipped", {"fake reason": 1}),
    ],
)
def test_what_no_claim_would_write_is_refused(good: dict[str, Any], path: str, value: object) -> None:
    parse_claim(json.dumps(good).encode(), name="fast", source="x")
    with pytest.raises(ParseError, match=r"^x: "):
        parse_claim(changed(good, path, value), name="fast", source="x")


def test_a_file_of_another_name_or_another_user_or_too_large_is_named_once(
    storage: Path, good: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (storage / "volume-claim.slow.json").write_text(json.dumps(good))  # says that it is fast
    (storage / "volume-claim.No_Name.json").write_text("{}")
    (storage / "volume-claim.big.json").write_bytes(b" " * (MAX_BYTES + 1))
    (storage / "volume-claim.link.json").symlink_to(storage / FILE)
    (found, wrong) = read_claims(storage)
    assert [each.name for each in found] == ["fast"]
    assert len(wrong) == 4
    logged = len(caplog.records)
    assert logged == 4
    assert read_claims(storage, known=wrong)[1] == wrong
    assert len(caplog.records) == logged


def test_only_so_many_are_read(storage: Path, good: dict[str, Any]) -> None:
    for number in range(MOST + 5):
        (storage / f"volume-claim.a{number:03d}.json").write_text("{}")
    found, wrong = read_claims(storage)
    assert found == ()
    assert wrong[-1].endswith(f"more than {MOST} results of claims; only the first are shown")
    assert len(wrong) == MOST + 1


def test_no_probe_may_be_called_like_such_a_file() -> None:
    assert reserved("volume-claim.fast.json")
    assert not reserved("volume-claims")


def test_the_first_write_says_how_long_it_took(tmp_path: Path) -> None:
    said = tmp_path / "said"
    (tmp_path / "volume").mkdir()
    assert first_write.main([str(tmp_path / "volume")], str(said)) == 0
    assert 0 < json.loads(said.read_text())["write_ns"] < 60e9
    assert list((tmp_path / "volume").iterdir()) == []


def test_a_volume_that_is_handed_out_again_with_what_was_on_it(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "plumbline-first-write").write_bytes(b"of an earlier claim")
    for _ in range(2):
        assert first_write.main([str(tmp_path / "volume")], str(tmp_path / "said")) == 0
    assert [each.name for each in (tmp_path / "volume").iterdir()] == ["plumbline-first-write"]


def test_a_volume_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    said = tmp_path / "said"
    assert first_write.main([str(tmp_path / "none")], str(said)) == 1
    error = json.loads(said.read_text())["error"]
    assert error.startswith(f"{tmp_path}/none/plumbline-first-write-")
    assert error.endswith(": No such file or directory")
