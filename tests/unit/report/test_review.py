"""The review's parts: period, pieces of a range, alerts from their ends, outcomes of findings, words."""

from __future__ import annotations

import io
import json
from typing import get_args

import pytest
from msgspec.structs import replace
from rich.console import Console

from plumbline.commands.reporting import written
from plumbline.core import words as phrases
from plumbline.core.console import Step, make_console, progress
from plumbline.core.words import DAY_S
from plumbline.errors import ConfigError, ParseError
from plumbline.pages.document import Block, Document, Listing, Paragraph, Section, Table
from plumbline.report import changes, events
from plumbline.report.attainment import attainment, coverage, pool_services
from plumbline.report.document import as_document
from plumbline.report.model import Attainment, ClassCapacity, Coverage, Firing, PoolService, Span
from plumbline.report.period import Period, day_starts, parse_period
from plumbline.report.queries import LEVELS, POINTS, Queries, days_together, each_day, over
from plumbline.report.summary import NEVER, full_in
from plumbline.sources.prometheus.api import MAX_POINTS, Track, parse_matrix
from plumbline.sources.prometheus.queries import joined, quoted
from support.history import at
from support.review_facts import empty_review, full_review

NOW = at("2026-10-02 06:00") + 17.5
WEEK = Period(at("2026-09-01"), at("2026-09-08"))


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ({}, "2026-07-04", "2026-10-02"),
        ({"days": 30}, "2026-09-02", "2026-10-02"),
        ({"first": "2026-08-01"}, "2026-08-01", "2026-10-02"),
        ({"first": "2026-08-01", "last": "2026-08-31"}, "2026-08-01", "2026-09-01"),
        ({"first": "2026-08-01", "days": 7}, "2026-08-01", "2026-08-08"),
        ({"last": "2026-08-31", "days": 31}, "2026-08-01", "2026-09-01"),
        ({"first": "2026-10-01", "last": "2026-10-02"}, "2026-10-01", "2026-10-02 06:00"),
        ({"first": "2026-10-02"}, "2026-10-02", "2026-10-02 06:00"),
    ],
)
def test_a_period_is_whole_days_and_never_the_future(said: dict[str, object], start: str, end: str) -> None:
    found = parse_period(**{"first": None, "last": None, "days": None, **said}, now_s=NOW)  # type: ignore[arg-type]
    assert (found.start_s, found.end_s) == (at(start), at(end))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"first": "2026-10-03"}, "--from = '2026-10-03': is in the future; today is 2026-10-02 (UTC)"),
        ({"last": "2026-10-03"}, "--to = '2026-10-03': is in the future; today is 2026-10-02 (UTC)"),
        (
            {"first": "2026-09-02", "last": "2026-09-01"},
            "--to = '2026-09-01': must not be before the first day, 2026-09-02",
        ),
        ({"last": "0001-01-02"}, "--to = '0001-01-02': not a date; write it as 2026-08-01"),
        ({"first": "9999-12-31", "days": 30}, "--from = '9999-12-31': not a date; write it as 2026-08-01"),
        ({"first": "2026-9-2"}, "--from = '2026-9-2': not a date; write it as 2026-08-01"),
        ({"first": "2026-02-30"}, "--from = '2026-02-30': not a date; write it as 2026-08-01"),
        ({"first": "2001-01-01"}, "--from = '2001-01-01': the period must not exceed 800 days"),
        ({"days": 0}, "--days = 0: from 1 to 800"),
        ({"first": "2026-09-01", "last": "2026-09-02", "days": 2}, "--days = 2: --from and --to already set"),
    ],
)
def test_what_is_no_period_is_said_in_a_line(said: dict[str, object], error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_period(**{"first": None, "last": None, "days": None, **said}, now_s=NOW)  # type: ignore[arg-type]
    assert str(raised.value).startswith(error)


def test_ranges_are_asked_in_pieces_that_prometheus_gives() -> None:
    quarter = Period(at("2026-07-01"), at("2026-09-29"))
    asks = list(over("x", "up", quarter, 60))
    moments = [t for ask in asks for t in range(int(ask.start_s), int(ask.end_s) + 1, 60)]
    assert moments == list(range(quarter.start_s, quarter.end_s + 1, 60))
    assert max((ask.end_s - ask.start_s) / 60 + 1 for ask in asks) <= POINTS < MAX_POINTS


def test_each_day_is_asked_once_and_the_last_one_for_what_it_has() -> None:
    cut = Period(WEEK.start_s, WEEK.end_s + 6 * 3600)
    asks = list(each_day("x", "sum_over_time(up[WINDOW])", cut, "1m", together=3))
    ends = [t for ask in asks for t in range(int(ask.start_s), int(ask.end_s) + 1, DAY_S)]
    assert ends == [end - 60 for _, end in cut.days]
    assert asks[0].query == "sum_over_time(up[86370s:1m])"
    assert asks[-1].query == "sum_over_time(up[21570s:1m])"
    points = [(float(end), float(index)) for index, end in enumerate(ends)]
    assert list(day_starts(points, cut)) == [start for start, _ in cut.days]


def test_few_series_are_asked_for_many_days_and_many_for_one() -> None:
    assert days_together(0, 1440) == 31
    assert days_together(600, 1440) == 5
    assert days_together(100_000, 1440) == 1


def test_pieces_become_one_series() -> None:
    pieces = [("x", (Track({"a": "1"}, ((2.0, 20.0),)),)), ("x", (Track({"a": "1"}, ((1.0, 10.0),)),)), ("y", ())]
    assert joined(pieces) == {"x": (Track({"a": "1"}, ((1.0, 10.0), (2.0, 20.0))),), "y": ()}


def test_a_clusters_name_can_not_leave_its_selector() -> None:
    queries = Queries(WEEK, 'a"} or up{x="')
    assert queries.sel("up") == 'up{cluster="a\\"} or up{x=\\""}'
    assert quoted("a\\b\n") == '"a\\\\b\\n"'
    assert Queries(WEEK).sel("up", 'a="b"') == 'up{a="b"}'


def test_parse_matrix() -> None:
    result = [{"metric": {"job": "x"}, "values": [[1, "1"], [2.5, "NaN"], [3, "+Inf"]]}, {"metric": {}, "values": []}]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    (track,) = parse_matrix(json.dumps(answer).encode(), source="here")
    assert track == Track({"job": "x"}, ((1.0, 1.0),))
    for wrong, said in (
        (b"<html>", "here: not an answer of Prometheus"),
        (
            json.dumps({**answer, "data": {"resultType": "vector", "result": []}}).encode(),
            "not the answer to a range query",
        ),
        (
            b'{"status": "error", "error": "query timed out in expression evaluation"}',
            "refused the query: query timed out",
        ),
    ):
        with pytest.raises(ParseError, match=said):
            parse_matrix(wrong, source="here")


def test_minutes_are_counted_by_layer_and_cluster() -> None:
    def figure(probe: str, values: list[float]) -> Track:
        ends = [float(end - 60) for _, end in WEEK.days]
        labels = {"cluster": "north", "layer": "disk", "instance": "a", "probe": probe}
        return Track(labels, tuple(zip(ends, values, strict=False)))

    layer = {"cluster": "north", "layer": "disk"}
    (row,) = attainment(
        {
            "figures judged": [figure("x", [1440, 1440]), figure("y", [720])],
            "figures beyond": [figure("x", [0, 30]), figure("y", [10])],
            "layers judged": [Track(layer, ((0.0, 1440.0), (1.0, 1440.0)))],
            "layers out of line": [Track(layer, ((0.0, 10.0), (1.0, 30.0)))],
        },
        WEEK,
    )
    assert (row.figures, row.judged_s, row.beyond_s) == (2, 3600 * 60, 40 * 60)
    assert (row.observed_s, row.out_of_line_s) == (2880 * 60, 40 * 60)
    assert row.within == pytest.approx(1 - 40 / 3600)
    assert [day for day, _ in row.days] == [start for start, _ in WEEK.days[:2]]  # no claim of the others
    assert row.days[0][1] == pytest.approx(1 - 10 / 2160)


def test_pools_by_minutes_and_by_cephs_own_figures() -> None:
    def of(pool: str, *values: float) -> Track:
        labels = {"cluster": "north", "pool_id": pool[-1], "pool": pool}
        return Track(labels, tuple((float(at_s), value) for at_s, value in enumerate(values)))

    answers = {
        "pools seen": [of("vms2", 1440, 1440), of("old3", 1440), of("new4", 0)],
        "pools unavailable": [of("vms2", 0, 24), of("old3", 0)],
        "pools reduced": [of("vms2", 30, 60), of("old3", 0)],
        "pools score": [of("vms2", 0.767)],
        "pools mtbf": [of("vms2", 79)],
        "pools mttr": [of("vms2", 24)],
    }
    assert pool_services(answers) == (
        PoolService("north", "vms2", 2880 * 60, 24 * 60, 90 * 60, 0.767, 79, 24),
        PoolService("north", "old3", 1440 * 60, 0, 0),
    )


def test_gaps_are_what_no_look_saw() -> None:
    looks = [t for t in range(WEEK.start_s + DAY_S, WEEK.end_s, 300) if not at("2026-09-04") < t < at("2026-09-05")]
    (row,) = coverage([Track({"cluster": "north"}, tuple((float(t), 3.0) for t in looks))], WEEK)
    assert row.gaps == (Span(WEEK.start_s, WEEK.start_s + DAY_S), Span(at("2026-09-04"), at("2026-09-05")))
    assert (row.hosts, row.observed_s) == (3, WEEK.length_s - 2 * DAY_S)


def test_alerts_from_their_beginnings_and_ends() -> None:
    def marks(name: str, *times: str) -> Track:
        labels = {"alertname": name, "severity": "warning", "layer": "disk", "instance": "a:1", "device": "sdb"}
        return Track(labels, tuple((float(at(time)), 1.0) for time in times))

    alerts = events.alerts_of(
        {
            "alerts at first": [marks("Old", "2026-09-01")],
            "alerts begun": [marks("Twice", "2026-09-02 10:00", "2026-09-03 10:00"), marks("Still", "2026-09-07")],
            "alerts ended": [marks("Old", "2026-09-01 02:00"), marks("Twice", "2026-09-02 10:30", "2026-09-03 11:00")],
        },
        WEEK,
    )
    found = {each.alert: each for each in events.firings(alerts)}
    assert (found["Old"].times, found["Old"].total_s, found["Old"].still) == (1, 7200, 0)
    assert (found["Twice"].times, found["Twice"].total_s, found["Twice"].longest_s) == (2, 5400, 3600)
    assert (found["Still"].total_s, found["Still"].still, found["Still"].longest_on) == (DAY_S, 1, "a:1, sdb")
    (disk,) = events.offenders(alerts, [], WEEK, label="device", layer="disk")
    assert (disk.part, disk.host, disk.times, disk.total_s, disk.worst) == ("sdb", "a:1", 4, 7200 + 5400 + DAY_S, None)


def test_two_alerts_at_once_are_one_time_out_of_line() -> None:
    def alert(name: str, *spans: tuple[str, str]) -> events.Alert:
        labels = {"alertname": name, "layer": "osd", "ceph_daemon": "osd.3", "cluster": "north"}
        return events.Alert(labels, tuple(Span(at(begin), at(end)) for begin, end in spans), still=False)

    alerts = [alert("A", ("2026-09-01", "2026-09-03")), alert("B", ("2026-09-02", "2026-09-02 12:00"))]
    (osd,) = events.offenders(alerts, [], WEEK, label="ceph_daemon", layer="osd")
    assert (osd.total_s, osd.longest_s, osd.times) == (2 * DAY_S, 2 * DAY_S, 2)


def test_a_finding_is_closed_only_where_it_was_seen_met() -> None:
    def finding(check: str, *times: str) -> Track:
        labels = {"instance": "a", "check": check, "subject": "", "urgency": "warning"}
        return Track(labels, tuple((float(at(time)), 1.0) for time in times))

    first, last = "2026-09-01", "2026-09-08"
    found = events.finding_histories(
        {
            "findings open": [
                finding("mended", first),
                finding("gone", first),
                finding("new", "2026-09-04", last),
                finding("brief", "2026-09-04"),
                finding("old", first, last),
            ],
            "findings met first": [finding("new", first), finding("brief", first)],
            "findings met last": [finding("mended", last), finding("brief", last)],
        },
        WEEK,
    )
    assert {each.check: each.outcome for each in found} == {
        "mended": "closed", "gone": "unknown", "new": "opened", "brief": "both", "old": "throughout",
    }  # fmt: skip


def test_a_rolling_upgrade_is_complete_when_no_other_version_runs() -> None:
    looks = [float(WEEK.start_s + hours * 3600) for hours in (0, 6, 12, 18)]

    def version(name: str, *counts: int) -> Track:
        points = tuple((look, float(count)) for look, count in zip(looks, counts, strict=True) if count)
        return Track({"cluster": "north", "version": name}, points)

    (upgrade,) = events.upgrades(
        {
            "versions plumbline": [version("1", 3, 3, 3, 3)],
            "versions ceph": [version("16", 6, 4, 0, 0), version("17", 0, 2, 6, 6)],
        }
    )
    assert (upgrade.before, upgrade.version, upgrade.first_s, upgrade.complete_s) == (("16",), "17", looks[1], looks[2])
    (half,) = events.upgrades(
        {"versions plumbline": [], "versions ceph": [version("16", 6, 4, 4, 4), version("17", 0, 2, 2, 2)]}
    )
    assert (half.complete_s, half.running, half.of) == (None, 2, 6)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (40, "40 s"),
        (60, "1 min"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (2 * 86400 + 4 * 3600, "2 d 4 h"),
        (35 * 86400, "35 d"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert phrases.duration(seconds) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.0, "100 %"), (0.99999, "> 99.99 %"), (0.9713, "97.13 %"), (0.00001, "< 0.01 %"), (0.0, "0 %")],
)
def test_nearly_all_is_not_all(value: float, said: str) -> None:
    assert phrases.share(value) == said


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((), ""),
        ((("3d", 61.0), ("14d", 94.0)), "61 to 94 days"),
        ((("3d", 61.0),), "61 days"),
        ((("3d", -2.0), ("14d", 9.0)), "now to 9 days"),
        ((("3d", -2.0),), "now"),
        ((("3d", 400.0), ("14d", 9000.0)), "400 days to more than ten years"),
        ((("3d", float("inf")),), "more than ten years"),
    ],
)
def test_forecasts_are_ranges(found: tuple[tuple[str, float], ...], said: str) -> None:
    assert phrases.days_range(found) == said


