"""What a canary is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plumbline.workloads import BlockWorkload

HDD_RATE = 1.0
DEFAULT_RATE = 10.0
"""Operations a second, all workloads together, where the config says nothing."""
MIN_RATE, MAX_RATE = 0.001, 100.0
MAX_BUSY_RATIO = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryPlan:
    """One canary: single operations of ``workloads`` in one file in ``directory``.

    Beside each workload stand its baseline's bounds in seconds; they become exact bucket edges.

    ``rate`` is in operations a second over all workloads; ``None`` is the device class' default. It is lowered where
    it would keep the device busy for more than ``max_busy_ratio`` of the time, judged by the device in good health.
    """

    name: str
    directory: Path
    file_size_bytes: int
    workloads: tuple[tuple[BlockWorkload, tuple[float, ...]], ...]
    device_class: str
    rate: float | None = None
    stuck_after_s: float = 10.0
    """An operation in flight for longer is a failure."""
    max_busy_ratio: float = MAX_BUSY_RATIO

    def __post_init__(self) -> None:
        for workload, _ in self.workloads:
            if self.file_size_bytes < workload.block_size:
                raise ValueError(f"canary {self.name}: a block of {workload.id} does not fit into its file")

    @property
    def wanted_rate(self) -> float:
        """Operations a second before the load cap."""
        if self.rate is not None:
            return max(MIN_RATE, min(self.rate, MAX_RATE))
        return HDD_RATE if self.device_class == "hdd" else DEFAULT_RATE
