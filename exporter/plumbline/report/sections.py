"""The sections of a review on performance (attainment, offenders, changes) and on events."""

from collections import Counter
from collections.abc import Iterator

from plumbline.core import words as say
from plumbline.core.units import figure_text
from plumbline.pages.document import Block, Paragraph, Plot
from plumbline.report.baseline.words import layer_title
from plumbline.report.model import (
    Attainment,
    Change,
    ClassDrift,
    FigureOffender,
    FindingHistory,
    Firing,
    PartOffender,
    PoolService,
    Recorded,
    Review,
    Upgrade,
    Worst,
)
from plumbline.report.queries import LOOK_S
from plumbline.report.summary import counted, host_weeks, name
from plumbline.report.time_plot import Line, gaps, table, time_plot

DRAWN_CHANGES = 6
# a class that drifts by less differs by what its recordings do
DRIFT = 1.1
# hosts named for one check, so that a fleet with one misconfiguration takes one line
SAME_CHECK = 3
NO_BREAK = "\N{NO-BREAK SPACE}"

_CEPHS_OWN = ("Ceph's score", "Between failures", "To repair")


def attainment(review: Review) -> Iterator[Block]:
    yield from _layers(review)
    if review.services:
        heads = ("Pool", "Available", "Unavailable", "Fewer copies", "Observed", *_CEPHS_OWN)
        yield table(review, "By pool", heads, ((each.cluster, _service(each, review)) for each in review.services))
        if all(each.score is None for each in review.services):
            yield Paragraph(
                "Ceph's own figures are there from Ceph 20 on, where enable_availability_tracking is set and a daemon"
                " reads the cluster's map."
            )


def _service(each: PoolService, review: Review) -> tuple[str, ...]:
    own = (
        "" if each.score is None else say.share(each.score),
        *("" if seconds is None else say.duration(seconds) for seconds in (each.mtbf_s, each.mttr_s)),
    )
    return (
        each.pool,
        say.share(1 - each.unavailable_s / each.seen_s),
        say.minutes(each.unavailable_s),
        say.minutes(each.reduced_s),
        say.share(each.seen_s / review.period.length_s),
        *own,
    )


def _layers(review: Review) -> Iterator[Block]:
    if not review.attainment:
        yield Paragraph(
            "No figure was judged in this period. Either no baseline is in force (plumbline baseline record measures"
            " one), or the recording rule plumbline:degradation_beyond:bool is not loaded in this Prometheus."
        )
        return
    heads = ("Layer", "Figures", "Within tolerance", "Figure-time beyond", "Out of tolerance", "Observed", "Measured")
    yield table(review, "By layer", heads, ((row.cluster, _attained(row, review)) for row in review.attainment))
    for cluster in dict.fromkeys(row.cluster for row in review.attainment if row.beyond_s > 0):
        yield _beyond_plot(review, cluster)


def _attained(row: Attainment, review: Review) -> tuple[str, ...]:
    return (
        layer_title(row.layer),
        f"{row.figures:,}",
        say.share(row.within),
        say.minutes(row.beyond_s),
        say.minutes(row.out_of_line_s),
        say.share(row.observed_s / review.period.length_s),
        say.share(row.judged_s / row.figures / review.period.length_s),
    )


def _beyond_plot(review: Review, cluster: str) -> Plot:
    lines = tuple(
        Line(layer_title(row.layer), tuple((day, 1 - within) for day, within in row.days))
        for row in review.attainment
        if row.cluster == cluster and row.beyond_s > 0
    )
    return time_plot(
        review.period,
        lines,
        title="Share of measured time beyond tolerance" + (f", cluster {cluster}" if cluster else ""),
        about="By day; 0 is as accepted. Layers that never exceeded it are not drawn.",
        unit="share",
        gaps=gaps(review, cluster),
    )


def offenders(review: Review) -> Iterator[Block]:
    if review.figures:
        heads = ("Host", "Figure", "Layer", "Beyond", "Of its measured time", "Worst day")
        rows = ((each.cluster, _figure(each)) for each in review.figures)
        yield table(review, "Figures longest beyond tolerance", heads, rows)
    else:
        yield Paragraph("No judged figure was beyond its tolerance." if review.attainment else "No figure was judged.")
    for title, parts, without in (
        ("Disks", review.disks, "No alert named a disk."),
        ("OSDs", review.osds, "No alert named an OSD."),
    ):
        columns = (title[:-1], "Host", "Alerts", "Times", "Total", "Longest", "Compared with peers, worst day")
        named = ((each.cluster, _part(each)) for each in parts)
        yield table(review, f"{title} that alerts named", columns, named) if parts else Paragraph(without)


