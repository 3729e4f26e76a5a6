"""Alerts that fired, from the points where they began and ended: how often, how long, and on what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plumbline.report.asking import day_starts
from plumbline.report.model import Firing, PartOffender, Span
from plumbline.report.period import Period
from plumbline.sources.prometheus.api import Track

PARTS = 12
_NOT_SUBJECT = {"__name__", "alertstate", "alertname", "severity", "signal", "layer", "cluster"}
_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert with one set of labels, and each time it fired; ``still``: it fires at the end of the period."""

    labels: Mapping[str, str]
    spans: tuple[Span, ...]
    still: bool

    @property
    def total_s(self) -> float:
        """The sum of all times it fired."""
        return sum(span.length_s for span in self.spans)

    @property
    def longest_s(self) -> float:
        """The longest time it fired."""
        return max(span.length_s for span in self.spans)


def alerts_of(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[Alert, ...]:
    """An alert ends at the first moment at which it no longer fires. If its beginning was not seen, it begins with the
    data."""
    events: dict[_Labels, list[tuple[float, bool]]] = defaultdict(list)
    for key, begins in (("alerts at first", True), ("alerts begun", True), ("alerts ended", False)):
        for track in answers[key]:
            events[tuple(sorted(track.labels.items()))] += [(at, begins) for at, _ in track.points]
    found = []
    for labels, moments in sorted(events.items()):
        spans, since = [], None
        for at, begins in sorted(moments):
            if begins:
                since = at if since is None else since
            elif since is not None:
                spans.append(Span(since, at))
                since = None
        if since is not None:
            spans.append(Span(since, period.end_s))
        if spans:
            found.append(Alert(dict(labels), tuple(spans), since is not None))
    return tuple(found)


def firings(alerts: Iterable[Alert]) -> tuple[Firing, ...]:
    """Alerts grouped by name and severity, critical ones first."""
    groups: dict[tuple[str, str, str], list[Alert]] = defaultdict(list)
    for alert in alerts:
        labels = alert.labels
        groups[labels.get("cluster", ""), labels.get("alertname", ""), labels.get("severity", "")].append(alert)
    found = []
    for (cluster, name, severity), group in groups.items():
        longest = max(group, key=lambda alert: alert.longest_s)
        found.append(
            Firing(
                cluster=cluster,
                alert=name,
                severity=severity,
                layer=", ".join(sorted({alert.labels.get("layer", "") for alert in group} - {""})),
                subjects=len(group),
                times=sum(len(alert.spans) for alert in group),
                total_s=sum(alert.total_s for alert in group),
                longest_s=longest.longest_s,
                longest_on=subject(longest.labels),
                still=sum(alert.still for alert in group),
            )
        )
    return tuple(sorted(found, key=lambda each: (each.cluster, each.severity != "critical", -each.total_s, each.alert)))


def subject(labels: Mapping[str, str]) -> str:
    """What an alert is about: its node, daemon, device or probe, else its other labels."""
    first = [labels[name] for name in ("instance", "ceph_daemon", "device", "probe") if labels.get(name)]
    if first:
        return ", ".join(first)
    return ", ".join(f"{name} {value}" for name, value in sorted(labels.items()) if name not in _NOT_SUBJECT)


def offenders(
    alerts: Iterable[Alert], peers: Iterable[Track], period: Period, *, label: str, layer: str
) -> tuple[PartOffender, ...]:
    """The disks (``label`` device) or OSDs (ceph_daemon) named by alerts of ``layer``."""
    worst: dict[tuple[str, str, str], list[tuple[float, int]]] = defaultdict(list)
    for track in peers:
        worst[_part(track.labels, label)] += [(value, day) for day, value in day_starts(track.points, period).items()]
    groups: dict[tuple[str, str, str], list[Alert]] = defaultdict(list)
    for alert in alerts:
        if alert.labels.get(label) and alert.labels.get("layer") == layer:
            groups[_part(alert.labels, label)].append(alert)
    found = []
    for part, group in groups.items():
        cluster, _, name = part
        ratio, day = max(worst[part]) if worst[part] else (None, None)
        found.append(
            PartOffender(
                cluster=cluster,
                host=", ".join(sorted({alert.labels.get("instance", "") for alert in group} - {""})),
                part=name,
                alerts=tuple(sorted({alert.labels.get("alertname", "") for alert in group})),
                times=sum(len(alert.spans) for alert in group),
                total_s=_together(span for alert in group for span in alert.spans),
                longest_s=max(alert.longest_s for alert in group),
                worst=ratio,
                worst_day_s=day,
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.total_s, each.cluster, each.host, each.part))[:PARTS])


def _part(labels: Mapping[str, str], label: str) -> tuple[str, str, str]:
    """An OSD's number is unique in the cluster, a disk's name only on its host."""
    host = labels.get("instance", "") if label == "device" else ""
    return labels.get("cluster", ""), host, labels.get(label, "")


def _together(spans: Iterable[Span]) -> float:
    """The time during which at least one of them lasted."""
    total, until = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.start_s):
        total += max(0.0, span.end_s - max(span.start_s, until))
        until = max(until, span.end_s)
    return total
