"""Which baseline judges: literal cases of every rule."""

from __future__ import annotations

import pytest

from plumbline.baseline.model import BaselineEntry, Source, Target
from plumbline.baseline.selection import bound, select
from plumbline.config.workloads import load_catalogue
from support.documented import PROFILES

HASH, OTHER = "a" * 12, "b" * 12


def entry(source, profile="p", *, config_hash=HASH, device_class="ssd", operation="read", **figures):
    return BaselineEntry(
        layer="disk",
        device_class=device_class,
        workload="randread-4k-qd1-j1",
        operation=operation,
        source=source,
        profile=profile,
        config_hash=config_hash,
        **({"latency": {"p50": 0.0001, "p99": 0.0002}} | figures),
    )


def target(probe="canary", *, config_hash=HASH, device_class="ssd", operation="read"):
    return Target(probe, "disk", device_class, "randread-4k-qd1-j1", operation, config_hash)


def judging(selection):
    return [(one.entry.source.value, one.entry.profile, one.judges) for one in selection.comparable]


def bounds_of(selection, probe):
    found = [verdict for verdict in selection.verdicts if verdict.target.probe == probe and verdict.bound is not None]
    return {(verdict.target.workload, verdict.target.operation): verdict.bound for verdict in found}


def test_strongest_source_is_in_force():
    documented, site, measured = entry(Source.DOCUMENTED, "unnoba-2020"), entry(Source.SITE), entry(Source.MEASURED)
    selection = select([documented, site, measured], [target()], {"ssd": "unnoba-2020"})
    assert judging(selection) == [("documented", "unnoba-2020", True), ("site", "p", True), ("measured", "p", True)]
    assert selection.verdicts[0].in_force is measured
    assert select([documented, site], [target()], {"ssd": "unnoba-2020"}).verdicts[0].in_force is site
    assert select([documented], [target()], {"ssd": "unnoba-2020"}).verdicts[0].in_force is documented


@pytest.mark.parametrize("judge", [{}, {"hdd": "unnoba-2020"}, {"ssd": "another"}])
def test_a_documented_profile_is_shown_but_judges_only_where_chosen(judge):
    selection = select([entry(Source.DOCUMENTED, "unnoba-2020")], [target()], judge)
    assert judging(selection) == [("documented", "unnoba-2020", False)]
    assert selection.missing == (target(),)
    assert bounds_of(selection, "canary") == {}


def test_a_row_that_contradicts_itself_never_judges():
    doubtful = entry(Source.DOCUMENTED, "unnoba-2020", doubt="two figures")
    selection = select([doubtful], [target()], {"ssd": "unnoba-2020"})
    assert not selection.comparable[0].judges
    assert selection.missing == (target(),)


def test_another_hash_is_never_compared_and_said_so():
    other = entry(Source.MEASURED, config_hash=OTHER)
    selection = select([other], [target()], {})
    assert selection.comparable == ()
    assert selection.missing == (target(),)
    (incomparable,) = selection.incomparable
    assert (incomparable.entry, incomparable.target) == (other, target())


@pytest.mark.parametrize("other", [{"device_class": "hdd"}, {"operation": "write"}])
def test_what_no_probe_measures_is_not_carried_along(other):
    selection = select([entry(Source.MEASURED, **other)], [target()], {})
    assert (selection.comparable, selection.incomparable) == ((), ())
    assert selection.missing == (target(),)


def test_two_probes_one_baseline():
    measured = entry(Source.MEASURED)
    capped = target("fio", config_hash=OTHER)
    selection = select([measured], [target(), target("second"), capped], {})
    assert judging(selection) == [("measured", "p", True)]
    assert [verdict.in_force for verdict in selection.verdicts] == [measured, measured, None]
    assert selection.missing == (capped,)


def test_of_one_source_the_newer_judges():
    old, new = entry(Source.SITE, "old", measured=1000.0), entry(Source.SITE, "new", measured=2000.0)
    selection = select([new, old], [target()], {})
    assert judging(selection) == [("site", "new", True), ("site", "old", False)]
    assert selection.verdicts[0].in_force is new


def test_without_dates_the_last_file_judges():
    first, last = entry(Source.SITE, "first"), entry(Source.SITE, "last")
    assert select([first, last], [target()], {}).verdicts[0].in_force is last


