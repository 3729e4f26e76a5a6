"""Two periods side by side: what a meeting asks first, then and now."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from plumbline.capacity.retention import period_note
from plumbline.core import words as say
from plumbline.pages.document import Block, Paragraph, Table
from plumbline.report.baseline.words import layer_title
from plumbline.report.model import Review, soonest
from plumbline.report.summary import judged_enough, per_thousand

UNKNOWN = ""
_SHARE, _NUMBER, _DAYS, _RATIO = "share", "number", "days", "ratio"


class Fact(Struct, frozen=True):
    """``better``: 1 where more is better, −1 where less is, 0 where neither is."""

    value: float
    unit: str
    better: int


def two_periods(review: Review) -> Iterator[Block]:
    """One table; a fact that one of the periods lacks has an empty cell there."""
    if review.earlier is None:
        return
    several = len({row.cluster for period in (review.earlier, review) for row in period.coverage}) > 1
    then, now = facts(review.earlier, several=several), facts(review, several=several)
    names = [*now, *(name for name in then if name not in now)]
    heads = ("", _of(review.earlier), _of(review), "Change")
    rows = tuple((name, _text(then.get(name)), _text(now.get(name)), _change(then, now, name)) for name in names)
    yield Table("Then and now", heads, rows)
    start_s, made_s = review.earlier.period.start_s, review.made_s
    if note := period_note(review.earlier.retention_s, start_s=start_s, now_s=made_s):
        yield Paragraph(note)


def facts(review: Review, *, several: bool) -> dict[str, Fact]:
    """Name → fact, in the order of the sections; with ``several`` a name has its cluster."""
    by_name: dict[str, Fact] = {}

    def of(cluster: str) -> str:
        return f", cluster {cluster}" if several and cluster else ""

    for seen in review.coverage:
        by_name[f"Observed{of(seen.cluster)}"] = Fact(seen.observed_s / review.period.length_s, _SHARE, 0)
    for row in judged_enough(review):
        by_name[f"Within tolerance: {layer_title(row.layer)}{of(row.cluster)}"] = Fact(row.within, _SHARE, 1)
    worse = [change for change in review.changes if change.factor > 1 and not change.rerecorded]
    if review.changes_looked_at:
        by_name["Changes for the worse"] = Fact(len(worse), _NUMBER, -1)
    if rates := per_thousand(review):
        for name, rate in zip(("Pages", "Tickets"), rates, strict=True):
            by_name[f"{name}, each 1,000 hosts and week"] = Fact(rate, _NUMBER, -1)
    still = [finding for finding in review.findings if finding.outcome in {"opened", "throughout"}]
    by_name["Findings open at the end"] = Fact(len(still), _NUMBER, -1)
    by_name["Storage hosts"] = Fact(sum(row.hosts for row in review.coverage), _NUMBER, 0)
    for entry in review.classes:
        name = f"{entry.device_class or 'all devices'}{of(entry.cluster)}"
        if entry.used:
            by_name[f"Used: {name}"] = Fact(entry.used[-1][1], _SHARE, 0)
        if entry.days_to_full:
            by_name[f"Full at the earliest: {name}"] = Fact(soonest(entry.days_to_full), _DAYS, 1)
        if entry.host_loss:
            by_name[f"Fullest after the largest host's loss, above × 1 is unsafe: {name}"] = Fact(
                entry.host_loss[-1][1], _RATIO, -1
            )
    for left in review.headroom:
        name = f"{layer_title(left.layer)}, {left.device_class or 'all devices'} {left.figure}{of(left.cluster)}"
        by_name[f"Capability in use: {name}"] = Fact(left.days[-1][1], _SHARE, -1)
    return by_name


def _of(review: Review) -> str:
    return f"{say.date(review.period.start_s)} to {say.date(review.period.end_s - 1)}"


def _text(fact: Fact | None) -> str:
    if fact is None:
        return UNKNOWN
    match fact.unit:
        case "share":
            return say.share(fact.value)
        case "days":
            return say.days_range([("", fact.value)])
        case "ratio":
            return say.level(fact.value, "ratio")
        case _:
            return f"{fact.value:,.0f}" if fact.value == int(fact.value) else say.number(fact.value)


def _change(then: Mapping[str, Fact], now: Mapping[str, Fact], name: str) -> str:
    """``+1.20 points, better``; empty where one of the two is unknown."""
    if name not in then or name not in now:
        return UNKNOWN
    before, after = then[name], now[name]
    difference = after.value - before.value
    if _text(before) == _text(after):
        return "the same"
    match after.unit:
        case "share":
            text = f"{difference * 100:+.2f} points"
        case "days":
            text = f"{difference:+,.0f} days"
        case _:
            text = f"{difference:+,.2f}".removesuffix(".00")
    if not after.better:
        return text
    return f"{text}, {'better' if difference * after.better > 0 else 'worse'}"
