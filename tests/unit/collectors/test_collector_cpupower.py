"""Frequency governor, idle states and huge pages, from the files to the samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.collectors import cpupower, hugepages
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.cpupower import CpuPower, IdleState, read_cpu_power
from plumbline.sources.kernel.hugepages import HugePages, parse_choice, read_hugepages

FIXTURE = Path(__file__).parents[2] / "fixtures" / "cpu-power"


def state(root: Path, cpu: int, number: int, **files: str) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}"
    folder.mkdir(parents=True)
    for name, text in {"name": "C1", "latency": "2", "disable": "0", "usage": "7", **files}.items():
        (folder / name).write_text(f"{text}\n")


def test_two_cpus_are_one_host() -> None:
    reading = read_cpu_power(Roots.under(FIXTURE))
    assert reading == CpuPower(
        {("intel_pstate", "powersave"): 2},
        (
            IdleState(0, "POLL", 0, 2, 800),
            IdleState(1, "C1", 2, 2, 170_388),
            IdleState(2, "C1E", 10, 2, 3_520_355),
            IdleState(3, "C6", 133, 1, 4_219_675),
        ),
    )
    got = [(spec.name, *labels, value) for spec, labels, value in cpupower.samples(reading)]
    assert got[0] == ("plumbline_cpu_governor_cpus", "intel_pstate", "powersave", 2)
    assert got[-3:] == [
        ("plumbline_cpu_idle_allowed_cpus", "C6", 1),
        ("plumbline_cpu_idle_exit_latency_seconds", "C6", 133e-6),
        ("plumbline_cpu_idle_entries_total", "C6", 4_219_675),
    ]


def test_a_malformed_state_is_skipped_and_named(tmp_path: Path) -> None:
    state(tmp_path, 0, 0)
    state(tmp_path, 0, 1, latency="soon")
    skipped: list[tuple[str, str]] = []
    reading = read_cpu_power(Roots.under(tmp_path), on_skip=lambda *what: skipped.append(what))
    assert [each.name for each in reading.states] == ["C1"]
    assert len(skipped) == 1
    assert skipped[0][0].endswith("cpu0/cpuidle/state1")
    assert "not a number: 'soon'" in skipped[0][1]


def test_series_are_bounded_whatever_a_kernel_has(tmp_path: Path) -> None:
    for number in range(14):
        state(tmp_path, 0, number, name=f"S{number}")
    reading = read_cpu_power(Roots.under(tmp_path))
    assert [each.number for each in reading.states] == list(range(10))


def test_a_guest_has_neither(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="its host's"):
        read_cpu_power(Roots.under(tmp_path))


def test_huge_pages() -> None:
    reading = read_hugepages(Roots.under(FIXTURE))
    assert reading == HugePages("madvise", "madvise")
    assert list(hugepages.samples(reading)) == [(hugepages.INFO, ("madvise", "madvise"), 1)]


@pytest.mark.parametrize("text", ["always madvise never", "[always] [never]", "", "[]"])
def test_a_text_without_one_choice(text: str) -> None:
    with pytest.raises(ParseError, match="not a choice in brackets"):
        parse_choice(text, source="enabled")


def test_a_kernel_without_huge_pages(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no transparent huge pages"):
        read_hugepages(Roots.under(tmp_path))