def test_what_is_not_known_is_said_and_never_good() -> None:
    assert {point.tone for point in as_document(empty_review()).points} == {"unknown"}
    assert {point.tone for point in as_document(full_review()).points} == {"bad"}


def test_progress_is_drawn_on_a_terminal_alone() -> None:
    terminal, pipe = io.StringIO(), io.StringIO()
    for console in (Console(file=terminal, force_terminal=True, width=100), make_console(pipe)):
        with progress(console, "asking Prometheus", piped=False) as show:
            show(Step("asking Prometheus", 0.0, more="0/4 nodes seen"))
            show(Step("asking Prometheus", 1.0, more="4/4 alerts begun"))
    assert "asking Prometheus" in terminal.getvalue()
    assert "4/4" in terminal.getvalue()
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("days", "growth", "said"),
    [
        ({"3d": 61.0, "30d": 82.0}, {"3d": 5.0, "30d": 4.0}, "61 to 82 days"),
        ({"30d": 82.0}, {"3d": -5.0, "30d": 4.0}, "82 days, or not at all"),
        ({}, {"3d": -5.0, "30d": 0.0}, NEVER),
        ({}, {}, ""),
    ],
)
def test_what_does_not_grow_has_no_forecast_and_that_is_said(
    days: dict[str, float], growth: dict[str, float], said: str
) -> None:
    hdd = ClassCapacity("north", "hdd", (), tuple(days.items()), (), tuple(growth.items()), (), None)
    assert full_in(hdd) == said


