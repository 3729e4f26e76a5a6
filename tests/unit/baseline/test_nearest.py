"""The documented row beside what a probe measures: the same experiment, else the nearest, and what differs is said."""

from __future__ import annotations

import pytest

from plumbline.baseline.model import BaselineEntry, Source, Target, experiment
from plumbline.baseline.nearest import nearest
from plumbline.config.model import DOCUMENTED_CLASSES, DOCUMENTED_PROBE, Config
from plumbline.config.workloads import load_catalogue
from support.documented import PROFILES

CATALOGUE = load_catalogue()
ENTRIES = [entry for profile in PROFILES.values() for entry in profile.entries]


def target(workload: str, device_class: str, rate_iops: float | None = None) -> Target:
    found = CATALOGUE.by_id[workload]
    return Target(
        "probe", found.layer, device_class, workload, found.operations[0], found.config_hash(rate_iops=rate_iops),
        rate_iops,
    )  # fmt: skip


def text(wanted: Target, entries: list[BaselineEntry] | None = None) -> str:
    found = nearest(ENTRIES if entries is None else entries, [wanted]).get(experiment(wanted))
    return found.text.replace("\xa0", " ") if found else ""


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (target("randread-4k-qd1-j1", "ssd"), "unnoba-2020, ssd: mean 84 µs"),
        (target("randread-4k-qd4-j1", "hdd"), "unnoba-2020, hdd: mean 33 ms"),
        (target("icmp-rtt-56", "10g"), "unnoba-2020, 10g: mean 163 µs"),
        # no latency is printed for the same experiment
        (target("randread-4k-qd1-j1", "hdd"), "unnoba-2020, hdd: 87 IOPS"),
        # beside a capped probe rates say nothing
        (target("randwrite-4k-qd1-j1", "ssd", 50), "unnoba-2020, ssd: mean 35 µs (sequential there, not capped there)"),
        (target("randwrite-4k-qd1-j1-dsync", "ssd"), "unnoba-2020, ssd: 27,000 IOPS (not on stable media there)"),
        # on a rotational disk another pattern is another experiment
        (target("randwrite-4k-qd1-j1", "hdd"), ""),
        # no document has such a class
        (target("randread-4k-qd1-j1", "virtual"), ""),
        # nothing like it
        (target("rados-ops-4k", "ssd"), ""),
    ],
)
def test_the_nearest_row_and_what_differs(wanted: Target, said: str) -> None:
    assert text(wanted) == said


def test_a_row_in_doubt_and_one_that_is_no_document_are_never_near() -> None:
    wanted = target("randread-4k-qd1-j1", "ssd")
    row = BaselineEntry(
        layer="disk", device_class="ssd", workload="randread-4k-qd1-j1", operation="read", source=Source.DOCUMENTED,
        profile="p", config_hash=wanted.config_hash, latency={"p99": 0.002},
    )  # fmt: skip
    assert text(wanted, [row]) == "p, ssd: p99 2 ms"
    changed = {field: getattr(row, field) for field in row.__struct_fields__}
    assert text(wanted, [BaselineEntry(**{**changed, "doubt": "twice as much elsewhere"})]) == ""
    assert text(wanted, [BaselineEntry(**{**changed, "source": Source.SITE})]) == ""
    assert text(wanted, [BaselineEntry(**{**changed, "latency": {}})]) == ""


def test_the_default_probes_have_a_documented_figure_of_each_class() -> None:
    """Of an SSD what the canary reads has a mean; of the other classes the default probe has."""
    assert DOCUMENTED_PROBE in Config().probes
    assert text(target("randread-4k-qd1-j1", "ssd")).startswith("unnoba-2020, ssd: mean")
    for device_class in DOCUMENTED_CLASSES:
        assert "IOPS" in text(target("randread-4k-qd1-j1", device_class))
        assert ": mean" in text(target(DOCUMENTED_PROBE.workload, device_class))
