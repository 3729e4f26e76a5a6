"""The verdict: what is wrong, in words, and never more than is known."""

import pytest
from msgspec.structs import replace

from plumbline.checks.model import Finding, Fix, Severity
from plumbline.metrics.snapshot import CollectorHealth
from plumbline.sources.ceph.osds import OsdState
from plumbline.status.layers import judge_layers
from plumbline.status.model import Comparison, Level, Loss, Measure, NicRow, OsdRow, ProbeRow, SoftnetRow, StatusModel
from plumbline.status.verdict import HostVerdict, judge

GOOD = ProbeRow(
    "canary", "disk", "nvme", "randread-4k-qd1-j1", "read", True, 0.2,
    Comparison(0.0001, 0.0001, 1.3), Comparison(0.0002, 0.0002, 1.3), "measured", True,
)  # fmt: skip
MODEL = StatusModel("host", "0.1.0", 1000.0, 0.0, probes=(GOOD,))


def verdict(**changes: object) -> HostVerdict:
    model = replace(MODEL, **changes)  # type: ignore[arg-type]
    return judge(model, judge_layers(model))


def probe(**changes: object) -> ProbeRow:
    return replace(GOOD, **changes)  # type: ignore[arg-type]


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_all_is_well_only_where_everything_was_judged() -> None:
    assert verdict() == HostVerdict(Level.GOOD, "Nothing is wrong: every probe performs as accepted")


def test_slower_than_accepted() -> None:
    got = verdict(probes=(GOOD, probe(p50=Comparison(0.00019, 0.0001, 1.3), p99=Comparison(0.0024, 0.0002, 1.3))))
    assert got.level is Level.BAD
    assert plain(got.headline) == (
        "canary: read randread-4k-qd1-j1 is slower than accepted: p50 1.9× slower (190 µs, accepted 100 µs), "
        "p99 12× slower (2.4 ms, accepted 200 µs)"
    )


def test_a_documented_figure_of_another_site_never_judges() -> None:
    row = probe(p50=Comparison(0.1, 0.0001, 1.3), baseline="documented: unnoba-2020", judges=False)
    assert verdict(probes=(row,)) == HostVerdict(
        Level.NOTE,
        "Nothing has failed, but no probe can be judged yet",
        (),
        (
            "canary: read randread-4k-qd1-j1 is shown beside another site's figures (documented: unnoba-2020), "
            "which are not used to judge this node",
        ),
    )


def test_no_baseline_is_said_with_what_to_do() -> None:
    row = probe(p50=Comparison(0.1), p99=Comparison(0.1), baseline="", judges=False)
    got = verdict(probes=(GOOD, row))
    assert got.level is Level.NOTE
    assert got.headline == "No problem where a baseline exists (1 of 2 measurements)"
    assert got.notes == ("canary: read randread-4k-qd1-j1 has no baseline; record one with: plumbline baseline record",)
    (note,) = verdict(probes=(GOOD, replace(row, recordable=False))).notes
    assert note == "canary: read randread-4k-qd1-j1 has no baseline; add one to a file listed in baseline.files"


@pytest.mark.parametrize(
    ("row", "headline"),
    [
        (probe(success=False, message="No space left"), "canary: read randread-4k-qd1-j1 failed: No space left"),
        (
            probe(success=False, stuck_s=75.0),
            "canary: read randread-4k-qd1-j1 has been in flight for 75 s: something below it hangs",
        ),
    ],
)
def test_failures(row: ProbeRow, headline: str) -> None:
    got = verdict(probes=(row,))
    assert (got.level, plain(got.headline)) == (Level.BAD, headline)


@pytest.mark.parametrize(
    ("row", "note"),
    [
        (probe(overdue=True, message="device-busy"), "canary: read randread-4k-qd1-j1 is overdue: device-busy"),
        (
            probe(success=None, message="fio is not installed"),
            "canary: read randread-4k-qd1-j1 has not run yet: fio is not installed",
        ),
    ],
)
def test_notes(row: ProbeRow, note: str) -> None:
    assert note in verdict(probes=(GOOD, row)).notes


def nic(*losses: Loss) -> tuple[NicRow, ...]:
    return (NicRow("eth0", losses=losses),)


def test_loss_is_a_problem_when_it_grows_and_was_wanted() -> None:
    old, unknown, benign = (
        Loss("drops", "receive", "ring", 9000, 0),
        Loss("drops", "receive", "fifo", 5),
        Loss("drops", "receive", "filter", 99, 7),
    )
    assert verdict(nics=nic(old, unknown, benign)).level is Level.GOOD
    got = verdict(nics=nic(old, Loss("errors", "receive", "crc", 12, 1200)))
    assert got.headline == "eth0 is losing packets: 1,200 more receive errors (crc)"


def test_softnet() -> None:
    assert verdict(softnet=SoftnetRow(2, 10, 5, 5)).level is Level.GOOD
    assert verdict(softnet=SoftnetRow(2, 10, 5, 5, 30, 0)).headline == (
        "The kernel's backlog overflows: 30 more packets dropped"
    )
    squeezed = verdict(softnet=SoftnetRow(2, 10, 0, 5, 0, 4))
    assert squeezed.level is Level.NOTE
    assert squeezed.notes == ("Packet processing ran out of its time slice 4 more times (time squeeze)",)


