"""The wait for a CPU, from the file to the samples and to what is judged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.checks.model import Finding
from plumbline.checks.run import Judge
from plumbline.collectors import runqueue
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.kernel.schedstat import RunQueue, RunQueueReading, parse_schedstat, read_schedstat

FIXTURE = Path(__file__).parents[2] / "fixtures" / "schedstat-version-17"
VERSION = "version 15\ntimestamp 1\n"
WORDS = st.sampled_from(("version 15\n", "version 14\n", "cpu0", "cpu", "domain0", "²", "١", "-1", "7", "\n", " 1" * 8))


def test_each_cpu_in_seconds() -> None:
    reading = read_schedstat(Roots.under(FIXTURE))
    assert [(spec.name, *labels, value) for spec, labels, value in runqueue.COLLECTOR.samples(reading)] == [
        ("plumbline_cpu_run_queue_wait_seconds_total", "0", 96.430211953),
        ("plumbline_cpu_run_queue_wait_seconds_total", "1", 7.255880872),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "^s: not a version: ''"),
        ("version 14\n", "^s:1: version 14, at least 15 expected"),
        (VERSION, "^s: no CPU"),
        (f"{VERSION}cpu0 0 0 1 1 1 1 5 6\n", "^s:3: not the nine numbers of a CPU: 'cpu0 0 0"),
        (f"{VERSION}cpu0 0 0 1 1 1 1 5 -6 7\n", "^s:3: not the nine numbers"),
        (f"{VERSION}cpu0 0 0 1 1 1 1 5 6 7\ncpu0 0 0 1 1 1 1 5 6 7\n", "^s:4: CPU 0 is listed twice"),
    ],
)
def test_what_is_no_such_file(text: str, line: str) -> None:
    with pytest.raises(ParseError, match=line):
        parse_schedstat(text, source="s")


def test_a_later_version_may_have_more_columns() -> None:
    text = f"{VERSION}cpu12 0 0 1 1 1 1 5 6 7 8 new\n"
    assert parse_schedstat(text, source="s") == (RunQueue(12, 6),)


@given(st.text() | st.lists(WORDS).map(" ".join))
@example(f"{VERSION}cpu١ 0 0 1 1 1 1 5 6 7\n")
def test_a_reading_or_one_clear_error(text: str) -> None:
    with suppress(ParseError):
        assert all(queue.waited_ns >= 0 for queue in parse_schedstat(text, source="s"))


def test_a_kernel_without_it(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="schedstat: No such file"):
        read_schedstat(Roots.under(tmp_path))


def judged(*waited_ns: dict[int, int], osds: bool = True) -> list[Finding]:
    """What the last of these looks says, 100 seconds apart."""
    judge, findings = Judge(), ()
    for number, cpus in enumerate(waited_ns):
        queues = RunQueueReading(RunQueue(cpu, ns) for cpu, ns in cpus.items())
        devices = DevicesReading((), {"sda": "osd.1"} if osds else {})
        findings = judge.look(Readings({RunQueueReading: queues, DevicesReading: devices}), number * 100.0)
    return [finding for finding in findings if finding.check == "host.run-queue"]


def test_cpus_on_which_tasks_wait() -> None:
    began, later = {0: 5, 1: 7, 2: 0}, {0: 100_000_000_005, 1: 99_999_999_000, 2: 250_000_000_000}
    (finding,) = judged(began, later)
    assert not finding.met
    assert finding.actual == "tasks waited long for 2 of 3 CPUs: CPU 2 (2.5 at a time), CPU 0 (1.0 at a time)"
    assert finding.expected == "less than 1 waiting task on each CPU"


def test_cpus_on_which_none_waits_and_what_is_not_known() -> None:
    (finding,) = judged({0: 5}, {0: 99_000_000_000})
    assert (finding.met, finding.actual) == (True, "tasks waited long for no CPU")
    assert judged({0: 5}) == []
    assert judged({0: 5}, {0: 5_000_000_000_000}, osds=False) == []