def _figure(each: FigureOffender) -> tuple[str, ...]:
    return (
        say.host(each.host),
        each.what,
        layer_title(each.layer),
        say.duration(each.beyond_s),
        say.share(each.beyond_s / each.judged_s) if each.judged_s else "",
        _worst(each.worst),
    )


def _part(each: PartOffender) -> tuple[str, ...]:
    return (
        each.part,
        say.listed([say.host(host) for host in each.host.split(", ")]),
        ", ".join(alert.removeprefix("Plumbline") for alert in each.alerts),
        f"{each.times:,}",
        say.duration(each.total_s),
        say.duration(each.longest_s),
        _worst(each.worst),
    )


def _worst(worst: Worst | None) -> str:
    return f"{say.level(worst.ratio, 'ratio')} on {say.date(worst.day_s)}" if worst else ""


def changes(review: Review) -> Iterator[Block]:
    if not review.changes:
        looked = say.count(review.changes_looked_at, "series", "series")
        found = f"None in {looked} examined."
        yield Paragraph(found if review.changes_looked_at else "There were no series to examine.")
        return
    heads = ("When (UTC)", "Where", "Before", "After", "Factor", "Lasted until", "Remark")
    title = f"{say.count(len(review.changes), 'change')} in {review.changes_looked_at:,} series, worst first"
    ordered = sorted(review.changes, key=lambda each: -each.factor)
    yield table(review, title, heads, ((each.cluster, _changed(each, review)) for each in ordered))
    for each in [each for each in ordered if not each.rerecorded and each.factor > 1][:DRAWN_CHANGES]:
        yield _change_plot(each, review)


def _changed(each: Change, review: Review) -> tuple[str, ...]:
    when = say.moment(each.at_s)
    if each.gradual:
        when = f"{say.date(each.at_s)} to {say.date(each.until_s - 1)}"
    elif _gap_before(each):
        when = f"{say.moment(each.not_before_s)} to {when}"
    until = "the end" if each.until_s >= review.period.end_s else say.date(each.until_s)
    levels = (say.level(each.before, each.unit), say.level(each.after, each.unit), say.level(each.factor, "ratio"))
    return when, name(each), *(text.replace(" ", NO_BREAK) for text in levels), until, ", ".join(_remarks(each))


def _gap_before(each: Change) -> bool:
    return each.at_s - each.not_before_s > 2 * 3600


def _remarks(each: Change) -> Iterator[str]:
    if each.gradual:
        yield "gradual, no single moment"
    elif _gap_before(each):
        yield "no data in between"
    if each.factor < 1:
        yield "improvement"
    if each.rerecorded:
        yield "the baseline was re-recorded at that time, so perhaps only the reference changed"


def _change_plot(each: Change, review: Review) -> Plot:
    return time_plot(
        review.period,
        (Line(each.what, each.days),),
        title=name(each),
        about="Median of each day" + ("; 1 is as accepted." if each.unit == "ratio" else "."),
        unit=each.unit,
        gaps=gaps(review, each.cluster),
        picture_only=True,
        moments=() if each.gradual else ((f"changed {say.moment(each.at_s)}", each.at_s),),
    )


def findings(review: Review) -> Iterator[Block]:
    if not review.findings:
        yield Paragraph("No finding was open in the period.")
        return
    of = Counter(each.outcome for each in review.findings)
    yield Paragraph(
        f"{of['opened'] + of['both']} opened, {of['closed'] + of['both']} closed, {of['throughout']} open throughout; a"
        " finding on two hosts or devices counts twice."
    )
    heads = ("Check", "Severity", "Subjects", "First open", "Last open")
    for outcome, title in (
        ("opened", "Opened in the period, still open"),
        ("closed", "Closed in the period"),
        ("both", "Opened and closed in the period"),
        ("unknown", "Open, then no longer seen: the host, the device or the check is gone"),
        ("throughout", "Open throughout"),
    ):
        if of[outcome]:
            yield table(review, title, heads, _finding_rows(review, outcome))


