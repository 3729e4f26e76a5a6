"""What happened in the period: alerts that fired, findings, versions, baselines, and wear of disks."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from plumbline.core.grouping import grouped
from plumbline.report.model import FindingHistory, Firing, PartOffender, Recorded, Span, Upgrade, Wear, worst_days
from plumbline.report.period import Period
from plumbline.report.queries import LOOK_S
from plumbline.sources.prometheus.api import Track
from plumbline.sources.prometheus.queries import last_values

PARTS = 12
# half of the rated endurance: such disks are listed even if their rate of wear is unknown
WORN = 0.5
MOST_WORN = 20
_FINDING = ("cluster", "instance", "check", "subject", "urgency")
_OUTCOMES = ("opened", "closed", "both", "unknown", "throughout")
_DISK = ("cluster", "instance", "device")
_SEVERITIES = ("critical", "warning")
_NOT_SUBJECT = {"__name__", "alertstate", "alertname", "severity", "signal", "layer", "cluster"}


class Alert(Struct, frozen=True):
    """One alert with one set of labels, and each time it fired; ``still``: it fires at the end of the period."""

    labels: Mapping[str, str]
    spans: tuple[Span, ...]
    still: bool

    def key(self, *names: str) -> tuple[str, ...]:
        return tuple(self.labels.get(name, "") for name in names)

    @property
    def longest_s(self) -> float:
        return max(span.length_s for span in self.spans)


def alerts_of(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[Alert, ...]:
    """An alert ends at the first moment without it. If its beginning was not seen, it begins with the data."""
    events: dict[tuple[tuple[str, str], ...], list[tuple[float, bool]]] = defaultdict(list)
    for key, begins in (("alerts at first", True), ("alerts begun", True), ("alerts ended", False)):
        for track in answers[key]:
            events[tuple(sorted(track.labels.items()))] += [(at, begins) for at, _ in track.points]
    alerts = []
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
            alerts.append(Alert(dict(labels), tuple(spans), since is not None))
    return tuple(alerts)


def firings(alerts: Iterable[Alert]) -> tuple[Firing, ...]:
    """Alerts grouped by name and severity, critical ones first."""
    groups = grouped(alerts, lambda alert: alert.key("cluster", "alertname", "severity"))
    rows = []
    for (cluster, name, severity), group in groups.items():
        longest = max(group, key=lambda alert: alert.longest_s)
        rows.append(
            Firing(
                cluster=cluster,
                alert=name,
                severity=severity,
                layer=", ".join(_values(group, "layer")),
                subjects=len(group),
                times=sum(len(alert.spans) for alert in group),
                total_s=sum(span.length_s for alert in group for span in alert.spans),
                longest_s=longest.longest_s,
                longest_on=subject(longest.labels),
                still=sum(alert.still for alert in group),
            )
        )
    return tuple(
        sorted(rows, key=lambda firing: (firing.cluster, firing.severity != "critical", -firing.total_s, firing.alert))
    )


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
    # an OSD's number is unique in the cluster, a disk's name only on its host
    names = ("cluster", "instance" if label == "device" else "", label)
    worst = worst_days(peers, names, period)
    named = (alert for alert in alerts if alert.labels.get(label) and alert.labels.get("layer") == layer)
    groups = grouped(named, lambda alert: alert.key(*names))
    rows = [
        PartOffender(
            cluster=part[0],
            host=", ".join(_values(group, "instance")),
            part=part[2],
            alerts=_values(group, "alertname"),
            times=sum(len(alert.spans) for alert in group),
            total_s=_together(span for alert in group for span in alert.spans),
            longest_s=max(alert.longest_s for alert in group),
            worst=worst.get(part),
        )
        for part, group in groups.items()
    ]
    return tuple(
        sorted(rows, key=lambda offender: (-offender.total_s, offender.cluster, offender.host, offender.part))[:PARTS]
    )


def _values(alerts: Iterable[Alert], label: str) -> tuple[str, ...]:
    return tuple(sorted({alert.labels.get(label, "") for alert in alerts} - {""}))


def _together(spans: Iterable[Span]) -> float:
    """The time during which at least one of them lasted."""
    total, until = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.start_s):
        total += max(0.0, span.end_s - max(span.start_s, until))
        until = max(until, span.end_s)
    return total


def finding_histories(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[FindingHistory, ...]:
    """A finding is closed only if it was last seen met; one that is no longer seen is not claimed to be fixed."""
    met_first = {track.key(_FINDING) for track in answers["findings met first"]}
    met_last = {track.key(_FINDING) for track in answers["findings met last"]}
    begin = period.start_s + LOOK_S
    last_look = period.end_s - period.end_s % LOOK_S
    rows = []
    for track in answers["findings open"]:
        key = track.key(_FINDING)
        first, last = track.points[0][0], track.points[-1][0]
        open_last = last > last_look - LOOK_S and key not in met_last
        open_first = first < begin and key not in met_first
        if not open_last and key not in met_last:
            outcome = "unknown"
        elif open_last:
            outcome = "throughout" if open_first else "opened"
        else:
            outcome = "closed" if open_first else "both"
        rank = _SEVERITIES.index(key[4]) if key[4] in _SEVERITIES else len(_SEVERITIES)
        finding = FindingHistory(key[0], key[1], key[2], key[3], key[4], outcome, first, last)
        rows.append((_OUTCOMES.index(outcome), rank, key, finding))
    return tuple(finding for *_, finding in sorted(rows, key=lambda row: row[:3]))


def upgrades(answers: Mapping[str, Sequence[Track]]) -> tuple[Upgrade, ...]:
    """Versions that appeared in the period, without the one that ran at its beginning."""
    rows = []
    for kind, name in (("plumbline", "Plumbline"), ("ceph", "Ceph OSDs")):
        clusters: dict[str, dict[str, dict[float, float]]] = defaultdict(dict)
        for track in answers[f"versions {kind}"]:
            clusters[track.labels.get("cluster", "")][track.labels.get("version", "")] = dict(track.points)
        for cluster, versions in sorted(clusters.items()):
            looks = sorted({at for points in versions.values() for at in points})
            for version, points in versions.items():
                first = min(points)
                if first == looks[0]:
                    continue
                last_other = max((at for v, other in versions.items() if v != version for at in other), default=0.0)
                earlier = sorted((v for v, other in versions.items() if min(other) < first))
                rows.append(
                    Upgrade(
                        cluster=cluster,
                        what=name,
                        before=tuple(earlier),
                        version=version,
                        first_s=first,
                        complete_s=next((at for at in looks if at >= first and at > last_other), None),
                        running=int(points.get(looks[-1], 0)),
                        of=int(sum(other.get(looks[-1], 0) for other in versions.values())),
                    )
                )
    return tuple(sorted(rows, key=lambda upgrade: (upgrade.first_s, upgrade.what)))


def recorded(tracks: Iterable[Track], period: Period) -> tuple[Recorded, ...]:
    """One line for each host, layer and hour, because one recording writes many entries."""
    groups: dict[tuple[str, ...], dict[float, set[tuple[str, ...]]]] = defaultdict(lambda: defaultdict(set))
    for track in tracks:
        key = track.key(("cluster", "instance", "layer", "device_class", "source"))
        entry = track.key(("workload", "operation"))
        for _, at in track.points:
            if period.start_s <= at < period.end_s:
                groups[key][at // 3600 * 3600].add(entry)
    rows = (
        Recorded(key[0], key[1], key[2], key[3], key[4], at, len(entries))
        for key, hours in groups.items()
        for at, entries in hours.items()
    )
    return tuple(sorted(rows, key=lambda row: (row.at_s, row.cluster, row.host, row.layer, row.device_class)))


def worn(answers: Mapping[str, Sequence[Track]]) -> tuple[Wear, ...]:
    """The disks with the least endurance left, and the most worn ones."""
    left, first, last = (last_values(answers[key], _DISK) for key in ("endurance left", "wear first", "wear last"))
    names = {track.key(_DISK): track.key(("model", "serial")) for track in answers["disks"]}
    disks = []
    for key in {*left, *(key for key, wear in last.items() if wear >= WORN)}:
        model, serial = names.get(key, ("", ""))
        disks.append(Wear(key[0], key[1], key[2], model, serial, first.get(key), last.get(key), left.get(key)))

    def soonest(wear: Wear) -> tuple[float, float, str, str]:
        return math.inf if wear.left_s is None else wear.left_s, -(wear.wear_last or 0), wear.host, wear.device

    return tuple(sorted(disks, key=soonest)[:MOST_WORN])
