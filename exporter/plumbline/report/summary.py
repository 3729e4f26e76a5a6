"""The three main points in sentences: did it perform, what changed, how long does the capacity last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plumbline.pages.document import Point
from plumbline.report import phrases as say
from plumbline.report.model import Attainment, Change, ClassCapacity, Review

GOOD, NOTE, BAD, UNKNOWN = "good", "note", "bad", "unknown"
FINE_SHARE, POOR_SHARE = 0.999, 0.99
"""Only for colours on the page: three nines are as good as accepted; below two nines someone should look."""
MOST_NAMED = 3
NEVER = "does not grow"
SOON_DAYS, NEAR_DAYS = 90.0, 365.0
"""The next quarter and the budget year: by when hardware must be in place."""


def points(review: Review) -> tuple[Point, ...]:
    """Always these three points; unknowns are stated too."""
    return performance(review), change(review), capacity(review)


def lead(review: Review) -> Iterator[str]:
    """The subject of the page, and how much of the period was observed."""
    period = review.period
    first, last = say.day(period.start_s), say.day(period.end_s - 1)
    hosts = sum(each.hosts for each in review.coverage)
    named = [each.cluster for each in review.coverage if each.cluster]
    of = f" of {say.listed([f'cluster {name}' for name in named], 6)}" if named else ""
    length = say.count(round(period.length_s / 86400), "day")
    yield (
        f"From {first} to {last} (UTC), {length}: {say.count(hosts, 'storage host')}{of}, as a Prometheus server"
        f" remembers them. Written {say.moment(review.made_s)} UTC by Plumbline {review.version}."
    )
    for each in review.coverage:
        name = f"Cluster {each.cluster}" if each.cluster else "The cluster"
        if not each.gaps:
            yield f"{name} was observed all the time."
            continue
        gaps = [f"{say.moment(gap.start_s)} to {say.moment(gap.end_s)}" for gap in each.gaps]
        yield (
            f"{name} was observed for {say.share(each.observed_s / period.length_s)} of the period. Nothing is known"
            f" and nothing is claimed of: {say.listed(gaps)}."
        )


def performance(review: Review) -> Point:
    """Performance, with the worst layer and figure."""
    question = "Did it perform as accepted?"
    rows = review.attainment
    if not rows:
        return Point(
            question, "Not known: in this period nothing was compared with a baseline that may judge.", UNKNOWN
        )
    judged, beyond = sum(row.judged_s for row in rows), sum(row.beyond_s for row in rows)
    within = 1 - beyond / judged
    worst = min(rows, key=lambda row: row.within)
    tone = GOOD if worst.within >= FINE_SHARE else NOTE if worst.within >= POOR_SHARE else BAD
    if not beyond:
        return Point(question, "Yes: every judged figure was within its tolerance whenever it was measured.", tone)
    word = "Yes" if tone == GOOD else "Mostly" if tone == NOTE else "Not everywhere"
    more = [_worst(worst)]
    others = [row for row in rows if row is not worst and row.within < FINE_SHARE]
    if others:
        more.append(f"Others: {say.listed([f'{say.layer(row.layer)} {say.share(row.within)}' for row in others])}.")
    first = next((each for each in review.figures if each.layer == worst.layer), None)
    if first is not None:
        text = f"Longest beyond was the {first.what} on {say.host(first.host)}, for {say.duration(first.beyond_s)}"
        if first.worst is not None and first.worst_day_s is not None:
            text += f", at worst {say.times(first.worst)} its baseline ({say.day(first.worst_day_s)})"
        more.append(f"{text}.")
    answer = f"{word}: judged figures were within tolerance for {say.share(within)} of the measured time."
    return Point(question, answer, tone, tuple(more))


def _worst(row: Attainment) -> str:
    of = f" of cluster {row.cluster}" if row.cluster else ""
    return (
        f"The worst layer was “{say.layer(row.layer)}”{of} with {say.share(row.within)}; at least one of its"
        f" {say.count(row.figures, 'figure')} was out of line for {say.duration(row.out_of_line_s)}."
    )


def change(review: Review) -> Point:
    """The largest change for the worse."""
    question = "What changed?"
    if not review.changes_looked_at:
        return Point(question, "Not known: no latency or degradation ratio was there to look through.", UNKNOWN)
    real = [each for each in review.changes if not each.rerecorded]
    worse = [each for each in real if each.factor > 1]
    if not worse:
        better = [each for each in real if each.factor < 1]
        text = (
            f"Nothing for the worse that lasted: {say.count(review.changes_looked_at, 'series', 'series')} were looked"
        )
        text += f" through, {len(better)} changed for the better." if better else " through."
        return Point(question, text, GOOD)
    first = max(worse, key=lambda each: each.factor)
    more = []
    near = [each for each in worse if each is not first and _together(first, each)]
    if near:
        more.append(f"Within a day of it: {'; '.join([name(each) for each in near[:MOST_NAMED]])}{_rest(near)}.")
    rest = [each for each in worse if each is not first and each not in near]
    if rest:
        named = "; ".join([name(each) for each in rest[:MOST_NAMED]])
        more.append(f"{say.count(len(rest), 'other change')} for the worse: {named}{_rest(rest)}.")
    lasting = first.until_s >= review.period.end_s - 86400
    if not first.gradual and not lasting:
        more.append(f"It lasted until {say.day(first.until_s)}.")
    return Point(question, f"{described(first)}.", BAD if lasting else NOTE, tuple(more))


def _rest(found: Sequence[Change]) -> str:
    return f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""


def _together(one: Change, other: Change) -> bool:
    return not one.gradual and not other.gradual and abs(one.at_s - other.at_s) <= 86400


def name(change: Change) -> str:
    """``stor03, disk sdc: median write latency``."""
    return change.what if change.what.startswith(change.host) else f"{say.host(change.host)}, {change.what}"


def described(change: Change) -> str:
    """``…: from 0.8 ms to 1.9 ms (2.4 times) on 14 September 2026, about 13:00 UTC``."""
    levels = f"{say.level(change.before, change.kind)} to {say.level(change.after, change.kind)}"
    of = " of its baseline" if change.kind == "ratio" else ""
    text = f"{name(change)}: from {levels}{of} ({say.times(change.factor)})"
    if change.gradual:
        return f"{text}, gradually, from {say.day(change.at_s)} to {say.day(change.until_s - 1)}"
    if change.at_s - change.not_before_s > 86400:
        return (
            f"{text}, between {say.moment(change.not_before_s)} and {say.moment(change.at_s)} UTC, without data between"
        )
    return f"{text} on {say.day(change.at_s)}, about {say.moment(change.at_s)[-5:]} UTC"


def capacity(review: Review) -> Point:
    """Which device class fills up first, and whether the loss of a host is safe."""
    question = "How long does the capacity last?"
    known = [each for each in review.classes if each.days_to_full or each.used or each.host_loss]
    if not known:
        return Point(
            question,
            "Not known: this Prometheus has no recorded figures of capacity for the end of the period.",
            UNKNOWN,
        )
    sentences, soonest = [], float("inf")
    for each in sorted(known, key=_first_full)[:2]:
        soonest = min(soonest, _first_full(each))
        sentences.append(_full(each))
    unsafe = [each for each in known if each.host_loss and each.host_loss[-1][1] > 1]
    safe = [each for each in known if each.host_loss and each.host_loss[-1][1] <= 1]
    if unsafe:
        classes = say.listed([class_name(each) for each in unsafe])
        sentences.append(f"Losing the largest host is not safe now: {classes} could not take its data.")
    elif safe:
        soon = min((days for each in safe for _, days in each.days_to_unsafe), default=None)
        forecast = [(slope, days) for each in safe for slope, days in each.days_to_unsafe]
        sentences.append(
            "Losing the largest host is safe"
            + (f" for another {say.days_range(forecast)}." if soon is not None and soon < 3650 else ".")
        )
        soonest = min(soonest, soon if soon is not None else soonest)
    stuck = [each.pool for each in review.pools if each.self_healing is False]
    if stuck:
        sentences.append(f"After a host's loss these pools can't heal by themselves: {say.listed(stuck)}.")
    tone = BAD if unsafe or soonest < SOON_DAYS else NOTE if soonest < NEAR_DAYS else GOOD
    return Point(question, sentences[0], tone, tuple(sentences[1:]))


def class_name(each: ClassCapacity) -> str:
    """``hdd``, or ``hdd of cluster north``."""
    return f"{each.device_class or 'all devices'}{f' of cluster {each.cluster}' if each.cluster else ''}"


def full_in(each: ClassCapacity) -> str:
    """``61 to 94 days``, with a remark if a slope does not grow and so has no forecast; empty if unknown."""
    flat = [rate for _, rate in each.growth if rate <= 0]
    when = say.days_range(each.days_to_full)
    if when:
        return f"{when}, or not at all" if flat else when
    return NEVER if flat else ""


def _first_full(each: ClassCapacity) -> float:
    return min((days for _, days in each.days_to_full), default=float("inf"))


def _full(each: ClassCapacity) -> str:
    used = f"{say.share(each.used[-1][1])} used" if each.used else "in use"
    when = full_in(each)
    if when == NEVER:
        return f"{class_name(each)}: {used}; it did not grow lately."
    if not when:
        return f"{class_name(each)}: {used}; no forecast is there."
    return f"{class_name(each)}: {used}, full in {when} at the present growth."


def sorted_changes(changes: Sequence[Change]) -> list[Change]:
    """Changes for the worse first, largest first."""
    return sorted(changes, key=lambda each: -each.factor)
