"""The documented row that is nearest to what a probe measures, to be shown beside its figures. It judges nothing.

The nearest is the same experiment, if a document has it. Else it is a block workload of the same layer, device class,
operation, block size and number of operations in flight, with what differs said in words: the access pattern, the
durability of a write, a cap. On rotational disks another pattern is another experiment, because seeks are most of the
time. Rows that contradict themselves are never near.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from plumbline.baseline.model import BaselineEntry, Experiment, Source, Target, experiment, figures
from plumbline.config.workloads import BlockWorkload, Pattern, Sync, Workload, load_catalogue
from plumbline.core.grouping import grouped
from plumbline.core.units import figure_text

_RANDOM = frozenset({Pattern.RANDREAD, Pattern.RANDWRITE, Pattern.RANDRW})
_ROTATIONAL = "hdd"


class Nearest(Struct, frozen=True):
    """A documented row beside a probe's operation; ``differs``: what the row did otherwise, empty for the same
    experiment."""

    entry: BaselineEntry
    differs: tuple[str, ...] = ()
    rates: bool = True  # whether its IOPS and throughput say something here; False beside a capped probe

    @property
    def figure(self) -> tuple[str, float]:
        """The figure to show, in base units: ``latency.mean``, ``iops`` or ``throughput``."""
        return next(_figures(self.entry, rates=self.rates))

    @property
    def text(self) -> str:
        """``unnoba-2020, ssd: mean 84 µs``, followed by what differs."""
        name, value = self.figure
        statistic = f"{name.removeprefix('latency.')} " if name.startswith("latency.") else ""
        differs = f" ({', '.join(self.differs)})" if self.differs else ""
        return f"{self.entry.profile}, {self.entry.device_class}: {statistic}{figure_text(name, value)}{differs}"


def nearest(entries: Iterable[BaselineEntry], targets: Sequence[Target]) -> Mapping[Experiment, Nearest]:
    """The nearest documented row of each target that has one."""
    usable = (entry for entry in entries if entry.source is Source.DOCUMENTED and not entry.doubt)
    documented = grouped(usable, lambda entry: (entry.layer, entry.device_class, entry.operation))
    by_key, workloads = {}, load_catalogue().by_id
    for target in targets:
        rows = documented.get((target.layer, target.device_class, target.operation), [])
        candidates = [near for entry in rows if (near := _near(entry, target, workloads)) is not None]
        if candidates:
            by_key[experiment(target)] = min(candidates, key=_rank)
    return by_key


def _near(entry: BaselineEntry, target: Target, workloads: Mapping[str, Workload]) -> Nearest | None:
    if experiment(entry) == experiment(target):
        near = Nearest(entry)
    else:
        differs = _differences(workloads.get(entry.workload), workloads.get(target.workload), target)
        if differs is None:
            return None
        near = Nearest(entry, differs, rates=target.rate_iops is None)
    return near if next(_figures(entry, rates=near.rates), None) is not None else None


def _differences(row: Workload | None, here: Workload | None, target: Target) -> tuple[str, ...] | None:
    """What the documented workload does otherwise; ``None`` if it is another experiment altogether."""
    if not (isinstance(row, BlockWorkload) and isinstance(here, BlockWorkload)):
        return None
    if (row.block_size, row.iodepth * row.jobs, row.direct) != (here.block_size, here.iodepth * here.jobs, here.direct):
        return None
    if Pattern.RANDRW in (row.pattern, here.pattern) and row.pattern is not here.pattern:
        return None
    differs = []
    if (row.pattern in _RANDOM) is not (here.pattern in _RANDOM):
        if target.device_class.startswith(_ROTATIONAL):
            return None
        differs.append("random there" if row.pattern in _RANDOM else "sequential there")
    if row.sync is not here.sync:
        differs.append("on stable media there" if row.sync is Sync.DSYNC else "not on stable media there")
    if target.rate_iops is not None:
        differs.append("not capped there")
    if row.jobs != here.jobs:
        differs.append(f"{row.jobs} processes there" if row.jobs > 1 else "one process there")
    return tuple(differs)


def _figures(entry: BaselineEntry, *, rates: bool) -> Iterator[tuple[str, float]]:
    """In the order of preference: a document mostly prints the mean."""
    return figures(entry.latency, entry.iops if rates else None, entry.throughput if rates else None)


def _rank(near: Nearest) -> tuple[int, bool, str]:
    """Fewer differences first, then a latency, then the profile's name, so that the choice is stable."""
    return len(near.differs), not near.entry.latency, near.entry.profile
