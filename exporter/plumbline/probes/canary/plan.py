"""The plan of a canary: in a file of its own, or on a raw disk."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from plumbline.config.workloads import BlockWorkload, Pattern
from plumbline.probes import guard
from plumbline.probes.disk import raw_device

HDD_RATE = 1.0
DEFAULT_RATE = 10.0
"""Operations per second over all workloads, if the configuration sets no rate."""
MIN_RATE, MAX_RATE = 0.001, 100.0
MAX_BUSY_RATIO = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryPlan:
    """One canary: single operations of ``workloads`` in one file in ``directory``.

    Each workload comes with its baseline's bounds in seconds; they become exact bucket edges.

    ``rate`` is in operations per second over all workloads; ``None`` means the device class' default. It is lowered if
    it would keep the device busy for more than ``max_busy_ratio`` of the time, judged by the device's healthy latency.
    """

    name: str
    directory: Path
    file_size_bytes: int
    workloads: tuple[tuple[BlockWorkload, tuple[float, ...]], ...]
    device_class: str
    rate: float | None = None
    stuck_after_s: float = 10.0
    """An operation in flight for longer counts as a failure."""
    max_busy_ratio: float = MAX_BUSY_RATIO

    def __post_init__(self) -> None:
        for workload, _ in self.workloads:
            if self.file_size_bytes < workload.block_size:
                raise ValueError(f"canary {self.name}: a block of {workload.id} does not fit into its file")

    kind = "canary"
    target = ""

    @property
    def wanted_rate(self) -> float:
        """Operations per second before the load cap."""
        return _wanted_rate(self.rate, self.device_class)

    @property
    def where(self) -> str:
        """The directory, for messages."""
        return str(self.directory)

    @property
    def reasons(self) -> Collection[str]:
        """Possible reasons for a refusal."""
        return guard.ADVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlan:
    """One canary on one whole disk: single reads of ``workload`` at random places; it never writes.

    ``rate`` and ``max_busy_ratio`` are as in :class:`CanaryPlan`; ``bounds`` are the baseline's, in seconds.
    """

    name: str
    device: str
    """The kernel's name of the disk."""
    workload: BlockWorkload
    bounds: tuple[float, ...]
    device_class: str
    dev: Path
    sys: Path
    rate: float | None = None
    stuck_after_s: float = 10.0
    max_busy_ratio: float = MAX_BUSY_RATIO

    kind = "raw-canary"

    def __post_init__(self) -> None:
        if self.workload.pattern not in (Pattern.READ, Pattern.RANDREAD) or not self.workload.direct:
            raise ValueError(f"canary {self.name}: {self.workload.id} is not a direct read")

    @property
    def workloads(self) -> tuple[tuple[BlockWorkload, tuple[float, ...]], ...]:
        """In the form that a canary in a file has."""
        return ((self.workload, self.bounds),)

    @property
    def file_size_bytes(self) -> int:
        """0: unknown before the disk is open; the worker reads it."""
        return 0

    @property
    def wanted_rate(self) -> float:
        """Operations per second before the load cap."""
        return _wanted_rate(self.rate, self.device_class)

    @property
    def target(self) -> str:
        """What is measured."""
        return self.device

    @property
    def where(self) -> str:
        """The device file, for messages."""
        return str(self.dev / self.device)

    @property
    def reasons(self) -> Collection[str]:
        """Possible reasons for a refusal."""
        return raw_device.ADVICE


AnyPlan: TypeAlias = CanaryPlan | DevicePlan


def quicker(rate: float, factor: float) -> float:
    """``factor`` times the rate, limited to the maximum for a canary."""
    return min(MAX_RATE, factor * rate)


def _wanted_rate(rate: float | None, device_class: str) -> float:
    if rate is not None:
        return max(MIN_RATE, min(rate, MAX_RATE))
    return HDD_RATE if device_class == "hdd" else DEFAULT_RATE
