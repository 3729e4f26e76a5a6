"""The status page: one HTML document without scripts or external parts, for a person in a hurry.

This module defines the content and its order; the templates (``pages/templates/status``) define the appearance and
escape all texts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby

from msgspec import Struct

from plumbline.checks.model import Finding, Severity
from plumbline.config.workloads import LAYERS
from plumbline.core.grouping import grouped
from plumbline.core.units import count_text, figure_text, seconds_text, si
from plumbline.core.words import first_few
from plumbline.metrics.snapshot import CollectorHealth
from plumbline.pages import charts
from plumbline.pages.htmltext import Html
from plumbline.pages.templates import render
from plumbline.status.layers import judge_layers
from plumbline.status.model import Level, NicRow, OsdRow, ProbeRow, StatusModel, Times, Trend
from plumbline.status.verdict import judge

__all__ = ["place", "render_status"]

IN_VIEW = 12  # Lines before the rest is folded, enough for a dozen disks. For findings: per check, and over all checks.
_NAMED = 3
_LEVELS = {Severity.CRITICAL: Level.BAD, Severity.WARNING: Level.NOTE, Severity.INFO: Level.NEUTRAL}


class FindingGroup(Struct, frozen=True):
    severity: Severity
    check: str
    findings: tuple[Finding, ...]
    unfolded: bool

    @property
    def level(self) -> Level:
        return _LEVELS[self.severity]

    @property
    def names(self) -> str:
        """``sda, sdb, sdc and 57 more``."""
        return first_few((finding.subject for finding in self.findings), _NAMED)

    @property
    def one_reason(self) -> bool:
        """Whether all findings have the same reason, so that it is shown once."""
        return len({(finding.why, finding.source) for finding in self.findings}) == 1


class Absence(Struct, frozen=True):
    what: str
    kind: str
    why: str
    newest: str = ""


def render_status(model: StatusModel) -> str:
    open_ones = model.open_findings
    broken = [collector for collector in model.collectors if not collector.success]
    absences = [*_absent(model.collectors), *_left_out(model.collectors), *_skipped(model.probes)]
    layers = judge_layers(model)
    known = {layer.layer for layer in layers}
    return render(
        "status/page.html",
        model=model,
        now=f"{datetime.fromtimestamp(model.now_ts, UTC):%Y-%m-%d %H:%M:%S}",
        up_s=max(0.0, model.now_ts - model.started_ts),
        verdict=judge(model, layers),
        layers=layers,
        unknown_layers=[layer for layer in LAYERS if layer not in known],
        contents=_contents(model, len(open_ones), failing=bool(broken or model.failures), absent=bool(absences)),
        probes=sorted(model.probes, key=_probe_order),
        broken=broken,
        open_findings=len(open_ones),
        findings_about=_findings_about(model.findings, len(open_ones)),
        groups=list(_groups(open_ones)),
        osds=sorted(model.osds, key=_osd_order),
        osds_here={osd.daemon for osd in model.osds},
        disks=sorted(
            model.disks,
            key=lambda row: (-_slowest(row.times), -max(row.read_mean_s or 0.0, row.write_mean_s or 0.0), row.device),
        ),
        disks_here={disk.device for disk in model.disks},
        findings_of=Counter(finding.subject for finding in open_ones),
        nics=sorted(model.nics, key=_nic_order),
        recently=_recently(model.window_s),
        since=_since(model.window_s),
        absences=absences,
        working=sum(collector.success and collector.available for collector in model.collectors),
        in_view=IN_VIEW,
        **_FORMATS,
    )


def place(kind: str, name: str) -> str:
    """A stable anchor on the page: ``disk-sda``; other characters are replaced by their code point."""
    return f"{kind}-" + re.sub(r"[^A-Za-z0-9.-]", lambda match: f"_{ord(match[0]):x}_", name)


def _contents(model: StatusModel, open_findings: int, *, failing: bool, absent: bool) -> list[tuple[str, str]]:
    """The sections present below the layers: anchor, and title with count."""
    sections = (
        ("probes", f"Probes {len(model.probes)}", True),
        ("failing", "Failures", failing),
        ("findings", f"Findings {open_findings}", True),
        ("osds", f"OSDs {len(model.osds)}", bool(model.osds)),
        ("disks", f"Disks {len(model.disks)}", True),
        ("network", f"Network {len(model.nics)}", True),
        ("softnet", "Softnet", model.softnet is not None),
        ("unavailable", "Not available", absent),
        ("collectors", f"Collectors {len(model.collectors)}", True),
    )
    return [(ident, name) for ident, name, there in sections if there]


def _probe_order(row: ProbeRow) -> tuple[bool, float, bool, bool]:
    failed = row.success is False or row.stuck_s is not None
    return not failed, -row.excess if row.excess > 1 else 0.0, not row.overdue, row.success is not None


def _osd_order(row: OsdRow) -> tuple[bool, bool, bool, float]:
    return row.answers, not row.blocked, not row.slow, -_slowest(row.times)


def _nic_order(row: NicRow) -> tuple[bool, bool, bool, str]:
    """Devices that are losing packets now first, then those with earlier losses, then those that are up."""
    growing = any(loss.grew and not loss.benign for loss in row.losses)
    return not growing, not any(not loss.benign for loss in row.losses), not row.up, row.device


def _slowest(times: Iterable[Times]) -> float:
    return max((time.p99_s or 0.0 for time in times), default=0.0)


def _findings_about(findings: Sequence[Finding] | None, open_ones: int) -> str:
    if findings is None:
        return "This host has not been judged yet."
    if open_ones:
        return f"Documented advice that is not met ({open_ones} of {len(findings)} findings), by check"
    if not findings:
        return "No advice applies here."
    return f"All documented advice that applies here is met ({len(findings)} of {len(findings)} findings)."


def _groups(open_ones: Sequence[Finding]) -> Iterator[FindingGroup]:
    seen = 0
    ordered = sorted(
        open_ones, key=lambda finding: (finding.severity.rank, finding.check)
    )  # stable: subjects stay in order
    for (severity, check), members in groupby(ordered, key=lambda finding: (finding.severity, finding.check)):
        group = tuple(members)
        seen += min(len(group), IN_VIEW)
        yield FindingGroup(severity, check, group, unfolded=severity is Severity.CRITICAL or seen <= IN_VIEW)


def _absent(healths: Sequence[CollectorHealth]) -> Iterator[Absence]:
    """One line per reason, because without InfiniBand several collectors give the same one."""
    absent = (health for health in healths if health.success and not health.available)
    for reason, alike in grouped(absent, lambda health: health.reason).items():
        names = ", ".join(health.name for health in alike)
        yield Absence(names, "collector" if len(alike) == 1 else "collectors", reason)


def _left_out(healths: Sequence[CollectorHealth]) -> Iterator[Absence]:
    for health in healths:
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in health.skipped.items() if count)
        if skipped:
            yield Absence(health.name, "items left out since the start", skipped)


def _skipped(rows: Sequence[ProbeRow]) -> Iterator[Absence]:
    """Each probe once, although it has a row for each operation."""
    by_probe: dict[str, ProbeRow] = {}
    for row in rows:
        if any(row.skipped.values()):
            by_probe.setdefault(row.probe, row)
    for row in by_probe.values():
        skipped = ", ".join(f"{reason} {count:,}" for reason, count in sorted(row.skipped.items()) if count)
        last = f"the newest: {row.last_skip}" if row.last_skip else "has run since"
        yield Absence(row.probe, "starts skipped", skipped, last)


def _recently(window_s: float | None) -> str:
    return "since the daemon started" if window_s is None else f"of the last {seconds_text(round(window_s))}"


def _since(window_s: float | None) -> str:
    more = "" if window_s is None else f"; in parentheses: added in the last {seconds_text(round(window_s))}"
    return f"Totals since boot{more}"


def _thousands(count: int) -> str:
    return f"{count:,}"


def _grown(total: int, grew: int | None) -> str:
    return f"{total:,} (+{grew:,})" if grew else f"{total:,}"


def sparkline(trend: Trend) -> Html:
    return charts.sparkline(trend.values, trend.baseline, trend_text(trend))


def trend_text(trend: Trend) -> str:
    """The text alternative: ``p50, last 60 min: last 1.05 ms, lowest 300 µs, highest 1.2 ms; baseline 331 µs``."""
    measured = [value for value in trend.values if value is not None]
    if not measured:
        return f"{trend.of}: nothing measured"
    last, lowest, highest = (
        figure_text(trend.measure, value) for value in (measured[-1], min(measured), max(measured))
    )
    baseline = f"baseline {figure_text(trend.measure, trend.baseline)}" if trend.baseline else "no baseline"
    return f"{trend.of}: last {last}, lowest {lowest}, highest {highest}; {baseline}"


_FORMATS: Mapping[str, object] = {
    "counted": count_text,
    "grown": _grown,
    "place": place,
    "seconds": seconds_text,
    "si": si,
    "sparkline": sparkline,
    "thousands": _thousands,
}
