"""Disks of this host beside each other, as ``PlumblineDiskLatencyOutlier`` compares them by their p99."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from plumbline.core.units import factor_text, seconds_text
from plumbline.status.limits import PEERS
from plumbline.status.model import DiskRow, Times


class Compared(Struct, frozen=True):
    """The operation of a disk that is furthest from its peers: times in seconds, of the last minutes."""

    device: str
    operation: str
    p99_s: float
    peers_s: float
    peers: int

    @property
    def out_of_line(self) -> bool:
        """Whether the alert fires, if it lasts."""
        return self.ratio >= PEERS.ratio and self.p99_s >= PEERS.floor_s

    @property
    def ratio(self) -> float:
        return self.p99_s / self.peers_s

    @property
    def text(self) -> str:
        median_of = f"median of {self.peers} equal disks here ({seconds_text(self.peers_s)})"
        return f"p99 of {self.operation} {seconds_text(self.p99_s)}, {factor_text(self.ratio)} times the {median_of}"


def compare(disks: Sequence[DiskRow], window_s: float | None) -> dict[str, Compared]:
    """By device; without disks that are idle, that have too few peers, or that do other work than they."""
    if not window_s:
        return {}
    groups: dict[tuple[str, str, str], list[tuple[DiskRow, Times, float]]] = defaultdict(list)
    for disk in disks:
        for times in disk.times:
            busy = times.operation in PEERS.operations and times.count >= PEERS.per_second * window_s
            if busy and times.p99_s is not None:
                groups[disk.device_class, disk.transport, times.operation].append((disk, times, times.p99_s))
    furthest: dict[str, Compared] = {}
    for (_, _, operation), equals in groups.items():
        usual_s, load = median(p99 for _, _, p99 in equals), median(times.count for _, times, _ in equals)
        if len(equals) < PEERS.minimum or not usual_s:
            continue
        for disk, times, p99_s in equals:
            compared = Compared(disk.device, operation, p99_s, usual_s, len(equals))
            known = furthest.get(disk.device)
            if times.count <= PEERS.load * load and (known is None or known.ratio < compared.ratio):
                furthest[disk.device] = compared
    return furthest
