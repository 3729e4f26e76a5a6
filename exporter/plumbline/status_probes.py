"""Sections of the status page about what measures: probes with their baselines, what fails, what is not there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from plumbline.core.units import seconds_text
from plumbline.htmltext import Html, joined, tag
from plumbline.snapshot import CollectorHealth
from plumbline.sparkline import sparkline
from plumbline.status_model import Comparison, FailureRow, Level, ProbeRow, StatusModel
from plumbline.status_parts import Row, cut_table, dim, folded, section, small, table, word

IN_VIEW = 20
"""Measurements before the rest is folded: with a canary on each of 60 disks there are more."""


def probes(model: StatusModel) -> Html:
    """The worst first."""
    if not model.probes:
        return section("probes", "Probes", "No probe is configured.")
    rows = [Row(_probe_cells(row)) for row in sorted(model.probes, key=_probe_order)]
    columns: tuple[str, ...] = ("Probe", "Last result", "#p50", "#p99", "#Rate", "Lately", "Baseline")
    if not any(row.rate for row in model.probes):
        columns = tuple(name for name in columns if name != "#Rate")
        rows = [Row([*row.cells[:4], *row.cells[5:]]) for row in rows]
    return section(
        "probes", f"Probes ({len(rows)})",
        "Measured on purpose, beside the accepted figure. In the small pictures the dashed line is the baseline, the"
        " bottom is 0",
        cut_table(columns, rows, label="Probes", most=IN_VIEW, rest="measurements"),
    )  # fmt: skip


def failing(model: StatusModel) -> Html:
    """Collectors that fail now, and failed runs; nothing where there is neither."""
    broken = [Row([row.name, joined(word(Level.BAD, "fails"), " ", row.reason)]) for row in model.collectors
              if not row.success]  # fmt: skip
    parts: list[str] = []
    if broken:
        parts.append(table(("Collector", "What went wrong"), broken, label="Collectors that fail"))
    if model.failures:
        rows = [Row(_failure_cells(row)) for row in model.failures]
        columns = ("Probe", "When", "#Took", "What went wrong")
        parts.append(cut_table(columns, rows, label="Failed runs", most=IN_VIEW, rest="failed runs"))
    if not parts:
        return Html("")
    about = "Collectors that fail now, and the last failed runs of each periodic probe, the newest first"
    return section("failing", f"What fails ({len(broken) + len(model.failures)})", about, *parts)


def unavailable(model: StatusModel) -> Html:
    """What is not there and why; none of it is a fault."""
    rows = [*_absent(model.collectors), *_left_out(model.collectors), *_skipped(model.probes)]
    if not rows:
        return Html("")
    return section(
        "unavailable", f"Not available ({len(rows)})",
        "What this host lacks (hardware, driver, permission), what was left out, and probes that held back; no fault",
        cut_table(("What", "Kind", "Why"), rows, label="What is not available, and why", most=IN_VIEW, rest="reasons"),
    )  # fmt: skip


def collectors(model: StatusModel) -> Html:
    """Folded: whoever looks here looks for the time one takes."""
    if not model.collectors:
        return section("collectors", "Collectors", "No collector is switched on.")
    rows = [Row([row.name, _state(row), seconds_text(row.duration_s)]) for row in model.collectors]
    count = sum(row.success and row.available for row in model.collectors)
    return section(
        "collectors", f"Collectors ({len(rows)})", "",
        folded(
            f"{count} of {len(rows)} work", table(("Collector", "State", "#Took"), rows, label="Collectors")
        ),
    )  # fmt: skip


# --- probes


def _probe_order(row: ProbeRow) -> tuple[bool, float, bool, bool]:
    failed = row.success is False or row.stuck_s is not None
    excess = max(((figure.ratio or 0.0) / (figure.tolerance_ratio or 1.0) for _, figure in row.judged), default=0.0)
    return not failed, -excess if excess > 1 else 0.0, not row.overdue, row.success is not None


def _probe_cells(row: ProbeRow) -> list[str]:
    what = " ".join(filter(None, (row.layer, row.device_class, row.operation, row.workload)))
    if row.stuck_s is not None:
        state = word(Level.BAD, f"stuck for {seconds_text(row.stuck_s)}")
    elif row.success is None:
        state = word(Level.NOTE, "has not run yet")
    elif row.success:
        state = word(Level.NOTE, "overdue") if row.overdue else word(Level.GOOD, "success")
    else:
        state = word(Level.BAD, "failed")
    age = "" if row.age_s is None else small(f"{seconds_text(row.age_s)} ago")
    message = small(row.message) if row.message else ""
    when = "" if row.next_s is None else small(f"next in {seconds_text(row.next_s)}")
    if not row.baseline:
        baseline = word(Level.NOTE, "none")
    else:
        baseline = joined(row.baseline, "" if row.judges else small("shown only, judges nothing"))
    return [
        joined(row.probe, small(what)),
        joined(state, age, message, when),
        _comparison(row.p50, row),
        _comparison(row.p99, row),
        _comparison(row.rate, row) if row.rate is not None else "",
        "" if row.trend is None else joined(sparkline(row.trend), small(row.trend.of)),
        baseline,
    ]


def _comparison(figure: Comparison, row: ProbeRow) -> Html:
    if figure.measured is None:
        return dim("not measured")
    measured = tag("span", figure.text(figure.measured))
    if figure.baseline is None:
        return measured
    level = Level.NEUTRAL
    if row.judges and not row.overdue and figure.tolerance_ratio is not None:
        level = Level.BAD if figure.beyond else Level.GOOD
    accepted = small(f"{'accepted' if row.judges else 'documented'} {figure.text(figure.baseline)}")
    return joined(measured, " ", word(level, figure.word), accepted)


def _failure_cells(row: FailureRow) -> list[str]:
    return [
        row.probe,
        joined(word(Level.BAD, row.outcome), small(f"{seconds_text(row.age_s)} ago")),
        seconds_text(row.duration_s),
        row.message,
    ]


# --- what is not available


def _absent(healths: Sequence[CollectorHealth]) -> Iterator[Row]:
    """One line a reason: without InfiniBand several collectors say the same."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for each in healths:
        if each.success and not each.available:
            by_reason[each.reason].append(each.name)
    for reason, names in by_reason.items():
        yield Row([", ".join(names), "collector" if len(names) == 1 else "collectors", reason])


def _left_out(healths: Sequence[CollectorHealth]) -> Iterator[Row]:
    for each in healths:
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in each.skipped.items() if count)
        if skipped:
            yield Row([each.name, "items left out since the start", skipped])


def _skipped(rows: Sequence[ProbeRow]) -> Iterator[Row]:
    """Each probe once, though it has a row for each operation."""
    told = set()
    for row in rows:
        counts = {reason: count for reason, count in row.skipped.items() if count}
        if not counts or row.probe in told:
            continue
        told.add(row.probe)
        skipped = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
        last = small(f"the newest: {row.last_skip}") if row.last_skip else small("has run since")
        yield Row([row.probe, "starts skipped", joined(skipped, last)])


def _state(row: CollectorHealth) -> Html:
    if not row.success:
        return word(Level.BAD, "fails")
    return word(Level.GOOD, "works") if row.available else word(Level.NEUTRAL, "not available")