def test_the_daemons_own_troubles_come_after_the_clusters() -> None:
    got = verdict(
        config_error="/etc/x.yaml: web: no such key",
        collectors=(
            CollectorHealth("disk", False, True, 0.0, "OSError: gone", {}),
            CollectorHealth("pause", True, False, 0.0, "no driver", {}),
        ),
        probes=(probe(success=False),),
    )
    assert got.headline == "disk is suspected: canary: read randread-4k-qd1-j1 fails"
    assert got.problems == (
        "canary: read randread-4k-qd1-j1 failed",
        "The new configuration was refused, the old one is in force: /etc/x.yaml: web: no such key",
        "Collector disk fails: OSError: gone",
    )


def test_starting() -> None:
    assert verdict(waiting_for="the first result", probes=()).headline == "Still starting: the first result"


@pytest.mark.parametrize(
    ("figure", "word", "beyond"),
    [
        (Comparison(0.0019, 0.001, 1.3), "1.9× slower", True),
        (Comparison(0.0012, 0.001, 1.3), "as accepted", False),
        (Comparison(0.0013, 0.001, 1.3), "as accepted", False),
        (Comparison(0.0005, 0.001, 1.3), "2.0× faster", False),
        (Comparison(0.123, 0.001, 1.3), "123× slower", True),
        (Comparison(0.0, 0.001, 1.3), "faster", False),
        (Comparison(0.0019, 0.001), "1.9× slower", False),
        (Comparison(0.00102, 0.001), "about the same", False),
        (Comparison(None, 0.001, 1.3), "", False),
        (Comparison(0.001, None, 1.3), "", False),
        (Comparison(0.001, 0.0, 1.3), "", False),
        (Comparison(5e8, 1e9, 1.3, Measure.THROUGHPUT), "2.0× less", True),
        (Comparison(2e9, 1e9, 1.3, Measure.THROUGHPUT), "2.0× more", False),
        (Comparison(90.0, 100.0, 1.3, Measure.IOPS), "as accepted", False),
        (Comparison(0.0, 100.0, 1.3, Measure.IOPS), "nothing", True),
    ],
)
def test_ratio_in_words(figure: Comparison, word: str, beyond: bool) -> None:
    assert (figure.word, figure.beyond) == (word, beyond)


def test_less_throughput_than_accepted() -> None:
    row = probe(p50=Comparison(None), p99=Comparison(None), rate=Comparison(5e8, 1e9, 1.3, Measure.THROUGHPUT))
    got = verdict(probes=(row,))
    assert got.level is Level.BAD
    assert plain(got.headline) == (
        "canary: read randread-4k-qd1-j1 is less than accepted: throughput 2.0× less (500 MB/s, accepted 1 GB/s)"
    )


def test_a_stale_result_is_no_present_state() -> None:
    got = verdict(probes=(probe(p50=Comparison(9.0, 0.0001, 1.3), overdue=True),))
    assert got.level is Level.NOTE
    assert got.headline == "Nothing has failed, but no probe can be judged yet"


@pytest.mark.parametrize(
    ("osd", "level", "said"),
    [
        (OsdRow("osd.3", OsdState.ANSWERS, blocked=0, slow=0), Level.GOOD, ""),
        (
            OsdRow("osd.3", OsdState.ANSWERS, blocked=0, slow=2),
            Level.NOTE,
            "osd.3: 2 slow operations in the last ten minutes",
        ),
        (OsdRow("osd.3", OsdState.ANSWERS, blocked=4), Level.BAD, "osd.3: 4 operations are blocked"),
        (
            OsdRow("osd.3", OsdState.ANSWERS, blocked=4, blocked_age_s=45.0),
            Level.BAD,
            "osd.3: 4 operations are blocked, the oldest for 45 s",
        ),
        (OsdRow("osd.3", OsdState.HANGS), Level.BAD, "osd.3 does not answer on its admin socket"),
        (OsdRow("osd.3", OsdState.ENDED), Level.BAD, "osd.3 has ended: it was stopped or crashed"),
    ],
)
def test_osds(osd: OsdRow, level: Level, said: str) -> None:
    got = verdict(osds=(osd,))
    assert got.level is level
    assert [plain(each) for each in (*got.problems, *got.notes)] == ([said] if said else [])


def finding(severity: Severity, met: bool = False) -> Finding:
    return Finding("c", "eno1", severity, met, "half duplex", "full duplex", "w", "s", None if met else Fix("x"))


def test_a_critical_finding_is_a_problem() -> None:
    got = verdict(findings=(finding(Severity.CRITICAL),))
    assert (got.level, got.headline) == (Level.BAD, "eno1: half duplex; should be full duplex")


@pytest.mark.parametrize(
    ("severities", "notes"),
    [
        ([], ()),
        ([Severity.INFO], ()),
        ([Severity.WARNING, Severity.INFO], ("1 finding asks for a change, see Findings",)),
        ([Severity.WARNING, Severity.WARNING], ("2 findings ask for a change, see Findings",)),
    ],
)
def test_warnings_are_worth_knowing(severities: list[Severity], notes: tuple[str, ...]) -> None:
    got = verdict(findings=tuple(finding(severity) for severity in severities))
    assert got.notes == notes
    assert got.level is (Level.NOTE if notes else Level.GOOD)


def test_what_is_met_or_not_judged_yet_is_no_word() -> None:
    assert verdict(findings=(finding(Severity.CRITICAL, met=True),)) == verdict() == verdict(findings=None)
