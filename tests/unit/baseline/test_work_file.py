"""The work file of a recording: what goes on after an interruption, and what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.statistics import RunFigures
from plumbline.baseline.record.work_file import KEEP_S, KeptRun, Resumed, WorkFile
from plumbline.core.histogram import HistogramValue
from plumbline.core.storage_names import WORK_FILE
from plumbline.errors import StateError

NOW = 1_760_000_000.0
PRINT = Fingerprint(kernel="6.12.1", fio="3.33", disks={"S1": "P5510 9CV1"})
STEPS = {"rtt": "aaaaaaaaaaaa", "fio": "bbbbbbbbbbbb"}


def work(folder: Path, *, host: str = "stor01", release: str = "0.1.0", fingerprint: Fingerprint = PRINT) -> WorkFile:
    return WorkFile(folder, release=release, host=host, fingerprint=fingerprint)


def run(step: str, *, at: float = NOW, parameters: str = "") -> KeptRun:
    histogram = HistogramValue((0.001, 0.01), [3, 4], 5, 0.2)
    figures = (
        RunFigures(probe=step, workload="w", operation="read", histogram=histogram, disturbed="sda was busy"),
        RunFigures(probe=step, workload="w", operation="write", bins=((0.001, 5),), latency={"p50": 0.001}, iops=9.5),
        RunFigures(probe=step, workload="w", operation="read", sought=(0.002, 99.0), depth=7, iops=1.0),
    )
    chosen = parameters or STEPS[step]
    return KeptRun(step=step, parameters=chosen, finished=at, figures=figures, tool="fio", tool_version="3.33")


def begun(folder: Path, *runs: KeptRun, **other: object) -> None:
    """An earlier recording that was killed."""
    earlier = work(folder, **other)
    assert earlier.resume(STEPS, now=NOW) == Resumed(())
    for each in runs:
        earlier.keep(each)


def plain(resumed: Resumed) -> list[tuple[str, float]]:
    return [(each.step, each.finished) for each in resumed.runs]


def test_every_figure_comes_back_as_it_was(tmp_path: Path):
    begun(tmp_path, run("rtt"), run("fio"))
    resumed = work(tmp_path).resume(STEPS, now=NOW + 60)
    before, after = run("rtt").figures, resumed.runs[0].figures
    assert list(after[0].histogram.cumulative) == list(before[0].histogram.cumulative)
    assert after[0].histogram.edges == before[0].histogram.edges
    assert after[1:] == before[1:]
    assert plain(resumed) == [("rtt", NOW), ("fio", NOW)]
    assert resumed.line == "continuing with 2 finished runs of an earlier recording; --restart measures them again"


def test_nothing_to_go_on_with_is_no_line(tmp_path: Path):
    assert work(tmp_path).resume(STEPS, now=NOW) == Resumed(())


def test_another_environment_is_another_recording(tmp_path: Path):
    for other, why in (
        ({"host": "stor02"}, "it was made on another host (stor02)"),
        ({"release": "0.0.9"}, "it was made by another release (0.0.9)"),
        ({"fingerprint": Fingerprint(kernel="6.11.0")}, "kernel was 6.11.0, is 6.12.1"),
    ):
        begun(tmp_path, run("rtt"), **other)
        resumed = work(tmp_path).resume(STEPS, now=NOW)
        assert resumed.runs == ()
        assert resumed.line == f"the earlier recording is not continued: {why}; everything is measured again"
        (tmp_path / WORK_FILE).unlink()


def test_what_was_not_known_then_is_no_other_environment(tmp_path: Path):
    begun(tmp_path, run("rtt"), fingerprint=Fingerprint(kernel="6.12.1"))
    assert len(work(tmp_path).resume(STEPS, now=NOW).runs) == 1


def test_old_runs_and_those_of_other_parameters_are_made_anew_and_said(tmp_path: Path):
    begun(tmp_path, run("rtt", at=NOW - KEEP_S - 1), run("rtt"), run("fio", parameters="cccccccccccc"))
    resumed = work(tmp_path).resume(STEPS, now=NOW)
    assert plain(resumed) == [("rtt", NOW)]
    assert resumed.line.endswith("discarded: 1 older than 24 h, 1 of fio (its parameters changed)")


def test_a_run_of_the_future_is_not_believed(tmp_path: Path):
    begun(tmp_path, run("rtt", at=NOW + 3600))
    assert work(tmp_path).resume(STEPS, now=NOW).runs == ()


def test_runs_of_steps_that_are_not_asked_for_stay(tmp_path: Path):
    begun(tmp_path, run("rtt"), run("fio"))
    only = work(tmp_path)
    assert plain(only.resume({"rtt": STEPS["rtt"]}, now=NOW)) == [("rtt", NOW)]
    only.keep(run("rtt", at=NOW + 1))
    assert plain(work(tmp_path).resume(STEPS, now=NOW + 2)) == [("rtt", NOW), ("fio", NOW), ("rtt", NOW + 1)]


def test_restart_forgets_what_is_asked_for_and_nothing_else(tmp_path: Path):
    begun(tmp_path, run("rtt"), run("fio"))
    again = work(tmp_path)
    again.forget(frozenset({"fio"}), now=NOW)
    assert plain(again.resume(STEPS, now=NOW)) == [("rtt", NOW)]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"version": 1}', b"[]"])
def test_a_damaged_file_is_said_and_replaced(tmp_path: Path, content: bytes):
    (tmp_path / WORK_FILE).write_bytes(content)
    again = work(tmp_path)
    resumed = again.resume(STEPS, now=NOW)
    assert resumed.runs == ()
    assert "everything is measured again" in resumed.line
    assert "\n" not in resumed.line
    again.keep(run("rtt"))
    assert json.loads((tmp_path / WORK_FILE).read_bytes())["host"] == "stor01"


def test_a_run_that_cannot_be_kept_ends_the_recording(tmp_path: Path):
    again = work(tmp_path / "gone")
    with pytest.raises(StateError, match=r"can't be written: .*; the runs would be lost"):
        again.keep(run("rtt"))


def test_it_is_gone_when_the_baseline_is_written(tmp_path: Path):
    begun(tmp_path, run("rtt"))
    again = work(tmp_path)
    again.remove()
    again.remove()
    assert list(tmp_path.iterdir()) == []