def test_two_files_of_one_name_make_one_series():
    old = entry(Source.SITE, "node", measured=1000.0, latency={"p50": 1.0})
    new = entry(Source.SITE, "node", measured=2000.0, latency={"p50": 2.0})
    for given in ([old, new], [new, old]):
        selection = select(given, [target()], {})
        assert [one.entry for one in selection.comparable] == [new]
        assert selection.comparable[0].judges


def test_two_documented_profiles_do_not_compete():
    one, two = entry(Source.DOCUMENTED, "one"), entry(Source.DOCUMENTED, "two")
    selection = select([one, two], [target()], {"ssd": "one"})
    assert judging(selection) == [("documented", "one", True), ("documented", "two", False)]
    assert selection.verdicts[0].in_force is one


def test_nothing_at_all():
    selection = select([], [], {})
    assert (selection.comparable, selection.verdicts, selection.missing) == ((), (), ())


@pytest.mark.parametrize(
    ("latency", "tolerance", "expected"),
    [
        ({"p50": 0.0001, "p99": 0.0004}, 1.25, 0.0005),
        ({"p50": 0.0001, "p99": 0.0004}, None, 0.0006),  # 1.5
        ({"p50": 0.0001, "p99": 0.00011}, 1.25, 0.0002),  # two medians
        ({"p99": 0.0001234}, 1.0, 0.000124),  # rounded up
        ({"p99": 0.000123}, 1.0, 0.000123),
        ({"p95": 0.001}, 1.0, 0.00154),  # × 1.5372
        ({"mean": 0.001}, 1.0, 0.00461),  # × 4.6052
        ({"p50": 0.001}, 1.0, 0.00665),  # × 6.6439
        ({"mean": 0.001, "p95": 0.001, "p50": 0.0005}, 1.0, 0.00154),
        ({"p999": 1.0, "max": 1.0}, 1.0, None),
        ({}, 1.0, None),
        ({"p99": 1e-9}, 1.0, 1e-9),
        ({"p99": 9.996}, 1.0, 10.0),
    ],
)
def test_bound(latency, tolerance, expected):
    assert bound(entry(Source.MEASURED, latency=latency, tolerance_ratio=tolerance)) == expected


def test_bounds_of_a_probe():
    read = entry(Source.MEASURED, latency={"p99": 0.0004}, tolerance_ratio=1.25)
    write = entry(Source.MEASURED, operation="write", latency={}, iops=5.0)
    selection = select([read, write], [target(), target(operation="write"), target("fio", operation="write")], {})
    assert bounds_of(selection, "canary") == {("randread-4k-qd1-j1", "read"): 0.0005}
    assert bounds_of(selection, "fio") == {}
    assert selection.missing == ()


def test_the_shipped_profile_against_the_default_probes():
    """On an SSD that chose it: it judges the canary's reads, by a mean alone; the capped fio run is another thing."""
    catalogue = load_catalogue()
    entries = PROFILES["unnoba-2020"].entries
    read = Target(
        "canary", "disk", "ssd", "randread-4k-qd1-j1", "read", catalogue.by_id["randread-4k-qd1-j1"].config_hash()
    )
    dsync = catalogue.by_id["randwrite-4k-qd1-j1-dsync"]
    write = Target("canary", "disk", "ssd", dsync.id, "write", dsync.config_hash())
    capped_hash = catalogue.by_id["randwrite-4k-qd1-j1"].config_hash(rate_iops=50.0)
    capped = Target("fio", "disk", "ssd", "randwrite-4k-qd1-j1", "write", capped_hash, 50.0)
    selection = select(entries, [read, write, capped], {"ssd": "unnoba-2020"})
    assert [(one.entry.workload, one.judges) for one in selection.comparable] == [("randread-4k-qd1-j1", True)]
    assert selection.verdicts[0].in_force.latency == {"mean": 84e-6}
    assert bounds_of(selection, "canary") == {("randread-4k-qd1-j1", "read"): 0.000581}  # 84 us × ln 100 × 1.5
    assert selection.missing == (write, capped)
    assert [(one.entry.workload, one.target.probe) for one in selection.incomparable] == [
        ("randwrite-4k-qd1-j1", "fio")
    ]
