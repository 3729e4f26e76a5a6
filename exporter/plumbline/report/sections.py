"""The sections of a review on performance: attainment, offenders, changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plumbline.pages.document import Block, Paragraph, Plot, Section, Table
from plumbline.report import phrases as say
from plumbline.report.model import Attainment, Change, Coverage, FigureOffender, PartOffender, Review, Span
from plumbline.report.summary import name, sorted_changes
from plumbline.report.time_plot import Line, time_plot

DRAWN_CHANGES = 6
NO_BREAK = "\N{NO-BREAK SPACE}"


def table(review: Review, title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, tuple[str, ...]]]) -> Table:
    """``rows``: cluster and cells. The cluster gets a column if there are several."""
    if len(review.coverage) > 1:
        return Table(title, (*heads, "Cluster"), tuple((*cells, cluster) for cluster, cells in rows))
    return Table(title, heads, tuple(cells for _, cells in rows))


def gaps(coverage: Iterable[Coverage]) -> tuple[Span, ...]:
    """The gaps to shade in a plot of all clusters: only with a single cluster, because gaps differ between clusters."""
    found = list(coverage)
    return found[0].gaps if len(found) == 1 else ()


def attainment(review: Review) -> Section:
    """Attainment by cluster and layer."""
    about = (
        "For how much of the measured time each layer was within the tolerance of its baseline, the figures written"
        " down when the cluster was accepted. Time without data counts neither way."
    )
    if not review.attainment:
        text = (
            "No figure was judged in this period. Either no baseline is in force (plumbline baseline record measures"
            " one), or the recording rule plumbline:degradation_beyond:bool is not loaded in this Prometheus."
        )
        return Section("attainment", "Attainment", about, (Paragraph(text),))
    heads = ("Layer", "Figures", "Within tolerance", "Figure-time beyond", "Out of line", "Observed", "Measured")
    rows = ((row.cluster, _attained(row, review)) for row in review.attainment)
    plots = (_beyond_plot(review, rows) for rows in _by_cluster(review.attainment).values())
    return Section("attainment", "Attainment", about, (table(review, "By layer", heads, rows), *filter(None, plots)))


def _attained(row: Attainment, review: Review) -> tuple[str, ...]:
    return (
        say.layer(row.layer),
        f"{row.figures:,}",
        say.share(row.within),
        say.minutes(row.beyond_s),
        say.minutes(row.out_of_line_s),
        say.share(row.observed_s / review.period.length_s),
        say.share(row.judged_s / row.figures / review.period.length_s),
    )


def _by_cluster(rows: Iterable[Attainment]) -> dict[str, list[Attainment]]:
    found: dict[str, list[Attainment]] = {}
    for row in rows:
        found.setdefault(row.cluster, []).append(row)
    return found


def _beyond_plot(review: Review, rows: list[Attainment]) -> Plot | None:
    lines = tuple(
        Line(say.layer(row.layer), tuple((day, 1 - within) for day, within in row.days))
        for row in rows
        if row.beyond_s > 0
    )
    if not lines:
        return None
    cluster = rows[0].cluster
    return time_plot(
        review.period,
        lines,
        title="Share of measured time beyond tolerance" + (f", cluster {cluster}" if cluster else ""),
        about="By day; 0 is as accepted. Layers that were never beyond are not drawn.",
        unit="share",
        gaps=next((each.gaps for each in review.coverage if each.cluster == cluster), ()),
    )


def offenders(review: Review) -> Section:
    """The worst hosts, disks and OSDs."""
    about = (
        "Who was out of line for longest, and how far. Figures are judged by their baseline; disks and OSDs by the"
        " alerts that named them, which compare them with their peers and with their own past."
    )
    blocks: list[Block] = []
    if review.figures:
        heads = ("Host", "Figure", "Layer", "Beyond", "Of its measured time", "Worst day")
        rows = ((each.cluster, _figure(each)) for each in review.figures)
        blocks.append(table(review, "Figures longest beyond their baseline's tolerance", heads, rows))
    else:
        blocks.append(
            Paragraph("No judged figure was beyond its tolerance." if review.attainment else "No figure was judged.")
        )
    for title, parts, nobody in (
        ("Disks", review.disks, "No alert named a disk."),
        ("OSDs", review.osds, "No alert named an OSD."),
    ):
        columns = (title[:-1], "Host", "Alerts", "Times", "Together", "Longest", "Against peers, worst day")
        named = ((each.cluster, _part(each)) for each in parts)
        blocks.append(table(review, f"{title} that alerts named", columns, named) if parts else Paragraph(nobody))
    return Section("offenders", "Worst offenders", about, tuple(blocks))


def _figure(each: FigureOffender) -> tuple[str, ...]:
    return (
        say.host(each.host),
        each.what,
        say.layer(each.layer),
        say.duration(each.beyond_s),
        say.share(each.beyond_s / each.judged_s) if each.judged_s else "",
        _worst(each.worst, each.worst_day_s),
    )


def _part(each: PartOffender) -> tuple[str, ...]:
    return (
        each.part,
        say.listed([say.host(host) for host in each.host.split(", ")]),
        ", ".join(alert.removeprefix("Plumbline") for alert in each.alerts),
        f"{each.times:,}",
        say.duration(each.total_s),
        say.duration(each.longest_s),
        _worst(each.worst, each.worst_day_s),
    )


def _worst(ratio: float | None, day_s: int | None) -> str:
    return "" if ratio is None or day_s is None else f"× {say.number(ratio)} on {say.date(day_s)}"


def changes(review: Review) -> Section:
    """Changes of level."""
    about = (
        "Moments at which a latency or a degradation ratio went to another level and stayed there for three days or"
        " more, by a tenth at least and by more than the days differ anyhow. The daily and the weekly cycle are taken"
        " out."
    )
    if not review.changes:
        looked = say.count(review.changes_looked_at, "series", "series")
        text = (
            f"None, in {looked} that were looked through."
            if review.changes_looked_at
            else "There was nothing to look through."
        )
        return Section("changes", "Change points", about, (Paragraph(text),))
    heads = ("When (UTC)", "Where", "Before", "After", "Factor", "Lasted until", "Remark")
    found = sorted_changes(review.changes)
    rows = ((each.cluster, _changed(each, review)) for each in found)
    drawn = [each for each in found if not each.rerecorded and each.factor > 1][:DRAWN_CHANGES]
    title = f"{say.count(len(found), 'change')} in {review.changes_looked_at:,} series, for the worse first"
    plots = (_change_plot(each, review) for each in drawn)
    return Section("changes", "Change points", about, (table(review, title, heads, rows), *plots))


def _changed(each: Change, review: Review) -> tuple[str, ...]:
    when = say.moment(each.at_s)
    if each.gradual:
        when = f"{say.date(each.at_s)} to {say.date(each.until_s - 1)}"
    elif each.at_s - each.not_before_s > 2 * 3600:
        when = f"{say.moment(each.not_before_s)} to {when}"
    lasts = each.until_s >= review.period.end_s
    remark = ", ".join(_remarks(each))
    until = "the end" if lasts else say.date(each.until_s)
    before, after = say.level(each.before, each.kind), say.level(each.after, each.kind)
    figures = (text.replace(" ", NO_BREAK) for text in (before, after, f"× {say.number(each.factor)}"))
    return when, name(each), *figures, until, remark


def _remarks(each: Change) -> Iterator[str]:
    if each.gradual:
        yield "a drift, no single moment"
    elif each.at_s - each.not_before_s > 2 * 3600:
        yield "no data in between"
    if each.factor < 1:
        yield "for the better"
    if each.rerecorded:
        yield "the baseline was measured anew then: the yardstick changed, perhaps nothing else"


def _change_plot(each: Change, review: Review) -> Plot:
    known = next((of.gaps for of in review.coverage if of.cluster == each.cluster), ())
    return time_plot(
        review.period,
        (Line(each.what, each.days),),
        title=name(each),
        about="Median of each day" + ("; 1 is as accepted." if each.kind == "ratio" else "."),
        unit="ratio" if each.kind == "ratio" else "s",
        gaps=known,
        picture_only=True,
        moments=() if each.gradual else ((f"changed {say.moment(each.at_s)}", each.at_s),),
    )