def test_the_page_shows_each_kind_of_block() -> None:
    blocks: list[Block] = [
        Paragraph("a paragraph"),
        Listing(("an item",)),
        Table("a table", ("a head",), (("a cell",),)),
    ]
    blocks += [
        block for section in as_document(full_review()).sections for block in section.blocks if block.kind == "plot"
    ][:1]
    assert {type(block) for block in blocks} == set(get_args(Block))
    page = written(Document("x", (), (Section("s", "S", "", blocks),)), "html")
    for text in ("a paragraph", "an item", "a table", "a head", "a cell", "<svg"):
        assert text in page


def test_what_limits_the_what_if_is_on_the_page_as_in_markdown() -> None:
    review = replace(full_review(), retention_s=15.0 * DAY_S)
    for form in ("html", "markdown"):
        text = written(as_document(review), form).replace("\\", "")
        assert "set --storage.tsdb.retention.time=35d or more." in text


def short_review(judged_s: float = 240, host_weeks: float = 0.0004):
    """Of two nodes, with an alert that fired twice, a layer that was judged, and changes of nothing."""
    day = replace(
        empty_review(),
        coverage=(Coverage("north", 2, host_weeks / 2 * 7 * DAY_S, ()),),
        attainment=(Attainment("north", "disk", 3, judged_s * 3, 0, judged_s, 0, ()),),
        firings=(Firing("north", "PlumblineNicErrors", "warning", "network", 1, 2, 60, 40, "a", 1),),
    )
    return written(as_document(day), "markdown")


