"""One baseline figure set: what one workload's operation gave, where, and how far it may stray.

Sources, strongest first: ``measured`` (recorded on this node), ``site`` (a file the site wrote), ``documented``
(a profile shipped with Plumbline: another site's hardware, shown always, judging only where the config chooses it).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec


class Source(StrEnum):
    """Where a baseline comes from; the order is the precedence."""

    MEASURED = "measured"
    SITE = "site"
    DOCUMENTED = "documented"


class BaselineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one operation of one workload, in base units; what was not measured is ``None`` or absent.

    ``tolerance_ratio`` is the baseline's own measured spread as a factor ≥ 1 (highest run over median);
    ``measured`` is Unix seconds. ``profile`` names the documented profile or the file.
    """

    layer: str
    device_class: str
    workload: str
    operation: str
    source: Source
    profile: str
    config_hash: str
    latency: dict[str, float] = {}
    """Seconds by statistic: mean, p50, p95, p99, p999, max."""
    iops: float | None = None
    throughput: float | None = None
    """Bytes per second."""
    tolerance_ratio: float | None = None
    measured: float | None = None
    note: str = ""
    doubt: str = ""
    """Why these figures are shown but never judge: the document contradicts itself by more than a factor of two."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes two figures comparable, besides ``config_hash``."""
        return (self.layer, self.device_class, self.workload, self.operation)


@dataclass(frozen=True, slots=True)
class Target:
    """One thing this node's probes measure, and the parameters it is measured with.

    ``rate_iops`` is the cap on each job, part of ``config_hash`` already; ``device`` the block device below.
    """

    probe: str
    layer: str
    device_class: str
    workload: str
    operation: str
    config_hash: str
    rate_iops: float | None = None
    device: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """As :attr:`BaselineEntry.key`."""
        return (self.layer, self.device_class, self.workload, self.operation)
