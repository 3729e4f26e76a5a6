"""The three main points in sentences: did it perform, what changed, how long does the capacity last."""

from collections.abc import Iterator, Sequence

from plumbline.capacity.retention import period_note
from plumbline.core import words as say
from plumbline.core.words import DAY_S
from plumbline.pages.document import Point
from plumbline.report.baseline.words import layer_title
from plumbline.report.minimums import HOST_WEEKS, JUDGED_S, LEVEL_DAYS
from plumbline.report.model import Attainment, Change, ClassCapacity, Review, soonest

GOOD, NOTE, BAD, UNKNOWN = "good", "note", "bad", "unknown"
# only for colours on the page: three nines are as good as accepted; below two nines someone should look
FINE_SHARE, POOR_SHARE = 0.999, 0.99
MOST_NAMED = 3
NEVER = "does not grow"
# the next quarter and the budget year: by when hardware must be in place
_WEEK_S = 7 * DAY_S
NO_CHANGES = f"Too little data: a change needs a latency or ratio on {2 * LEVEL_DAYS} days."
SOON_DAYS, NEAR_DAYS = 90.0, 365.0


def lead(review: Review) -> Iterator[str]:
    """The subject of the page, and how much of the period was observed."""
    period = review.period
    first, last = say.day(period.start_s), say.day(period.end_s - 1)
    hosts = sum(row.hosts for row in review.coverage)
    named = [row.cluster for row in review.coverage if row.cluster]
    of = f" of {say.listed([f'cluster {name}' for name in named], 6)}" if named else ""
    length = say.count(round(period.length_s / DAY_S), "day")
    yield (
        f"From {first} to {last} (UTC), {length}: {say.count(hosts, 'storage host')}{of}, from the"
        f" data of a Prometheus server. Written {say.moment(review.made_s)} UTC by Plumbline {review.version}."
    )
    if note := period_note(review.retention_s, start_s=period.start_s, now_s=review.made_s):
        yield note
    for entry in review.coverage:
        name = f"Cluster {entry.cluster}" if entry.cluster else "The cluster"
        if not entry.gaps:
            yield f"{name} was observed throughout."
            continue
        gaps = [f"{say.moment(gap.start_s)} to {say.moment(gap.end_s)}" for gap in entry.gaps]
        yield (
            f"{name} was observed for {say.share(entry.observed_s / period.length_s)} of the period. There is no data"
            f" for: {say.listed(gaps)}."
        )


def performance(review: Review) -> Point:
    question = "Did it perform as accepted?"
    if not review.attainment:
        text = "Unknown: in this period nothing was compared with a baseline."
        return Point(question, text, UNKNOWN)
    rows = judged_enough(review)
    if not rows:
        return Point(question, f"Too little data: a verdict needs {say.duration(JUDGED_S)} of judged figures.", UNKNOWN)
    judged, beyond = sum(row.judged_s for row in rows), sum(row.beyond_s for row in rows)
    within = 1 - beyond / judged
    worst = min(rows, key=lambda row: row.within)
    tone = GOOD if worst.within >= FINE_SHARE else NOTE if worst.within >= POOR_SHARE else BAD
    if not beyond:
        return Point(question, "Yes: every judged figure was always within its tolerance.", tone)
    word = "Yes" if tone == GOOD else "Mostly" if tone == NOTE else "Not everywhere"
    more = [_worst(worst)]
    others = [row for row in rows if row is not worst and row.within < FINE_SHARE]
    if others:
        more.append(f"Others: {say.listed([f'{layer_title(row.layer)} {say.share(row.within)}' for row in others])}.")
    first = next((figure for figure in review.figures if figure.layer == worst.layer), None)
    if first is not None:
        text = f"Longest out of tolerance: {first.what} on {say.host(first.host)}, for {say.duration(first.beyond_s)}"
        if first.worst is not None:
            text += f", at worst {say.times(first.worst.ratio)} its baseline ({say.day(first.worst.day_s)})"
        more.append(f"{text}.")
    answer = f"{word}: judged figures were within tolerance for {say.share(within)} of the measured time."
    return Point(question, answer, tone, tuple(more))


def _worst(row: Attainment) -> str:
    of = f" of cluster {row.cluster}" if row.cluster else ""
    return (
        f"The worst layer was “{layer_title(row.layer)}”{of} ({say.share(row.within)}); at least one of its"
        f" {say.count(row.figures, 'figure')} was out of tolerance for {say.duration(row.out_of_line_s)}."
    )


def judged_enough(review: Review) -> list[Attainment]:
    """The layers that were judged for long enough to say anything of them."""
    return [row for row in review.attainment if row.observed_s >= JUDGED_S]


