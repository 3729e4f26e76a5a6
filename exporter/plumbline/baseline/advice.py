"""Which documented figures are comparable with what a node has, and the probes that measure the same.

A documented row is comparable if the node has something of its layer and device class, and a type of probe can run
its workload there. Of the comparable rows of a profile the cheapest is advised: a read before a write, random before
sequential, one with a latency before one without, then the one with the fewest operations in flight.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from plumbline.baseline.model import BaselineEntry, Target, experiment
from plumbline.baseline.nearest import Nearest
from plumbline.baseline.profiles import LoadedProfile
from plumbline.config.workloads import (
    BlockWorkload,
    OsdBench,
    Pattern,
    RadosBench,
    RbdBench,
    RoundTrip,
    TcpThroughput,
    Workload,
    load_catalogue,
)

_MOST_BYTES = 2**30  # of all files of one probe; more than the cache of a rotational disk
_RANDOM = (Pattern.RANDREAD, Pattern.RANDWRITE)
_DOUBT = "that contradict themselves or are a maker's promise, and so never judge"


class Via(StrEnum):
    """How a probe reaches what it measures."""

    RAW = "raw disk"
    FILES = "files"
    PEER = "peer"
    OSD = "OSD"
    POOL = "pool"
    IMAGE = "image"


class Subject(Struct, frozen=True):
    """Things of one kind and class that this node has. ``names``: the disks, peers, OSDs or the pool. ``about``: their
    models, for a person to compare with the document's. ``given``: the class was not detected but given by the user."""

    via: Via
    layer: str
    device_class: str
    names: tuple[str, ...]
    about: str = ""
    given: bool = False


class Advice(Struct, frozen=True):
    """What one profile has for one subject; without ``profile`` no document has anything. ``why``: why it is
    comparable, or why not. ``workload`` and ``figure``: the row advised. ``measured_by``: the probe that measures it
    already; else ``probe`` is one to configure, as in a file; ``heavy``: it loads the cluster or the network."""

    subject: Subject
    why: str
    profile: str = ""
    hardware: str = ""
    rows: int = 0
    comparable: bool = False
    workload: str = ""
    figure: str = ""
    measured_by: str = ""
    probe: Mapping[str, Any] | None = None
    heavy: bool = False


def advise(
    subjects: Iterable[Subject],
    profiles: Mapping[str, LoadedProfile],
    targets: Sequence[Target],
) -> tuple[Advice, ...]:
    """One for each subject and each profile that has rows of its layer and class. ``targets``: what this node's probes
    measure already."""
    return tuple(advice for subject in subjects for advice in _of_subject(subject, profiles, targets))


def chosen(advice: Sequence[Advice], judge: Mapping[str, str], preferred: str = "") -> dict[str, str]:
    """Device class → the profile to judge it by: the configured one, else ``preferred`` if it has comparable rows, else
    the one with most."""
    rows: dict[str, Counter[str]] = {}
    for row in advice:
        if row.comparable:
            rows.setdefault(row.subject.device_class, Counter())[row.profile] += row.rows
    return {
        device_class: judge.get(device_class)
        or (preferred if counts[preferred] else max(sorted(counts), key=lambda name: counts[name]))
        for device_class, counts in sorted(rows.items())
    }


def probes(
    advice: Sequence[Advice], judge: Mapping[str, str], taken: Collection[str], *, heavy: bool
) -> list[dict[str, Any]]:
    """The probes to configure for the chosen profiles, one for each way and workload; ``taken``: names in use."""
    by_way: dict[tuple[Via, str, bool], dict[str, Any]] = {}
    for row in advice:
        if row.probe is None or judge.get(row.subject.device_class) != row.profile or (row.heavy and not heavy):
            continue
        key = row.subject.via, row.workload, row.subject.given
        if key in by_way:
            for field in ("devices", "targets"):
                if field in by_way[key]:
                    by_way[key][field] = list(dict.fromkeys([*by_way[key][field], *row.probe[field]]))
        else:
            by_way[key] = dict(row.probe)
    used = set(taken)
    for probe in by_way.values():
        name, number = probe["name"], 2
        while probe["name"] in used:
            probe["name"], number = f"{name}-{number}", number + 1
        used.add(probe["name"])
    return list(by_way.values())


def _of_subject(subject: Subject, profiles: Mapping[str, LoadedProfile], targets: Sequence[Target]) -> Iterator[Advice]:
    place = (subject.layer, subject.device_class)
    known = False
    for name, profile in profiles.items():
        rows = [row for row in profile.rows if (row.entry.layer, row.entry.device_class) == place]
        if rows:
            known = True
            hardware = "; ".join(dict.fromkeys(row.hardware.description for row in rows))
            entries = [row.entry for row in rows]
            yield replace(_judged(subject, entries, targets), profile=name, hardware=hardware)
    if not known:
        classes = sorted(
            {
                entry.device_class
                for profile in profiles.values()
                for entry in profile.entries
                if entry.layer == subject.layer
            }
        )
        why = f"no document has figures of this class; of the layer {subject.layer} they have {', '.join(classes)}"
        yield Advice(subject, why)


