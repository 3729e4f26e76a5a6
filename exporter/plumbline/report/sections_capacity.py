"""The sections of a review on capacity, headroom and wear."""

from collections.abc import Iterator

from plumbline.capacity import words
from plumbline.capacity.retention import forecast_note
from plumbline.capacity.scenarios import standard
from plumbline.core import words as say
from plumbline.core.units import size_text
from plumbline.core.words import DAY_S
from plumbline.pages.document import Block, Listing, Paragraph, Plot
from plumbline.report.baseline.words import layer_title
from plumbline.report.model import ClassCapacity, Headroom, Review, Wear
from plumbline.report.summary import class_name, full_in
from plumbline.report.time_plot import Line, gaps, table, time_plot


def capacity(review: Review) -> Iterator[Block]:
    if review.classes:
        used = ("Used at start", "Used at end", "Growth", "Full in")
        heads = ("Device class", *used, "Loss of largest host", "Rebuild")
        rows = ((row.cluster, _class(row)) for row in review.classes)
        yield table(review, "By device class, at the end of the period", heads, rows)
        yield from _plots(review)
    if review.pools:
        pool_heads = ("Pool", "Full in", "Self-healing after the loss of a host")
        pool_rows = (
            (pool.cluster, (pool.pool, say.days_range(pool.days_to_full) or "unknown", _yes(pool.self_healing)))
            for pool in review.pools
        )
        yield table(review, "By pool", pool_heads, pool_rows)
    grown = any(row.growth for row in review.classes)  # with growth, an absent forecast means: nothing to forecast
    missing = [
        name
        for name in review.absent
        if name != "plumbline:capacity_headroom:ratio" and not (grown and name.endswith(":days"))
    ]
    if missing:
        what = "Incomplete" if review.classes or review.pools else "No capacity data"
        yield Paragraph(
            f"{what}: this Prometheus had no series of {say.listed(missing, 9)}. These are recording rules from"
            " alerts/. They need a host with access to the Ceph cluster, and forecasts need days of history."
        )


def _class(row: ClassCapacity) -> tuple[str, ...]:
    growth = [rate * DAY_S for _, rate in row.growth]
    return (
        row.device_class or "all devices",
        say.share(row.used[0][1]) if row.used else "",
        say.share(row.used[-1][1]) if row.used else "",
        _growth(growth),
        full_in(row) or "unknown",
        _loss(row),
        say.duration(row.rebuild_s) if row.rebuild_s is not None else "",
    )


def _growth(per_day: list[float]) -> str:
    if not per_day:
        return ""
    low, high = size_text(min(per_day)), size_text(max(per_day))
    return f"{low} a day" if low == high else f"{low} to {high} a day"


def _loss(row: ClassCapacity) -> str:
    if not row.host_loss:
        return "unknown"
    if row.host_loss[-1][1] > 1:
        since = next((day for day, value in reversed(row.host_loss) if value <= 1), None)
        return "unsafe" + (f" since {say.date(since + DAY_S)}" if since is not None else " throughout")
    until = say.days_range(row.days_to_unsafe)
    return f"safe, for another {until}" if until else "safe"


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _plots(review: Review) -> Iterator[Plot]:
    used = tuple(Line(class_name(row), row.used) for row in review.classes if row.used)
    loss = tuple(Line(class_name(row), row.host_loss) for row in review.classes if row.host_loss)
    shaded = gaps(review)
    if used:
        about = "Median of each day."
        yield time_plot(review.period, used, title="Used share", about=about, unit="share", gaps=shaded)
    if loss:
        about = (
            "The fullest OSD after losing the largest host ÷ the ratio at which Ceph stops backfilling; above 1 is"
            " unsafe."
        )
        title, level = "After losing the largest host", ("unsafe", 1.0)
        yield time_plot(review.period, loss, title=title, about=about, unit="ratio", gaps=shaded, level=level)


def headroom(review: Review) -> Iterator[Block]:
    if not review.headroom:
        yield Paragraph(
            "No data: this Prometheus had no series of plumbline:capacity_headroom:ratio in the period. It needs a"
            " baseline of the class's throughput or IOPS, and the recording rules for capacity."
        )
        return
    heads = ("Of", "Figure", "Used at start", "Used at end", "Busiest day")
    yield table(review, "By class", heads, ((row.cluster, _left(row)) for row in review.headroom))
    lines = tuple(
        Line(f"{row.device_class} {row.figure}, {layer_title(row.layer).lower()}", row.days)
        for row in review.headroom[:6]
    )
    title, about, level = "Share of measured capability in use", "Median of each day.", ("all", 1.0)
    yield time_plot(review.period, lines, title=title, about=about, unit="share", gaps=gaps(review), level=level)


def what_if(review: Review) -> Iterator[Block]:
    if not review.facts:
        yield Paragraph(
            "No data: this Prometheus had no series of plumbline:capacity_osd_size:bytes at the end of the period."
        )
        return
    rows = [(facts.cluster, row) for facts in review.facts for row in words.scenario_rows(facts, standard(facts))]
    yield table(review, "At the end of the period, and after a change", words.SCENARIO_HEADS, rows)
    bought = [(facts.cluster, row) for facts in review.facts for row in words.purchase_rows(facts)]
    if bought:
        yield table(review, "What to buy: the fewest hosts for a year", words.PURCHASE_HEADS, bought)
    pools = [(facts.cluster, row) for facts in review.facts for row in words.pool_rows(facts)]
    if pools:
        yield table(review, "Pools, their placement and quotas", words.POOL_HEADS, pools)
    notes = [note for facts in review.facts for note in words.notes(facts, facts.classes)]
    if note := forecast_note(review.retention_s):
        notes.append(note[0].upper() + note[1:])
    if notes:
        yield Listing(tuple(dict.fromkeys(f"{note}." for note in notes)))


def _left(row: Headroom) -> tuple[str, ...]:
    busiest, most = max(row.days, key=lambda day: day[1])
    return (
        f"{layer_title(row.layer)}, {row.device_class or 'all devices'}",
        {"iops": "operations"}.get(row.figure, row.figure),
        say.share(row.days[0][1]),
        say.share(row.days[-1][1]),
        f"{say.share(most)} on {say.date(busiest)}",
    )


def wear(review: Review) -> Iterator[Block]:
    if not review.wear:
        yield Paragraph(
            "No disk is worn by half, and no rate of wear is known. Hard disks don't wear in this sense, and a daemon"
            " without permission to query the disks has no figures."
        )
        return
    heads = ("Disk", "Host", "Model, serial", "Wear at start", "Wear at end", "Worn out")
    yield table(review, "Disks, soonest first", heads, ((disk.cluster, _worn(disk, review)) for disk in review.wear))


def _worn(disk: Wear, review: Review) -> tuple[str, ...]:
    out = "unknown"
    if disk.left_s is not None:
        out = f"in {say.years(disk.left_s)}"
        if disk.left_s < 20 * 365 * DAY_S:
            out += f" ({say.date(review.period.end_s + disk.left_s)[:7]})"
    first, last = (say.share(value) if value is not None else "" for value in (disk.wear_first, disk.wear_last))
    return disk.device, say.host(disk.host), ", ".join(filter(None, (disk.model, disk.serial))), first, last, out
