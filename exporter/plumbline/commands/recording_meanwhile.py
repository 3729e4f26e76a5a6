"""What else is kept while canaries are recorded: their level in slices, and what their disks served meanwhile."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.baseline.arithmetic import size_of
from plumbline.baseline.record.level import SLICE_S, Slice
from plumbline.config.workloads import Workload
from plumbline.core.histogram import HistogramValue, difference
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.probes.run.reading import CanaryReading, WorkloadReading
from plumbline.sources.disk.diskstats import SECTOR_BYTES, read_diskstats

_LEAST_S = 1.0  # a shorter time has no rate

Served = tuple[float, float]  # operations and bytes
Stream = tuple[str, str, str]  # probe, workload, operation


@dataclass(slots=True)
class _Following:
    since: float
    histogram: HistogramValue
    slices: list[Slice] = field(default_factory=list)


class Meanwhile:
    """Call :meth:`see` a few times a second while the canaries work, and :meth:`close` at the end. ``devices``: probe →
    disk; ``workloads``: the catalogue's, by id."""

    def __init__(
        self,
        roots: Roots,
        devices: Mapping[str, str],
        workloads: Mapping[str, Workload],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._roots, self._clock = roots, clock
        self._devices = {probe: device for probe, device in devices.items() if device}
        self._workloads = workloads
        self._streams: dict[Stream, _Following] = {}
        self._began: tuple[float, dict[str, Served], dict[str, Served]] | None = None
        self.load: dict[str, Served] = {}
        """Disk → operations and bytes per second of everybody else, from :meth:`close` on."""

    def see(self, readings: Sequence[CanaryReading]) -> None:
        self._follow(readings, at_least_s=SLICE_S)

    def close(self, readings: Sequence[CanaryReading]) -> None:
        self._follow(readings, at_least_s=_LEAST_S)
        if self._began is None:
            return
        since, served, own = self._began
        lasted = self._clock() - since
        if lasted < _LEAST_S:
            return
        now, own_now = self._served(), self._own(readings)
        for device in served.keys() & now.keys():
            mine = _minus(own_now.get(device, (0.0, 0.0)), own.get(device, (0.0, 0.0)))
            operations, octets = _minus(_minus(now[device], served[device]), mine)
            self.load[device] = max(0.0, operations) / lasted, max(0.0, octets) / lasted

    def slices(self, stream: Stream) -> tuple[Slice, ...]:
        return tuple(self._streams[stream].slices) if stream in self._streams else ()

    def _follow(self, readings: Sequence[CanaryReading], *, at_least_s: float) -> None:
        now = self._clock()
        if self._began is None:
            self._began = now, self._served(), self._own(readings)
        for reading in readings:
            for workload in reading.workloads:
                stream = reading.probe, workload.workload, workload.operation
                followed = self._streams.setdefault(stream, _Following(now, workload.latency))
                if now - followed.since < at_least_s:
                    continue
                grown = difference(followed.histogram, workload.latency)
                if grown is not None:
                    followed.slices.append(Slice.of(grown, ended=now, seconds=now - followed.since))
                followed.since, followed.histogram = now, workload.latency

    def _served(self) -> dict[str, Served]:
        wanted = frozenset(self._devices.values())
        if not wanted:
            return {}
        try:
            disks = read_diskstats(self._roots, keep=wanted.__contains__)
        except PlumblineError:
            return {}  # No figure then
        return {
            disk.name: (disk.reads + disk.writes, (disk.sectors_read + disk.sectors_written) * SECTOR_BYTES)
            for disk in disks
        }

    def _own(self, readings: Sequence[CanaryReading]) -> dict[str, Served]:
        """What the canaries themselves did, by disk. What an OSD makes of an operation is unknown, so it is not
        taken away there."""
        served: dict[str, Served] = {}
        for reading in readings:
            device = self._devices.get(reading.probe)
            for workload in reading.workloads:
                if device and workload.layer == "disk":
                    done = float(_done(workload))
                    operations, octets = served.get(device, (0.0, 0.0))
                    size = size_of(self._workloads[workload.workload]) or 0
                    served[device] = operations + done, octets + done * size
        return served


def _done(workload: WorkloadReading) -> int:
    return workload.latency.count - workload.charged + sum(workload.errors.values())


def _minus(total: Served, other: Served) -> Served:
    return total[0] - other[0], total[1] - other[1]
