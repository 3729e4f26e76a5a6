"""The sections of a review on events: findings, alerts, baselines, upgrades."""

from __future__ import annotations

from plumbline.pages.document import Block, Paragraph, Section
from plumbline.report import phrases as say
from plumbline.report.model import FindingFate, Firing, Recorded, Review, Upgrade
from plumbline.report.queries import LOOK_S
from plumbline.report.sections import table

SAME_CHECK = 3
"""Hosts named for one check, so that a fleet with one misconfiguration takes one line."""


def findings(review: Review) -> Section:
    """Advice that hosts do not follow."""
    about = (
        "Documented advice that a host does not meet (plumbline check says what mends it), as of looks six hours"
        " apart; what came and went between two looks is not here. Advice of the severity info is left out."
    )
    if not review.findings:
        return Section("findings", "Findings", about, (Paragraph("None was seen open in the period."),))
    fates = (
        ("opened", "Opened in the period, still open"),
        ("closed", "Closed in the period"),
        ("both", "Opened and closed in the period"),
        ("unknown", "Open, then no longer seen: the host, the device or the check is gone"),
        ("throughout", "Open throughout"),
    )
    blocks: list[Block] = [Paragraph(_counted(review))]
    heads = ("Check", "Severity", "Subjects", "First open", "Last open")
    for fate, title in fates:
        rows = _finding_rows(review, [each for each in review.findings if each.fate == fate])
        if rows:
            blocks.append(table(review, title, heads, rows))
    return Section("findings", "Findings", about, tuple(blocks))


def _counted(review: Review) -> str:
    of = {
        fate: sum(each.fate == fate for each in review.findings) for fate in ("opened", "closed", "both", "throughout")
    }
    return (
        f"{of['opened'] + of['both']} opened, {of['closed'] + of['both']} closed, {of['throughout']} open throughout; a"
        " finding of two hosts or devices counts twice."
    )


def _finding_rows(review: Review, found: list[FindingFate]) -> list[tuple[str, tuple[str, ...]]]:
    groups: dict[tuple[str, str, str], list[FindingFate]] = {}
    for each in found:
        groups.setdefault((each.cluster, each.check, each.severity), []).append(each)
    return [
        (
            cluster,
            (
                check,
                severity,
                say.listed([" ".join(filter(None, (say.host(each.host), each.subject))) for each in group], SAME_CHECK),
                say.date(min(each.first_open_s for each in group)),
                _until(review, max(each.last_open_s for each in group)),
            ),
        )
        for (cluster, check, severity), group in groups.items()
    ]


def _until(review: Review, at_s: float) -> str:
    return "the end" if at_s > review.period.end_s - LOOK_S else say.date(at_s)


def alerts(review: Review) -> Section:
    """Alerts that fired."""
    about = (
        "Alerts that fired, critical ones (they wake somebody) first, to the minute. “Together” adds up all subjects."
        " Alerts that Alertmanager held back for a deeper cause are counted, too; one that fires before and after a"
        " gap in the data counts twice; the severity info is left out."
    )
    if not review.firings:
        return Section("alerts", "Alerts", about, (Paragraph("None fired in the observed time."),))
    pages = [each for each in review.firings if each.severity == "critical"]
    text = (
        f"{say.count(sum(each.times for each in pages), 'time')} critical,"
        f" {say.count(sum(each.times for each in review.firings) - sum(each.times for each in pages), 'time')} a"
        f" warning; still firing at the end: {sum(each.still for each in review.firings)}."
    )
    heads = ("Alert", "Severity", "Layer", "Times", "Subjects", "Together", "Longest", "At the end")
    rows = ((each.cluster, _fired(each)) for each in review.firings)
    return Section("alerts", "Alerts", about, (Paragraph(text), table(review, "By alert", heads, rows)))


def _fired(each: Firing) -> tuple[str, ...]:
    on = ", ".join(say.host(part) for part in each.longest_on.split(", "))
    longest = f"{say.duration(each.longest_s)}{f' ({on})' if on else ''}"
    layer = say.layer(each.layer) if each.layer else ""
    counted = (f"{each.times:,}", f"{each.subjects:,}", say.duration(each.total_s), longest)
    still = f"{each.still} firing" if each.still else ""
    return each.alert.removeprefix("Plumbline"), each.severity, layer, *counted, still


def events(review: Review) -> Section:
    """Baselines and upgrades: changes made by people."""
    about = "Baselines that were measured or written in the period, and versions that came: what may explain a change."
    blocks: list[Block] = []
    if review.recorded:
        heads = ("When (UTC)", "Host", "Layer", "Device class", "Source", "Figures")
        blocks.append(table(review, "Baselines recorded", heads, map(_recorded, review.recorded)))
    else:
        blocks.append(Paragraph("No baseline was recorded in the period."))
    if review.upgrades:
        heads = ("First seen (UTC)", "What", "From", "To", "Complete", "At the end")
        rows = ((each.cluster, _upgraded(each)) for each in review.upgrades)
        blocks.append(table(review, "Upgrades, by looks six hours apart", heads, rows))
    else:
        blocks.append(Paragraph("No other version of Plumbline or Ceph came in the period."))
    return Section("events", "Baselines and upgrades", about, tuple(blocks))


def _recorded(each: Recorded) -> tuple[str, tuple[str, ...]]:
    where = (say.moment(each.at_s), say.host(each.host), say.layer(each.layer))
    return each.cluster, (*where, each.device_class, each.source, f"{each.entries:,}")


def _upgraded(each: Upgrade) -> tuple[str, ...]:
    complete = say.moment(each.complete_s) if each.complete_s is not None else "not complete"
    before = say.listed(each.before) or "none"
    return say.moment(each.first_s), each.what, before, each.version, complete, f"{each.running} of {each.of}"