def _judged(subject: Subject, entries: Sequence[BaselineEntry], targets: Sequence[Target]) -> Advice:
    usable, reasons = [], Counter[str]()
    for entry in entries:
        reason = _DOUBT if entry.doubt else _unmeasurable(subject.via, load_catalogue().by_id[entry.workload])
        if reason:
            reasons[reason] += 1
        else:
            usable.append(entry)
    if not usable:
        text = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        return Advice(subject, f"rows of this layer and class: {text}")
    usable.sort(key=lambda entry: _cost(entry, load_catalogue().by_id[entry.workload]))
    left = {entry.workload: _left(subject, entry, targets) for entry in usable}
    entry = min(usable, key=lambda row: len(left[row.workload]))  # the first of those measured most completely
    workload, names = load_catalogue().by_id[entry.workload], left[entry.workload]
    measured_by = {target.probe: None for target in targets if experiment(target) == experiment(entry)}
    return Advice(
        subject,
        f"{len(usable)} of {len(entries)} rows of this layer and class can be measured here",
        rows=len(usable),
        comparable=True,
        workload=entry.workload,
        figure=Nearest(entry).text.partition(": ")[2],
        measured_by="" if names else ", ".join(measured_by),
        probe=_probe(replace(subject, names=names), workload) if names else None,
        heavy=not isinstance(workload, (BlockWorkload, RoundTrip)) or subject.via is Via.IMAGE,
    )


def _left(subject: Subject, entry: BaselineEntry, targets: Sequence[Target]) -> tuple[str, ...]:
    """Which of the subject's names no probe measures with this workload yet. Of peers, OSDs and pools a target does not
    tell the name, so one probe counts for all of them."""
    devices = {target.device for target in targets if experiment(target) == experiment(entry)}
    if subject.via in (Via.RAW, Via.FILES):
        return tuple(name for name in subject.names if name not in devices)
    return () if devices else subject.names


def _unmeasurable(via: Via, workload: Workload) -> str:
    """Why no probe can run the workload this way; empty if one can. Goes after a number of rows."""
    if isinstance(workload, BlockWorkload):
        if via is Via.POOL:
            return "measured by fio on objects, which no probe does"
        if via is Via.RAW and workload.operations != ("read",):
            return "that write, while raw disks are only read"
        if not workload.direct:
            return "measured through the page cache"
        return "" if via in (Via.RAW, Via.FILES, Via.IMAGE) else "of another layer"
    runs = {
        Via.PEER: (RoundTrip, TcpThroughput),
        Via.OSD: (OsdBench,),
        Via.POOL: (RadosBench,),
        Via.IMAGE: (RbdBench,),
    }
    return "" if isinstance(workload, runs.get(via, ())) else "for another kind of probe"


def _cost(entry: BaselineEntry, workload: Workload) -> tuple[bool, bool, bool, int, int]:
    writes = entry.operation in ("write", "readwrite", "transmit")
    if not isinstance(workload, BlockWorkload):
        return writes, False, not entry.latency, 0, 0
    sequential = workload.pattern not in _RANDOM
    return writes, sequential, not entry.latency, workload.iodepth * workload.jobs, workload.block_size


def _probe(subject: Subject, workload: Workload) -> dict[str, Any]:
    """The probe as a configuration file has it: five seconds an hour on a disk, heavy ones once a week."""
    name = {"name": f"documented-{'raw-' if subject.via is Via.RAW else ''}{workload.id}", "workload": workload.id}
    given = {"device_class": subject.device_class} if subject.given else {}
    hourly = {"interval": "1h", "runtime": "5s", "timeout": "5m"}  # the first run lays out the files
    weekly = {"at": "Sun 03:00", "interval": "1w", "timeout": "5m"}
    match subject.via:
        case Via.RAW:
            return {"type": "fio", **name, "devices": list(subject.names), **hourly, **given}
        case Via.FILES:
            jobs = workload.jobs if isinstance(workload, BlockWorkload) else 1
            size = {"file_size": f"{_MOST_BYTES // jobs // 2**20}MiB"}
            return {"type": "fio", **name, **size, **hourly, **given}
        case Via.PEER if isinstance(workload, RoundTrip):
            return {"type": "rtt", **name, "targets": list(subject.names), "interval": "10m"}
        case Via.PEER:
            return {"type": "iperf3", **name, "targets": list(subject.names), "at": "daily 03:00"}
        case Via.OSD:
            return {"type": "osd-bench", **name, **weekly}
        case Via.POOL:
            return {"type": "rados-bench", **name, "device_class": subject.device_class, **weekly}
        case Via.IMAGE:
            kind = "rbd-fio" if isinstance(workload, BlockWorkload) else "rbd-bench"
            return {"type": kind, **name, "device_class": subject.device_class, **weekly}
