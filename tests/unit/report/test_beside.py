"""Two periods side by side, the drift of classes, and which period is meant by --beside."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.commands.reporting import written
from plumbline.core.words import DAY_S
from plumbline.errors import ConfigError
from plumbline.report import classes
from plumbline.report.document import as_document
from plumbline.report.model import ClassDrift
from plumbline.report.period import Period, parse_compared
from plumbline.report.queries import Queries
from plumbline.sources.prometheus.api import Track
from support.history import at
from support.review_facts import full_review, two_quarters

NOW = Period(at("2026-07-01"), at("2026-10-01"))


def test_the_period_before_is_as_long() -> None:
    found = parse_compared("previous", NOW, now_s=at("2026-10-02"))
    assert found == Period(at("2026-03-31"), at("2026-07-01"))
    named = parse_compared("2025-07-01..2025-09-30", NOW, now_s=at("2026-10-02"))
    assert named == Period(at("2025-07-01"), at("2025-10-01"))


@pytest.mark.parametrize("text", ["", "2026-07-01", "last", "2026-07-01..x", "2026-07-02..2026-07-01"])
def test_what_is_no_period_is_said_in_a_line(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_compared(text, NOW, now_s=at("2026-10-02"))


def test_then_and_now_in_one_table() -> None:
    text = written(as_document(two_quarters()), "markdown")
    row = next(line for line in text.splitlines() if line.startswith("| Within tolerance: Disks"))
    assert "99.90 %" in row
    assert "points, worse" in row
    assert "| Capability in use: Disks, hdd iops |  | 59.78 % |  |" in text.replace("\N{NO-BREAK SPACE}", " ")


def test_a_cluster_that_was_added_has_no_other_row_of_the_first() -> None:
    review = two_quarters()
    alone = replace(review.coverage[0], cluster="north", observed_s=review.period.length_s / 2)
    assert review.earlier is not None
    both = replace(
        review,
        coverage=(replace(alone, cluster="north"), replace(alone, cluster="south")),
        earlier=replace(review.earlier, coverage=(alone,), retention_s=30.0 * DAY_S),
    )
    text = written(as_document(both), "markdown").replace("\N{NO-BREAK SPACE}", " ")
    assert "| Observed, cluster north | 50.00 % | 50.00 % | the same |" in text
    assert "| Observed, cluster south |  | 50.00 % |  |" in text
    assert "This Prometheus keeps 30 d, less than reaches back to the first day" in text


def test_one_period_has_no_such_section() -> None:
    assert "Then and now" not in written(as_document(full_review()), "markdown")


def test_a_class_that_drifted_is_a_line_with_what_was_new() -> None:
    text = written(as_document(full_review()), "markdown")
    (row,) = (line for line in text.splitlines() if "r740-hdd" in line)
    assert "Ceph OSDs 16.2.11" in row
    assert "osd-bench" not in row


def test_a_class_that_did_not_drift_is_a_sentence_and_no_fleet_is_nothing() -> None:
    review = full_review()
    still = replace(review, drifts=review.drifts[1:])
    assert "No class of nodes drifted: 1 accepted figure of 1 class" in written(as_document(still), "markdown")
    assert "class of nodes" not in written(as_document(replace(review, drifts=())), "markdown")


def _track(value: float, statistic: str = "", fleet_class: str = "r740") -> Track:
    labels = {"fleet_class": fleet_class, "layer": "disk", "device_class": "hdd", "workload": "w", "operation": "read"}
    return Track({**labels, **({"statistic": statistic} if statistic else {})}, ((0.0, value),))


def test_ratios_are_degradation_and_the_mean_stands_in_only_where_there_is_no_median() -> None:
    answers = {query.key: () for query in classes.queries(Queries(Period(0, 90 * DAY_S)))}
    answers |= {
        "class latency.p50 then": (_track(1.0, "p50"),),
        "class latency.p50 now": (_track(1.2, "p50"),),
        "class latency.mean then": (_track(1.0, "mean"), _track(1.0, "mean", "other")),
        "class latency.mean now": (_track(9.0, "mean"), _track(1.0, "mean", "other")),
        "class throughput then": (_track(150.0),),
        "class throughput now": (_track(100.0),),
        "class nodes now": (Track({"fleet_class": "r740"}, ((0.0, 12.0),)),),
    }
    found = classes.drifts(answers)
    assert [(each.fleet_class, each.figure, round(each.ratio, 3), each.nodes) for each in found] == [
        ("r740", "throughput", 1.5, 12),
        ("r740", "latency.p50", 1.2, 12),
        ("other", "latency.mean", 1.0, 0),
    ]
    assert isinstance(found[0], ClassDrift)
