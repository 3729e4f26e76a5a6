"""Capacity and headroom, from the series of the recording rules."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from plumbline.capacity.model import SLOPES
from plumbline.report.model import ClassCapacity, Days, Headroom, PoolCapacity, soonest
from plumbline.report.period import Period, day_starts
from plumbline.sources.prometheus.api import Track
from plumbline.sources.prometheus.queries import last_values

_Key = tuple[str, ...]
_CLASS, _POOL = ("cluster", "device_class"), ("cluster", "pool_id", "pool")


def classes(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[ClassCapacity, ...]:
    used, loss = _days(answers["capacity used"], _CLASS, period), _days(answers["capacity host_loss"], _CLASS, period)
    full, unsafe, growth = (_slopes(answers[f"capacity {key}"], _CLASS) for key in ("full", "unsafe", "growth"))
    rebuild = last_values(answers["capacity rebuild"], _CLASS)
    return tuple(
        ClassCapacity(
            cluster=key[0],
            device_class=key[1],
            used=used.get(key, ()),
            days_to_full=full.get(key, ()),
            days_to_unsafe=unsafe.get(key, ()),
            growth=growth.get(key, ()),
            host_loss=loss.get(key, ()),
            rebuild_s=rebuild.get(key),
        )
        for key in sorted({*used, *loss, *full, *unsafe, *growth, *rebuild})
    )


def pools(answers: Mapping[str, Sequence[Track]]) -> tuple[PoolCapacity, ...]:
    """All pools, the one that fills up first at the top."""
    full, healing = _slopes(answers["capacity full_pool"], _POOL), last_values(answers["capacity healing"], _POOL)
    rows = (
        PoolCapacity(key[0], key[2] or key[1], full.get(key, ()), bool(healing[key]) if key in healing else None)
        for key in {*full, *healing}
    )
    return tuple(sorted(rows, key=lambda pool: (soonest(pool.days_to_full), pool.cluster, pool.pool)))


def headroom(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[Headroom, ...]:
    """All rows, the one with the highest use at the end first."""
    days_of = _days(answers["capacity headroom"], ("cluster", "layer", "device_class", "figure"), period)
    rows = (Headroom(key[0], key[1], key[2], key[3], days) for key, days in days_of.items())
    return tuple(sorted(rows, key=lambda row: (-row.days[-1][1], row.cluster, row.layer, row.device_class)))


def _days(tracks: Iterable[Track], names: Sequence[str], period: Period) -> dict[_Key, Days]:
    days_of = {track.key(names): tuple(sorted(day_starts(track.points, period).items())) for track in tracks}
    return {key: days for key, days in days_of.items() if days}


def _slopes(tracks: Iterable[Track], names: Sequence[str]) -> dict[_Key, tuple[tuple[str, float], ...]]:
    slopes: dict[_Key, dict[str, float]] = defaultdict(dict)
    for track in tracks:
        slopes[track.key(names)][track.labels.get("slope", "")] = track.points[-1][1]
    return {key: tuple((slope, by[slope]) for slope in SLOPES if slope in by) for key, by in slopes.items()}
