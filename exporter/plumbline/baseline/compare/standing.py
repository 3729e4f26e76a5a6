"""Sentences about baselines that no longer fit: other parameters than measured now, or a changed environment.

Used by the status page and the commands; ``collectors/baseline.py`` has the metrics of the same facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plumbline.baseline.fingerprint import Fingerprint, Part, changes
from plumbline.baseline.selection import Selection

_WORDS = {
    Part.CEPH: "another Ceph",
    Part.KERNEL: "another kernel",
    Part.FIO: "another fio",
    Part.DISKS: "other disks or firmware",
    Part.NICS: "other network ports, drivers or firmware",
    Part.TUNING: "other kernel or queue settings",
}


def mismatched(selection: Selection) -> Iterator[str]:
    """One sentence for each measured operation whose only baselines have other parameters."""
    for one in selection.mismatched:
        target, entry = one.target, one.entry
        yield (
            f"{target.probe}: {target.operation} {target.workload} is not compared: the {entry.source} baseline"
            f" {entry.profile} was measured with other parameters ({entry.config_hash}, here {target.config_hash})"
        )


def outdated(measured_on: Mapping[str, Fingerprint], now: Fingerprint) -> Iterator[str]:
    """One sentence for each part of this node that changed since a measured baseline was recorded."""
    for profile, then in measured_on.items():
        for each in changes(then, now):
            yield f"baseline {profile} was measured with {_WORDS[each.part]}: {each.then}; now {each.now}"
