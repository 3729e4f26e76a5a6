"""From series to what the disk checks ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from plumbline.checks.disk_facts import Disk, DiskFacts, DiskQueue
from plumbline.seriesview import SeriesView

_OSD_KINDS = frozenset({"osd", "osd-db", "osd-wal"})


def disk_facts(view: SeriesView, window_s: float | None) -> DiskFacts:
    """All that is known after ``window_s`` seconds of looking (``None``: one look)."""
    return DiskFacts(window_s, tuple(_disks(view)))


def _disks(view: SeriesView) -> Iterator[Disk]:
    queues = {row["device"]: row for row, _ in view.rows("plumbline_disk_queue_info")}
    osds = _osds(view)
    cache = view.series("plumbline_disk_volatile_cache")
    depth = view.series("plumbline_disk_queue_depth")
    for row, _ in view.rows("plumbline_disk_info"):
        device = row["device"]
        volatile = cache.get((device,))
        yield Disk(
            device=device,
            device_class=row["device_class"] or None,
            transport=row["transport"] or None,
            model=row["model"],
            serial=row["serial"],
            rotational={"0": False, "1": True}.get(row["rotational"]),
            osds=frozenset(osds[device] | set(filter(None, row["osd"].split(",")))),
            volatile_cache=None if volatile is None else bool(volatile),
            queue_depth=_whole(depth.get((device,))),
            queue=_queue(view, device, queues.get(device, {})),
        )


def _queue(view: SeriesView, device: str, info: Mapping[str, str]) -> DiskQueue:
    requests, read_ahead, affinity, random = (
        _whole(view.series(f"plumbline_disk_{what}").get((device,)))
        for what in ("queue_requests", "read_ahead_bytes", "rq_affinity", "add_random")
    )
    return DiskQueue(
        scheduler=info.get("scheduler") or None,
        write_back={"write back": True, "write through": False}.get(info.get("write_cache", "")),
        zoned=info.get("zoned") or None,
        requests=requests,
        read_ahead_bytes=read_ahead,
        rq_affinity=affinity,
        add_random=None if random is None else bool(random),
    )


def _osds(view: SeriesView) -> defaultdict[str, set[str]]:
    """Device → Ceph's daemons with anything on it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row, value in view.rows("plumbline_disk_use_info"):
        if value and row["kind"] in _OSD_KINDS:
            found[row["device"]].add(row["name"])
    return found


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
