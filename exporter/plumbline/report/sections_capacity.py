"""The sections of a review on capacity, headroom and wear."""

from __future__ import annotations

from plumbline.core.units import si
from plumbline.pages.document import Block, Paragraph, Plot, Section
from plumbline.report import phrases as say
from plumbline.report.model import ClassCapacity, Headroom, Review, Wear
from plumbline.report.sections import gaps, table
from plumbline.report.summary import class_name, full_in
from plumbline.report.time_plot import Line, time_plot


def capacity(review: Review) -> Section:
    """Device classes, pools and the loss of a host."""
    about = (
        "How full, when it is full at the growth of the last 3, 14 and 30 days (hence a range, not a date), and"
        " whether the rest could take the data of the largest host if that were lost."
    )
    blocks: list[Block] = []
    if review.classes:
        used = ("Used at first", "Used at last", "Growth", "Full in")
        heads = ("Device class", *used, "Loss of largest host", "Rebuild")
        rows = ((each.cluster, _class(each)) for each in review.classes)
        blocks.append(table(review, "By device class, at the end of the period", heads, rows))
        blocks += _plots(review)
    if review.pools:
        pool_heads = ("Pool", "Full in", "Heals by itself after a host's loss")
        pool_rows = (
            (each.cluster, (each.pool, say.days_range(each.days_to_full) or "not known", _yes(each.self_healing)))
            for each in review.pools
        )
        blocks.append(table(review, "By pool", pool_heads, pool_rows))
    grown = any(each.growth for each in review.classes)  # with growth, an absent forecast means: nothing to forecast
    missing = [
        name
        for name in review.absent
        if name != "plumbline:capacity_headroom:ratio" and not (grown and name.endswith(":days"))
    ]
    if missing:
        what = "Nothing is said of capacity" if not blocks else "Parts are missing"
        blocks.append(
            Paragraph(
                f"{what}: this Prometheus had no series of {say.listed(missing, 9)}. They are recording rules of"
                " alerts/; they need a host that may ask the Ceph cluster, and forecasts need days of history."
            )
        )
    return Section("capacity", "Capacity", about, tuple(blocks))


def _class(each: ClassCapacity) -> tuple[str, ...]:
    growth = [rate * 86400 for _, rate in each.growth]
    return (
        each.device_class or "all devices",
        say.share(each.used[0][1]) if each.used else "",
        say.share(each.used[-1][1]) if each.used else "",
        _growth(growth),
        full_in(each) or "not known",
        _loss(each),
        say.duration(each.rebuild_s) if each.rebuild_s is not None else "",
    )


def _growth(per_day: list[float]) -> str:
    if not per_day:
        return ""
    low, high = si(min(per_day), "B"), si(max(per_day), "B")
    return f"{low} a day" if low == high else f"{low} to {high} a day"


def _loss(each: ClassCapacity) -> str:
    if not each.host_loss:
        return "not known"
    if each.host_loss[-1][1] > 1:
        since = next((day for day, value in reversed(each.host_loss) if value <= 1), None)
        return "not safe" + (f" since {say.date(since + 86400)}" if since is not None else " all the period")
    until = say.days_range(each.days_to_unsafe)
    return f"safe, for another {until}" if until else "safe"


def _yes(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"


def _plots(review: Review) -> list[Plot]:
    shaded = gaps(review.coverage)
    used = tuple(Line(class_name(each), each.used) for each in review.classes if each.used)
    loss = tuple(Line(class_name(each), each.host_loss) for each in review.classes if each.host_loss)
    found = []
    if used:
        about = "Median of each day."
        found.append(time_plot(review.period, used, title="Used share", about=about, unit="share", gaps=shaded))
    if loss:
        about = (
            "The fullest OSD after losing the largest host ÷ the ratio at which Ceph stops backfilling; above 1 is not"
            " safe."
        )
        title, level = "After losing the largest host", ("no longer safe", 1.0)
        found.append(time_plot(review.period, loss, title=title, about=about, unit="ratio", gaps=shaded, level=level))
    return found


def headroom(review: Review) -> Section:
    """Performance in reserve."""
    about = (
        "Which share of what the hardware was measured to do is used: operations or bytes per second of a device class"
        " against its baseline. Near 100 % latency rises whatever the disks' state."
    )
    if not review.headroom:
        text = (
            "Nothing is said: this Prometheus had no series of plumbline:capacity_headroom:ratio in the period. It"
            " needs a baseline of the class's throughput or IOPS, and the recording rules of capacity."
        )
        return Section("headroom", "Headroom", about, (Paragraph(text),))
    rows = ((each.cluster, _left(each)) for each in review.headroom)
    heads = ("Of", "Figure", "Used at first", "Used at last", "Busiest day")
    lines = tuple(
        Line(f"{each.device_class} {each.figure}, {say.layer(each.layer).lower()}", each.days)
        for each in review.headroom[:6]
    )
    plot = time_plot(
        review.period,
        lines,
        title="Used share of measured capability",
        about="Median of each day.",
        unit="share",
        gaps=gaps(review.coverage),
        level=("all of it", 1.0),
    )
    return Section("headroom", "Headroom", about, (table(review, "By class", heads, rows), plot))


def _left(each: Headroom) -> tuple[str, ...]:
    busiest, most = max(each.days, key=lambda day: day[1])
    return (
        f"{say.layer(each.layer)}, {each.device_class or 'all devices'}",
        {"iops": "operations"}.get(each.figure, each.figure),
        say.share(each.days[0][1]),
        say.share(each.days[-1][1]),
        f"{say.share(most)} on {say.date(busiest)}",
    )


def wear(review: Review) -> Section:
    """Disks that are wearing out."""
    about = (
        "Solid-state disks whose rated endurance is being used up, the soonest first: at the pace of their whole life,"
        " or of the last two weeks where that was faster. Rated endurance is a promise of the maker; a disk may live"
        " longer."
    )
    if not review.wear:
        text = (
            "No disk tells of it: none is worn by half, and of none the pace is known. Hard disks don't wear in this"
            " sense; a daemon without the right to ask the disks has no figures either."
        )
        return Section("wear", "Wear-out", about, (Paragraph(text),))
    heads = ("Disk", "Host", "Model, serial", "Worn at first", "Worn at last", "Worn out")
    rows = ((each.cluster, _worn(each, review)) for each in review.wear)
    return Section("wear", "Wear-out", about, (table(review, "Disks, the soonest first", heads, rows),))


def _worn(each: Wear, review: Review) -> tuple[str, ...]:
    out = "not known"
    if each.left_s is not None:
        out = f"in {say.years(each.left_s)}"
        if each.left_s < 20 * 365 * 86400:
            out += f" ({say.date(review.period.end_s + each.left_s)[:7]})"
    first, last = (say.share(value) if value is not None else "" for value in (each.wear_first, each.wear_last))
    return each.device, say.host(each.host), ", ".join(filter(None, (each.model, each.serial))), first, last, out
