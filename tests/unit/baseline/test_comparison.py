"""Two baselines beside each other, or a baseline and now: what is compared, with which verdict, and what is not."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from plumbline.baseline.comparison import NOT_COMPARED, WITHIN, WORSE, Item, Only, Other, Side, Word, compare
from plumbline.baseline.describe import find
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.site import LoadedSite, parse_site, read_site
from plumbline.commands.compare import figures_now, print_comparison
from plumbline.config.model import Config
from plumbline.config.probes.disk import CanaryConfig, FioConfig
from plumbline.config.types import Duration
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.errors import BaselineError, UnknownName
from plumbline.probes.run.plan import ProbingPlan, make_plan
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.state import ProbeRecord
from support.documented import PROFILES

CATALOGUE = load_catalogue()
NOW = 1_700_000_000.0
READ = BaselineEntry(
    layer="disk", device_class="ssd", workload="randread-4k-qd1-j1", operation="read", source=Source.MEASURED,
    profile="accepted", config_hash="aaaaaaaaaaaa", latency={"p50": 0.001, "p99": 0.004, "max": 0.01}, iops=1000.0,
    throughput=4096000.0, tolerance_ratio=1.25,
)  # fmt: skip


def changed(entry: BaselineEntry = READ, **fields: object) -> BaselineEntry:
    return replace(entry, **fields)


def side(*entries: BaselineEntry, name: str = "accepted", fingerprint: Fingerprint | None = None) -> Side:
    return Side(name, "measured", "recorded on storage1", tuple(map(Item, entries)), fingerprint=fingerprint)


def figure(name: str, a: BaselineEntry = READ, **fields: object) -> tuple[float, float | None, Word]:
    (row,) = compare(side(a), side(changed(**fields))).rows
    (found,) = [each for each in row.figures if each.name == name]
    return found.ratio, found.allowed, found.word


def printed(found: object) -> str:
    stream = io.StringIO()
    print_comparison(Console(file=stream, highlight=False, markup=False, width=200), found)  # type: ignore[arg-type]
    return stream.getvalue()


# --- verdicts


@pytest.mark.parametrize(
    ("name", "fields", "ratio", "word"),
    [
        ("latency.p50", {"latency": {"p50": 0.00125}}, 1.25, Word.AS_ACCEPTED),
        ("latency.p50", {"latency": {"p50": 0.001251}}, 1.251, Word.WORSE),
        ("latency.p50", {"latency": {"p50": 0.0008}}, 0.8, Word.AS_ACCEPTED),
        ("latency.p50", {"latency": {"p50": 0.00079}}, 0.79, Word.BETTER),
        ("iops", {"iops": 800.0}, 1.25, Word.AS_ACCEPTED),
        ("iops", {"iops": 799.0}, 1000 / 799, Word.WORSE),
        ("iops", {"iops": 1300.0}, 1 / 1.3, Word.BETTER),
        ("throughput", {"throughput": 2048000.0}, 2.0, Word.WORSE),
    ],
)
def test_a_ratio_is_a_degradation_and_judged_by_the_accepted_sides_tolerance(name, fields, ratio, word):
    assert figure(name, **fields) == (pytest.approx(ratio), 1.25, word)


def test_the_tail_is_judged_by_its_bound_and_other_percentiles_by_nothing():
    # max(p99 × tolerance, 2 × p50): of a short tail the second, of this one the first
    assert figure("latency.p99", latency={"p99": 0.0051}) == (pytest.approx(1.275), pytest.approx(1.25), Word.WORSE)
    short = changed(latency={"p50": 0.001, "p99": 0.00125})
    assert figure("latency.p99", short, latency={"p99": 0.0019}) == (
        pytest.approx(1.52), pytest.approx(1.6), Word.AS_ACCEPTED,
    )  # fmt: skip
    assert figure("latency.max", latency={"max": 1.0}) == (pytest.approx(100.0), None, Word.NOT_JUDGED)


def test_without_a_tolerance_the_default_holds_and_is_named():
    (row,) = compare(side(changed(tolerance_ratio=None)), side(changed(iops=700.0))).rows
    assert (row.tolerance_ratio, row.own_tolerance, row.word) == (1.5, False, Word.AS_ACCEPTED)
    assert "1.50 (default)" in printed(compare(side(changed(tolerance_ratio=None)), side(READ)))


def test_what_contradicts_itself_is_shown_and_judges_nothing():
    for a, b in ((changed(doubt="4 of 16 in flight"), READ), (READ, changed(doubt="4 of 16 in flight"))):
        found = compare(side(a), side(replace(b, iops=10.0)))
        assert [row.word for row in found.rows] == [Word.NOT_JUDGED]
        assert found.exit_code == NOT_COMPARED
        assert "not judged, the document contradicts itself: 4 of 16 in flight" in printed(found)


# --- like with like


def test_other_parameters_are_never_compared_and_what_one_side_alone_has_is_listed():
    capped = changed(config_hash="bbbbbbbbbbbb")
    hdd, write = changed(device_class="hdd"), changed(workload="randwrite-4k-qd1-j1", operation="write")
    found = compare(side(READ, hdd), side(capped, write))
    key = ("disk", "ssd", "randread-4k-qd1-j1", "read")
    assert found.rows == ()
    assert found.others == (Other(*key, a=("aaaaaaaaaaaa",), b=("bbbbbbbbbbbb",)),)
    assert found.only_a == (Only("disk", "hdd", "randread-4k-qd1-j1", "read"),)
    assert found.only_b == (Only("disk", "ssd", "randwrite-4k-qd1-j1", "write"),)
    assert found.exit_code == NOT_COMPARED
    said = printed(found)
    assert "not compared, other parameters: disk ssd randread-4k-qd1-j1 read (config_hash aaaaaaaaaaaa and bbb" in said
    assert "only in accepted: disk hdd: randread-4k-qd1-j1\n" in said
    assert said.endswith("nothing could be compared\n")


def test_classes_are_held_against_each_other_on_purpose_only():
    nvme = changed(device_class="nvme", iops=5000.0)
    assert compare(side(READ), side(nvme)).rows == ()
    (row,) = compare(side(READ), side(nvme), renamed={"ssd": "nvme"}).rows
    assert (row.device_class, row.device_class_b, row.word) == ("ssd", "nvme", Word.BETTER)
    assert "disk ssd=nvme" in printed(compare(side(READ), side(nvme), renamed={"ssd": "nvme"}))


def test_one_accepted_figure_is_held_against_every_disk_of_its_class():
    b = Side("now", "now", "now", (Item(READ, "fio/sdb", 60.0), Item(changed(iops=100.0), "fio/sdc", 60.0)))
    found = compare(side(READ), b)
    assert [(row.what, row.word) for row in found.rows] == [
        ("fio/sdb", Word.AS_ACCEPTED), ("fio/sdc", Word.WORSE),
    ]  # fmt: skip
    assert found.exit_code == WORSE
    said = printed(found)
    assert "(fio/sdb, 60 s ago)" in said.replace("\N{NO-BREAK SPACE}", " ")
    assert "worse: disk ssd randread-4k-qd1-j1 read fio/sdc: iops 10.00" in said


def test_rows_stand_bottom_up():
    rados = changed(layer="rados", workload="rados-write-4m-t16", operation="write")
    network = changed(layer="network", workload="tcp-throughput-s1", operation="transmit")
    both = side(rados, READ, network)
    assert [row.layer for row in compare(both, both).rows] == ["network", "disk", "rados"]
    assert compare(both, both).exit_code == WITHIN


def test_many_lone_rows_are_counted():
    many = [changed(device_class=f"class{n}") for n in range(30)]
    said = printed(compare(side(READ, *many), side(READ)))
    assert "only in accepted, by layer and class (--json lists them): disk class0 1, disk class1 1" in said


# --- the environment


def test_changes_of_the_environment_are_possible_causes():
    then = Fingerprint(kernel="6.1.0", fio="3.33", disks={"S1": "X 1.0"})
    now = Fingerprint(kernel="6.12.0", fio="3.33", disks={"S1": "X 2.0"})
    said = printed(compare(side(READ, fingerprint=then), side(READ, name="later", fingerprint=now)))
    assert "possible cause, kernel: 6.1.0 → 6.12.0\n" in said
    assert "possible cause, disks: S1 (X 1.0) → S1 (X 2.0)\n" in said
    assert "fio:" not in said
    same = printed(compare(side(READ, fingerprint=then), side(READ, fingerprint=then)))
    assert "environment unchanged: kernel, fio, disks\n" in same


def test_without_a_fingerprint_that_is_said():
    said = printed(compare(side(READ, name="old"), side(READ, name="new", fingerprint=Fingerprint(kernel="6"))))
    assert "environment not compared: old has no fingerprint\n" in said


# --- now


def fio(name: str, interval: float = 600.0) -> FioConfig:
    return FioConfig(name=name, workload="randread-4k-qd1-j1", device_class="ssd", interval=Duration(interval))


def plan(*probes: CanaryConfig | FioConfig) -> ProbingPlan:
    folder = Path("/nowhere")
    return make_plan(Config(probes=probes), storage=folder, roots=Roots.under(folder), environment={})


def result(probe: str, *, age_s: float, config_hash: str = "") -> ProbeRecord:
    done = ProbeResult(
        probe=probe, layer="disk", device_class="ssd", workload="randread-4k-qd1-j1", tool="fio", tool_version="3.33",
        config_hash=config_hash or CATALOGUE.by_id["randread-4k-qd1-j1"].config_hash(), started=NOW - age_s - 30,
        duration=30.0, outcome=Outcome.SUCCESS,
        operations=(OperationResult(operation="read", iops=9000.0, latency={"p50": 0.0001}),),
    )  # fmt: skip
    return ProbeRecord(success=done, result=done)


def test_now_is_what_is_fresh_and_says_what_is_missing():
    items, missing = figures_now(
        plan(fio("fresh"), fio("old"), fio("never"), fio("other"), CanaryConfig(name="canary", device_class="ssd")),
        {
            "fresh": result("fresh", age_s=1800),
            "old": result("old", age_s=1801),
            "other": result("other", age_s=1, config_hash="bbbbbbbbbbbb"),
        },
        now=NOW,
    )
    assert [(item.what, item.age_s, item.entry.iops, item.entry.latency) for item in items] == [
        ("fresh", 1800.0, 9000.0, {"p50": 0.0001})
    ]
    assert [line.partition(":")[0] for line in missing] == ["canary", "old", "never", "other"]
    canary, old, never, other = (line.replace("\N{NO-BREAK SPACE}", " ") for line in missing)
    assert canary.endswith("(/metrics, status page); measure now: plumbline probe run canary")
    assert "its last success is 30 min old, more than 3 intervals; measure now: plumbline probe run old" in old
    assert "no run has succeeded yet" in never
    assert "its last run had other parameters" in other


def test_now_is_comparable_with_what_a_recording_of_the_same_probe_wrote():
    accepted = parse_site(SITE, where="x.yaml", host=None)
    items, _ = figures_now(plan(fio("fresh")), {"fresh": result("fresh", age_s=5)}, now=NOW)
    (row,) = compare(side(*accepted.entries), Side("now", "now", "now", items)).rows
    assert (row.word, row.age_s) == (Word.WORSE, 5.0)


# --- names


SITE = """\
schema_version: 1
source: measured
host: another
recorded: 2026-10-02T09:15:00Z
entries: [{workload: randread-4k-qd1-j1, device_class: ssd, latency: {p50: 50us}, tolerance_ratio: 1.25}]
"""


def test_a_baseline_is_found_by_name_or_path_of_any_host(tmp_path):
    profiles, path = PROFILES, tmp_path / "theirs.yaml"
    path.write_text(SITE)

    def read(file: Path) -> LoadedSite:
        return read_site(file, host=None)

    assert find("unnoba-2020", profiles, [], read=read) is profiles["unnoba-2020"]
    theirs = find(str(path), profiles, [], read=read)
    assert theirs.entries[0].profile == "theirs"
    assert find("theirs", profiles, [theirs], read=read) is theirs
    with pytest.raises(UnknownName, match=r"unoba-2020: no such baseline or file; there are: unnoba-2020"):
        find("unoba-2020", profiles, [], read=read)
    with pytest.raises(BaselineError, match=r"nothing\.yaml: can't be read: No such file"):
        find(str(tmp_path / "nothing.yaml"), profiles, [], read=read)
    twin = replace(theirs, where="/elsewhere/theirs.yaml")
    with pytest.raises(BaselineError, match=r"2 baselines have this name; say which by its path: .*theirs\.yaml, /els"):
        find("theirs", profiles, [theirs, twin], read=read)
    with pytest.raises(BaselineError, match="measured on another host"):
        read_site(path, host="storage1")
