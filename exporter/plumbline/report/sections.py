"""The sections of a review on performance (attainment, offenders, changes) and on events."""

from collections import Counter
from collections.abc import Iterator

from plumbline.core import words as say
from plumbline.core.grouping import grouped
from plumbline.core.units import figure_text
from plumbline.pages.document import Block, Paragraph, Plot
from plumbline.report.baseline.words import layer_title
from plumbline.report.minimums import HOST_WEEKS, JUDGED_S
from plumbline.report.model import (
    Attainment,
    Change,
    ClassDrift,
    FigureOffender,
    Firing,
    PartOffender,
    PoolService,
    Recorded,
    Review,
    Upgrade,
    Worst,
)
from plumbline.report.queries import LOOK_S
from plumbline.report.summary import NO_CHANGES, counted, judged_enough, name, per_thousand
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
        yield table(
            review, "By pool", heads, ((service.cluster, _service(service, review)) for service in review.services)
        )
        if all(service.score is None for service in review.services):
            yield Paragraph(
                "Ceph's own figures are there from Ceph 20 on, where enable_availability_tracking is set and a daemon"
                " reads the cluster's map."
            )


def _service(service: PoolService, review: Review) -> tuple[str, ...]:
    own = (
        "" if service.score is None else say.share(service.score),
        *("" if seconds is None else say.duration(seconds) for seconds in (service.mtbf_s, service.mttr_s)),
    )
    return (
        service.pool,
        say.share(1 - service.unavailable_s / service.seen_s),
        say.minutes(service.unavailable_s),
        say.minutes(service.reduced_s),
        say.share(service.seen_s / review.period.length_s),
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
    for cluster in dict.fromkeys(row.cluster for row in judged_enough(review) if row.beyond_s > 0):
        yield _beyond_plot(review, cluster)


def _attained(row: Attainment, review: Review) -> tuple[str, ...]:
    if row.observed_s < JUDGED_S:
        return layer_title(row.layer), f"{row.figures:,}", "too little data", "", "", "", ""
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
        for row in judged_enough(review)
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
        rows = ((figure.cluster, _figure(figure)) for figure in review.figures)
        yield table(review, "Figures longest beyond tolerance", heads, rows)
    else:
        yield Paragraph("No judged figure was beyond its tolerance." if review.attainment else "No figure was judged.")
    for title, parts, without in (
        ("Disks", review.disks, "No alert named a disk."),
        ("OSDs", review.osds, "No alert named an OSD."),
    ):
        columns = (title[:-1], "Host", "Alerts", "Times", "Total", "Longest", "Compared with peers, worst day")
        named = ((part.cluster, _part(part)) for part in parts)
        yield table(review, f"{title} that alerts named", columns, named) if parts else Paragraph(without)


def _figure(offender: FigureOffender) -> tuple[str, ...]:
    return (
        say.host(offender.host),
        offender.what,
        layer_title(offender.layer),
        say.duration(offender.beyond_s),
        say.share(offender.beyond_s / offender.judged_s) if offender.judged_s else "",
        _worst(offender.worst),
    )


def _part(offender: PartOffender) -> tuple[str, ...]:
    return (
        offender.part,
        say.listed([say.host(host) for host in offender.host.split(", ")]),
        ", ".join(alert.removeprefix("Plumbline") for alert in offender.alerts),
        f"{offender.times:,}",
        say.duration(offender.total_s),
        say.duration(offender.longest_s),
        _worst(offender.worst),
    )


def _worst(worst: Worst | None) -> str:
    return f"{say.level(worst.ratio, 'ratio')} on {say.date(worst.day_s)}" if worst else ""


def changes(review: Review) -> Iterator[Block]:
    if not review.changes:
        looked = say.count(review.changes_looked_at, "series", "series")
        text = f"None in {looked} examined."
        yield Paragraph(text if review.changes_looked_at else NO_CHANGES)
        return
    heads = ("When (UTC)", "Where", "Before", "After", "Factor", "Lasted until", "Remark")
    title = f"{say.count(len(review.changes), 'change')} in {review.changes_looked_at:,} series, worst first"
    ordered = sorted(review.changes, key=lambda change: -change.factor)
    yield table(review, title, heads, ((change.cluster, _changed(change, review)) for change in ordered))
    for entry in [change for change in ordered if not change.rerecorded and change.factor > 1][:DRAWN_CHANGES]:
        yield _change_plot(entry, review)


def _changed(change: Change, review: Review) -> tuple[str, ...]:
    when = say.moment(change.at_s)
    if change.gradual:
        when = f"{say.date(change.at_s)} to {say.date(change.until_s - 1)}"
    elif _gap_before(change):
        when = f"{say.moment(change.not_before_s)} to {when}"
    until = "the end" if change.until_s >= review.period.end_s else say.date(change.until_s)
    levels = (
        say.level(change.before, change.unit),
        say.level(change.after, change.unit),
        say.level(change.factor, "ratio"),
    )
    return when, name(change), *(text.replace(" ", NO_BREAK) for text in levels), until, ", ".join(_remarks(change))


def _gap_before(change: Change) -> bool:
    return change.at_s - change.not_before_s > 2 * 3600


def _remarks(change: Change) -> Iterator[str]:
    if change.gradual:
        yield "gradual, no single moment"
    elif _gap_before(change):
        yield "no data in between"
    if change.factor < 1:
        yield "improvement"
    if change.rerecorded:
        yield "the baseline was re-recorded at that time, so perhaps only the reference changed"


def _change_plot(change: Change, review: Review) -> Plot:
    return time_plot(
        review.period,
        (Line(change.what, change.days),),
        title=name(change),
        about="Median of each day" + ("; 1 is as accepted." if change.unit == "ratio" else "."),
        unit=change.unit,
        gaps=gaps(review, change.cluster),
        picture_only=True,
        moments=() if change.gradual else ((f"changed {say.moment(change.at_s)}", change.at_s),),
    )


def findings(review: Review) -> Iterator[Block]:
    if not review.findings:
        yield Paragraph("No finding was open in the period.")
        return
    of = Counter(finding.outcome for finding in review.findings)
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
    findings = (finding for finding in review.findings if finding.outcome == outcome)
    groups = grouped(findings, lambda finding: (finding.cluster, finding.check, finding.severity))
    for (cluster, check, severity), group in groups.items():
        subjects = [f"{say.host(finding.host)} {finding.subject}".strip() for finding in group]
        last = max(finding.last_open_s for finding in group)
        until = "the end" if last > review.period.end_s - LOOK_S else say.date(last)
        first = say.date(min(finding.first_open_s for finding in group))
        yield cluster, (check, severity, say.listed(subjects, SAME_CHECK), first, until)


def alerts(review: Review) -> Iterator[Block]:
    if not review.firings:
        yield Paragraph("No alert fired in the observed time.")
        return
    critical, warnings = counted(review)
    yield Paragraph(
        f"Critical alerts fired {say.count(critical, 'time')}, warnings {say.count(warnings, 'time')}; still firing at"
        f" the end: {sum(firing.still for firing in review.firings)}.{_per_thousand(review)}"
    )
    heads = ("Alert", "Severity", "Layer", "Times", "Subjects", "Total", "Longest", "At the end")
    yield table(review, "By alert", heads, ((firing.cluster, _fired(firing)) for firing in review.firings))


def _per_thousand(review: Review) -> str:
    if (rates := per_thousand(review)) is None:
        return f" For each 1,000 hosts and week: too little data, it needs {HOST_WEEKS} weeks of a host."
    pages, tickets = map(say.number, rates)
    return f" For each 1,000 hosts and week of observation these are {pages} pages and {tickets} tickets."


def _fired(firing: Firing) -> tuple[str, ...]:
    on = ", ".join(say.host(part) for part in firing.longest_on.split(", "))
    longest = f"{say.duration(firing.longest_s)}{f' ({on})' if on else ''}"
    layer = layer_title(firing.layer) if firing.layer else ""
    counted = (f"{firing.times:,}", f"{firing.subjects:,}", say.duration(firing.total_s), longest)
    still = f"{firing.still} firing" if firing.still else ""
    return firing.alert.removeprefix("Plumbline"), firing.severity, layer, *counted, still


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
    changed = [drift for drift in review.drifts if max(drift.ratio, 1 / drift.ratio) >= DRIFT]
    of = say.count(len({(drift.cluster, drift.fleet_class) for drift in review.drifts}), "class", "classes")
    figures = say.count(len(review.drifts), "accepted figure")
    if not changed:
        yield Paragraph(f"No class of nodes drifted: {figures} of {of} changed by less than {DRIFT - 1:.0%}.")
        return
    heads = ("Class", "Nodes", "Figure", "At the beginning", "At the end", "Ratio", "New in the period")
    title = f"Classes of nodes whose accepted figures changed ({len(changed)} of {figures})"
    yield table(review, title, heads, ((drift.cluster, _drifted(drift, review)) for drift in changed))


def _drifted(drift: ClassDrift, review: Review) -> tuple[str, ...]:
    new = [f"{upgrade.what} {upgrade.version}" for upgrade in review.upgrades if upgrade.cluster == drift.cluster]
    then, now = (figure_text(drift.figure, value) for value in (drift.then, drift.now))
    what = f"{drift.what}, {drift.figure.removeprefix('latency.')}"
    return drift.fleet_class, f"{drift.nodes:,}", what, then, now, say.level(drift.ratio, "ratio"), say.listed(new)


def _recorded(row: Recorded) -> tuple[str, tuple[str, ...]]:
    where = (say.moment(row.at_s), say.host(row.host), layer_title(row.layer))
    return row.cluster, (*where, row.device_class, row.source, f"{row.entries:,}")


def _upgraded(upgrade: Upgrade) -> tuple[str, tuple[str, ...]]:
    complete = say.moment(upgrade.complete_s) if upgrade.complete_s is not None else "not complete"
    versions = (say.listed(upgrade.before) or "none", upgrade.version)
    return upgrade.cluster, (
        say.moment(upgrade.first_s),
        upgrade.what,
        *versions,
        complete,
        f"{upgrade.running} of {upgrade.of}",
    )
