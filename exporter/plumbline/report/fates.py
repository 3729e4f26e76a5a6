"""What happened to findings, versions, baselines and disks in the period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from plumbline.report.model import FindingFate, Recorded, Upgrade, Wear
from plumbline.report.period import Period
from plumbline.report.queries import LOOK_S
from plumbline.sources.prometheus.api import Track

_FINDING = ("cluster", "instance", "check", "subject", "severity")
_DISK = ("cluster", "instance", "device")
_SEVERITIES = ("critical", "warning")


def finding_fates(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[FindingFate, ...]:
    """A finding is closed only if it was last seen met; one that is no longer seen is not claimed to be fixed."""
    met_first = {track.key(_FINDING) for track in answers["findings met first"]}
    met_last = {track.key(_FINDING) for track in answers["findings met last"]}
    begin = period.start_s + LOOK_S
    last_look = period.end_s - period.end_s % LOOK_S
    found = []
    for track in answers["findings open"]:
        key = track.key(_FINDING)
        first, last = track.points[0][0], track.points[-1][0]
        open_last = last > last_look - LOOK_S and key not in met_last
        open_first = first < begin and key not in met_first
        if not open_last and key not in met_last:
            fate = "unknown"
        elif open_last:
            fate = "throughout" if open_first else "opened"
        else:
            fate = "closed" if open_first else "both"
        found.append(FindingFate(key[0], key[1], key[2], key[3], key[4], fate, first, last))
    order = ("opened", "closed", "both", "unknown", "throughout")
    return tuple(
        sorted(
            found,
            key=lambda each: (
                order.index(each.fate),
                _SEVERITIES.index(each.severity) if each.severity in _SEVERITIES else len(_SEVERITIES),
                each.cluster,
                each.host,
                each.check,
                each.subject,
            ),
        )
    )


def upgrades(answers: Mapping[str, Sequence[Track]]) -> tuple[Upgrade, ...]:
    """Versions that appeared in the period, without the one that ran at its beginning."""
    found = []
    for kind, name in (("plumbline", "Plumbline"), ("ceph", "Ceph OSDs")):
        clusters: dict[str, dict[str, dict[float, float]]] = defaultdict(dict)
        for track in answers[f"versions {kind}"]:
            clusters[track.labels.get("cluster", "")][track.labels.get("version", "")] = dict(track.points)
        for cluster, versions in sorted(clusters.items()):
            looks = sorted({at for points in versions.values() for at in points})
            for version, points in sorted(versions.items(), key=lambda item: min(item[1])):
                first = min(points)
                if first == looks[0]:
                    continue
                mixed = [at for at in looks if any(at in other for v, other in versions.items() if v != version)]
                others_after = [at for at in mixed if at >= first]
                complete = next((at for at in looks if at >= first and at > max(others_after, default=0.0)), None)
                earlier = sorted(v for v, other in versions.items() if min(other) < first)
                found.append(
                    Upgrade(
                        cluster=cluster,
                        what=name,
                        before=tuple(earlier),
                        version=version,
                        first_s=first,
                        complete_s=complete,
                        running=int(points.get(looks[-1], 0)),
                        of=int(sum(other.get(looks[-1], 0) for other in versions.values())),
                    )
                )
    return tuple(sorted(found, key=lambda each: (each.first_s, each.what)))


def recorded(tracks: Iterable[Track], period: Period) -> tuple[Recorded, ...]:
    """One line for each host, layer and hour, because one recording writes many entries."""
    groups: dict[tuple[str, ...], dict[float, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    for track in tracks:
        key = track.key(("cluster", "instance", "layer", "device_class", "source"))
        entry = (track.labels.get("workload", ""), track.labels.get("operation", ""))
        for _, at in track.points:
            if period.start_s <= at < period.end_s:
                groups[key][at // 3600 * 3600].add(entry)
    found = [
        Recorded(key[0], key[1], key[2], key[3], key[4], at, len(entries))
        for key, hours in groups.items()
        for at, entries in hours.items()
    ]
    return tuple(sorted(found, key=lambda each: (each.at_s, each.cluster, each.host, each.layer, each.device_class)))


def worn(answers: Mapping[str, Sequence[Track]]) -> tuple[Wear, ...]:
    """The disks with the least endurance left, and the most worn ones."""
    left = _values(answers["endurance left"])
    first, last = _values(answers["wear first"]), _values(answers["wear last"])
    names = {track.key(_DISK): track.labels for track in answers["disks"]}
    found = [
        Wear(
            key[0],
            key[1],
            key[2],
            names.get(key, {}).get("model", ""),
            names.get(key, {}).get("serial", ""),
            first.get(key),
            last.get(key),
            left.get(key),
        )
        for key in {*left, *(key for key, wear in last.items() if wear >= WORN)}
    ]
    endless = float("inf")
    return tuple(
        sorted(found, key=lambda w: (endless if w.left_s is None else w.left_s, -(w.wear_last or 0), w.host, w.device))
    )[:MOST_WORN]


WORN = 0.5
"""Half of the rated endurance: such disks are listed even if their rate of wear is unknown."""
MOST_WORN = 20


def _values(tracks: Iterable[Track]) -> dict[tuple[str, ...], float]:
    return {track.key(_DISK): track.points[-1][1] for track in tracks}