def test_minutes_of_data_are_too_little_for_verdicts_and_rates() -> None:
    text = short_review()
    assert "**Did it perform as accepted?** Too little data: a verdict needs 1 d of judged figures." in text
    assert "**What changed?** Too little data: a change needs a latency or ratio on 6 days." in text
    assert "For each 1,000 hosts and week: too little data, it needs 10 weeks of a host." in text
    assert "| Disks | 3 | too little data |  |  |  |  |" in text
    assert "100 %" not in text.split("By layer")[1].split("##")[0]


def test_just_enough_data_are_enough() -> None:
    text = short_review(judged_s=DAY_S, host_weeks=10)
    assert "**Did it perform as accepted?** Yes: every judged figure was always within its tolerance." in text
    assert "For each 1,000 hosts and week of observation these are 0.00 pages and 200 tickets." in text


@pytest.mark.parametrize(("days", "looked"), [(1, 0), (5, 0), (6, 1), (30, 1)])
def test_a_series_of_a_few_days_is_not_examined_for_changes(days: int, looked: int) -> None:
    period = Period(at("2026-09-01"), at("2026-10-01"))
    points = tuple((period.start_s + (day + 1) * DAY_S - 60, 1.0) for day in range(days))
    answers = {f"levels {kind}": [] for kind in LEVELS} | {"levels disk": [Track({"statistic": "p50"}, points)]}
    assert changes.candidates(answers, period) == (looked, ())
