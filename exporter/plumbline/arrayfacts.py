"""From series to what the checks of arrays and paths ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from plumbline.checks.array_facts import ArrayFacts, Member, Multipath, Path, Pool, Raid, VdevErrors
from plumbline.seriesview import SeriesView


def array_facts(view: SeriesView) -> ArrayFacts:
    """All that is known after a look."""
    return ArrayFacts(tuple(_raids(view)), tuple(_pools(view)), tuple(_multipaths(view)))


def _raids(view: SeriesView) -> Iterator[Raid]:
    members: dict[str, list[Member]] = defaultdict(list)
    for row, _ in view.rows("plumbline_md_member_info"):
        members[row["device"]].append(Member(row["member"], row["state"], row["slot"]))
    actions = {row["device"]: row["action"] for row, _ in view.rows("plumbline_md_sync_info")}
    progress = view.series("plumbline_md_sync_ratio")
    for row, _ in view.rows("plumbline_md_info"):
        device = row["device"]
        yield Raid(
            device,
            row["level"],
            row["state"],
            disks=_whole(view, "plumbline_md_disks", device),
            degraded_disks=_whole(view, "plumbline_md_degraded_disks", device),
            redundant_disks=_whole(view, "plumbline_md_redundant_disks", device),
            action=actions.get(device, ""),
            progress_ratio=progress.get((device,)),
            mismatch_sectors=_whole(view, "plumbline_md_mismatch_sectors", device),
            members=tuple(members[device]),
        )


def _pools(view: SeriesView) -> Iterator[Pool]:
    unhealthy: dict[str, list[str]] = defaultdict(list)
    asked = set()
    for (pool, vdev), healthy in view.series("plumbline_zfs_vdev_healthy").items():
        asked.add(pool)
        if not healthy:
            unhealthy[pool].append(vdev)
    counts: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for (pool, vdev, kind), count in view.series("plumbline_zfs_vdev_errors_total").items():
        if count:
            counts[pool][vdev][kind] = int(count)
    for row, _ in view.rows("plumbline_zfs_pool_info"):
        name = row["pool"]
        known = name in asked
        of_pool = counts[name]
        yield Pool(
            name,
            row["state"],
            data_errors=_whole(view, "plumbline_zfs_pool_data_errors", name),
            errors=tuple(VdevErrors(vdev, of_pool[vdev]) for vdev in _innermost(of_pool)) if known else None,
            unhealthy=tuple(_innermost(unhealthy[name])) if known else None,
        )


def _innermost(vdevs: Iterable[str]) -> Iterator[str]:
    """Without the groups whose members say it more exactly. Names may hold slashes (files), so a prefix must end."""
    every = list(vdevs)
    for vdev in every:
        if not any(other.startswith(f"{vdev}/") for other in every):
            yield vdev


def _multipaths(view: SeriesView) -> Iterator[Multipath]:
    paths: dict[str, list[Path]] = defaultdict(list)
    for row, _ in view.rows("plumbline_multipath_path_info"):
        paths[row["device"]].append(Path(row["path"], row["state"], row["address"]))
    names = {row["device"]: row["name"] for row, _ in view.rows("plumbline_multipath_info")}
    for (device,), usable in view.series("plumbline_multipath_paths_usable").items():
        yield Multipath(device, names.get(device, device), int(usable), tuple(paths[device]))


def _whole(view: SeriesView, name: str, label: str) -> int | None:
    value = view.series(name).get((label,))
    return None if value is None else int(value)