def change(review: Review) -> Point:
    question = "What changed?"
    if not review.changes_looked_at:
        return Point(question, NO_CHANGES, UNKNOWN)
    real = [change for change in review.changes if not change.rerecorded]
    worse = [candidate for candidate in real if candidate.factor > 1]
    if not worse:
        better = sum(candidate.factor < 1 for candidate in real)
        looked = say.count(review.changes_looked_at, "series", "series")
        text = f"No lasting deterioration in {looked}"
        return Point(question, text + (f"; {better} improved." if better else "."), GOOD)
    first = max(worse, key=lambda candidate: candidate.factor)
    near = [candidate for candidate in worse if candidate is not first and _together(first, candidate)]
    rest = [candidate for candidate in worse if candidate is not first and candidate not in near]
    more = []
    if near:
        more.append(f"Within a day of it: {_named(near)}.")
    if rest:
        more.append(f"{say.count(len(rest), 'other deterioration')}: {_named(rest)}.")
    lasting = first.until_s >= review.period.end_s - DAY_S
    if not first.gradual and not lasting:
        more.append(f"It lasted until {say.day(first.until_s)}.")
    return Point(question, f"{described(first)}.", BAD if lasting else NOTE, tuple(more))


def _named(changes: Sequence[Change]) -> str:
    rest = f"; and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
    return "; ".join([name(item) for item in changes[:MOST_NAMED]]) + rest


def _together(first: Change, other: Change) -> bool:
    return not first.gradual and not other.gradual and abs(first.at_s - other.at_s) <= DAY_S


def name(change: Change) -> str:
    """``stor03, disk sdc: median write latency``."""
    return change.what if change.what.startswith(change.host) else f"{say.host(change.host)}, {change.what}"


def described(change: Change) -> str:
    """``…: from 0.8 ms to 1.9 ms (2.4 times) on 14 September 2026, about 13:00 UTC``."""
    levels = f"{say.level(change.before, change.unit)} to {say.level(change.after, change.unit)}"
    of = " of its baseline" if change.unit == "ratio" else ""
    text = f"{name(change)}: from {levels}{of} ({say.times(change.factor)})"
    if change.gradual:
        return f"{text}, gradually, from {say.day(change.at_s)} to {say.day(change.until_s - 1)}"
    if change.at_s - change.not_before_s > DAY_S:
        return (
            f"{text}, between {say.moment(change.not_before_s)} and {say.moment(change.at_s)} UTC, without data between"
        )
    return f"{text} on {say.day(change.at_s)}, about {say.moment(change.at_s)[-5:]} UTC"


def capacity(review: Review) -> Point:
    question = "How long will the capacity last?"
    rows = [row for row in review.classes if row.days_to_full or row.used or row.host_loss]
    if not rows:
        text = "Unknown: this Prometheus has no capacity data for the end of the period."
        return Point(question, text, UNKNOWN)
    first_full = sorted(rows, key=lambda row: soonest(row.days_to_full))[:2]
    sentences = [_full(row) for row in first_full]
    days = soonest(first_full[0].days_to_full)
    unsafe = [row for row in rows if row.host_loss and row.host_loss[-1][1] > 1]
    safe = [row for row in rows if row.host_loss and row.host_loss[-1][1] <= 1]
    if unsafe:
        classes = say.listed([class_name(row) for row in unsafe])
        sentences.append(f"Losing the largest host is unsafe: {classes} could not take its data.")
    elif safe:
        forecast = [slope for row in safe for slope in row.days_to_unsafe]
        soon = f" for another {say.days_range(forecast)}" if soonest(forecast) < say.LONG_DAYS else ""
        sentences.append(f"Losing the largest host is safe{soon}.")
        days = min(days, soonest(forecast))
    stuck = [pool.pool for pool in review.pools if pool.self_healing is False]
    if stuck:
        sentences.append(f"After losing a host, these pools can't heal themselves: {say.listed(stuck)}.")
    tone = BAD if unsafe or days < SOON_DAYS else NOTE if days < NEAR_DAYS else GOOD
    return Point(question, sentences[0], tone, tuple(sentences[1:]))


def class_name(row: ClassCapacity) -> str:
    """``hdd``, or ``hdd of cluster north``."""
    return f"{row.device_class or 'all devices'}{f' of cluster {row.cluster}' if row.cluster else ''}"


def full_in(row: ClassCapacity) -> str:
    """``61 to 94 days``, with a remark if a slope does not grow and so has no forecast; empty if unknown."""
    flat = [rate for _, rate in row.growth if rate <= 0]
    when = say.days_range(row.days_to_full)
    if when:
        return f"{when}, or not at all" if flat else when
    return NEVER if flat else ""


def _full(row: ClassCapacity) -> str:
    used = f"{say.share(row.used[-1][1])} used" if row.used else "in use"
    when = full_in(row)
    if when == NEVER:
        return f"{class_name(row)}: {used}, not growing."
    if not when:
        return f"{class_name(row)}: {used}; no forecast."
    return f"{class_name(row)}: {used}, full in {when} at the current growth."


def counted(review: Review) -> tuple[int, int]:
    """How often critical alerts fired, and warnings: pages and tickets."""
    critical = sum(firing.times for firing in review.firings if firing.severity == "critical")
    return critical, sum(firing.times for firing in review.firings) - critical


def per_thousand(review: Review) -> tuple[float, float] | None:
    """Pages and tickets for each 1,000 hosts and week, so that clusters and quarters are comparable: by the most hosts
    seen at once, and the time in which any was. ``None`` with too little data."""
    weeks = sum(row.hosts * row.observed_s for row in review.coverage) / _WEEK_S
    if weeks < HOST_WEEKS:
        return None
    critical, warnings = counted(review)
    return 1000 * critical / weeks, 1000 * warnings / weeks