def _finding_rows(review: Review, outcome: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    groups: dict[tuple[str, str, str], list[FindingHistory]] = {}
    for each in review.findings:
        if each.outcome == outcome:
            groups.setdefault((each.cluster, each.check, each.severity), []).append(each)
    for (cluster, check, severity), group in groups.items():
        subjects = [f"{say.host(each.host)} {each.subject}".strip() for each in group]
        last = max(each.last_open_s for each in group)
        until = "the end" if last > review.period.end_s - LOOK_S else say.date(last)
        first = say.date(min(each.first_open_s for each in group))
        yield cluster, (check, severity, say.listed(subjects, SAME_CHECK), first, until)


def alerts(review: Review) -> Iterator[Block]:
    if not review.firings:
        yield Paragraph("No alert fired in the observed time.")
        return
    critical, warnings = counted(review)
    yield Paragraph(
        f"Critical alerts fired {say.count(critical, 'time')}, warnings {say.count(warnings, 'time')}; still firing at"
        f" the end: {sum(each.still for each in review.firings)}.{_per_thousand(review, critical, warnings)}"
    )
    heads = ("Alert", "Severity", "Layer", "Times", "Subjects", "Total", "Longest", "At the end")
    yield table(review, "By alert", heads, ((each.cluster, _fired(each)) for each in review.firings))


def _per_thousand(review: Review, critical: int, warnings: int) -> str:
    if not (weeks := host_weeks(review)):
        return ""
    pages, tickets = (say.number(1000 * count / weeks) for count in (critical, warnings))
    return f" For each 1,000 hosts and week of observation these are {pages} pages and {tickets} tickets."


def _fired(each: Firing) -> tuple[str, ...]:
    on = ", ".join(say.host(part) for part in each.longest_on.split(", "))
    longest = f"{say.duration(each.longest_s)}{f' ({on})' if on else ''}"
    layer = layer_title(each.layer) if each.layer else ""
    counted = (f"{each.times:,}", f"{each.subjects:,}", say.duration(each.total_s), longest)
    still = f"{each.still} firing" if each.still else ""
    return each.alert.removeprefix("Plumbline"), each.severity, layer, *counted, still


def events(review: Review) -> Iterator[Block]:
    if review.recorded:
        heads = ("When (UTC)", "Host", "Layer", "Device class", "Source", "Figures")
        yield table(review, "Baselines recorded", heads, map(_recorded, review.recorded))
    else:
        yield Paragraph("No baseline was recorded in the period.")
    if review.upgrades:
        heads = ("First seen (UTC)", "What", "From", "To", "Complete", "At the end")
        yield table(review, "Upgrades, sampled every six hours", heads, map(_upgraded, review.upgrades))
    else:
        yield Paragraph("No new version of Plumbline or Ceph appeared in the period.")
    yield from _drifts(review)


def _drifts(review: Review) -> Iterator[Block]:
    """Nothing where no node belongs to a class: there is no fleet."""
    if not review.drifts:
        return
    changed = [each for each in review.drifts if max(each.ratio, 1 / each.ratio) >= DRIFT]
    of = say.count(len({(each.cluster, each.fleet_class) for each in review.drifts}), "class", "classes")
    figures = say.count(len(review.drifts), "accepted figure")
    if not changed:
        yield Paragraph(f"No class of nodes drifted: {figures} of {of} changed by less than {DRIFT - 1:.0%}.")
        return
    heads = ("Class", "Nodes", "Figure", "At the beginning", "At the end", "Ratio", "New in the period")
    title = f"Classes of nodes whose accepted figures changed ({len(changed)} of {figures})"
    yield table(review, title, heads, ((each.cluster, _drifted(each, review)) for each in changed))


def _drifted(each: ClassDrift, review: Review) -> tuple[str, ...]:
    new = [f"{one.what} {one.version}" for one in review.upgrades if one.cluster == each.cluster]
    then, now = (figure_text(each.figure, value) for value in (each.then, each.now))
    what = f"{each.what}, {each.figure.removeprefix('latency.')}"
    return each.fleet_class, f"{each.nodes:,}", what, then, now, say.level(each.ratio, "ratio"), say.listed(new)


def _recorded(each: Recorded) -> tuple[str, tuple[str, ...]]:
    where = (say.moment(each.at_s), say.host(each.host), layer_title(each.layer))
    return each.cluster, (*where, each.device_class, each.source, f"{each.entries:,}")


def _upgraded(each: Upgrade) -> tuple[str, tuple[str, ...]]:
    complete = say.moment(each.complete_s) if each.complete_s is not None else "not complete"
    versions = (say.listed(each.before) or "none", each.version)
    return each.cluster, (say.moment(each.first_s), each.what, *versions, complete, f"{each.running} of {each.of}")
