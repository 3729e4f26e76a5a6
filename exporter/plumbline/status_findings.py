"""The findings on the status page: by check, the worst first, each with the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from plumbline.checks.model import Finding, Severity
from plumbline.htmltext import Html, joined, tag
from plumbline.status_model import Level, StatusModel
from plumbline.status_parts import Row, cut_table, folded, mark, section, small, word

IN_VIEW = 12
"""Findings before the rest is folded, together and of one check."""
_NAMED = 3
_LEVELS = {Severity.CRITICAL: Level.BAD, Severity.WARNING: Level.NOTE, Severity.INFO: Level.NEUTRAL}


def findings(model: StatusModel) -> Html:
    """What is not met; how many are met in one line."""
    if model.findings is None:
        return section("findings", "Findings", "This host has not been judged yet.")
    open_ones = [each for each in model.findings if not each.met]
    met = len(model.findings) - len(open_ones)
    if not open_ones:
        text = (
            f"All documented advice that applies here is met ({met} of {met} findings)."
            if met
            else "No advice applies here."
        )
        return section("findings", "Findings", text)
    about = f"Documented advice that is not met ({len(open_ones)} of {len(model.findings)} findings), by check"
    return section("findings", f"Findings ({len(open_ones):,})", about, *_groups(open_ones))


def _groups(open_ones: Sequence[Finding]) -> Iterator[Html]:
    seen = 0
    ordered = sorted(open_ones, key=lambda each: (each.severity.rank, each.check))  # stable: subjects stay in order
    for (severity, check), members in groupby(ordered, key=lambda each: (each.severity, each.check)):
        group = list(members)
        seen += min(len(group), IN_VIEW)
        yield _group(severity, check, group, unfolded=severity is Severity.CRITICAL or seen <= IN_VIEW)


def _group(severity: Severity, check: str, group: Sequence[Finding], *, unfolded: bool) -> Html:
    level = _LEVELS[severity]
    names = ", ".join(each.subject for each in group[:_NAMED])
    more = f" and {len(group) - _NAMED:,} more" if len(group) > _NAMED else ""
    summary = joined(mark(level), " ", word(level, severity), f" {check}: {names}{more}")
    shared = {(each.why, each.source) for each in group}
    why = ""
    columns = ["Subject", "Is, and should be", "What mends it"]
    if len(shared) == 1:
        why = tag("p", f"{group[0].why} ({group[0].source})")
    else:
        columns.insert(2, "Why")
    rows = [Row(_cells(each, why=len(shared) > 1)) for each in group]
    listed = cut_table(columns, rows, label=f"{severity} {check}", most=IN_VIEW, rest="findings of this check")
    return folded(summary, why, listed, unfolded=unfolded)


def _cells(finding: Finding, *, why: bool) -> list[str]:
    cells = [finding.subject, joined(finding.is_, small(f"should be: {finding.should}"))]
    if why:
        cells.append(joined(finding.why, small(finding.source)))
    cells.append(_fix(finding))
    return cells


def _fix(finding: Finding) -> str:
    if finding.fix is None:
        return ""
    parts: list[str] = [tag("code", finding.fix.now)]
    if finding.fix.caution:
        parts.append(small(finding.fix.caution))
    keep = finding.fix.keep
    if keep is not None:
        parts.append(small(f"To stay, in {keep.file}{f' {keep.place}' if keep.place else ''}: "))
        parts.append(tag("code", keep.content))
    return joined(*parts)
