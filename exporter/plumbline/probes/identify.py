"""Build a probe's identity from its configuration, its workload and what is known about its target."""

from __future__ import annotations

from plumbline.config.probes.base import ProbeBase
from plumbline.config.workloads import Workload
from plumbline.probes.model import Identity


def identify(
    config: ProbeBase,
    workload: Workload,
    *,
    device_class: str,
    probe: str | None = None,
    tool: str = "plumbline",
    target: str = "",
    device: str = "",
    rate_iops: float | None = None,
    cluster: bool = False,
) -> Identity:
    """See :class:`.model.Identity`; ``probe`` defaults to the configured name (one target)."""
    return Identity(
        probe=probe or config.name,
        kind=config.kind,
        layer=workload.layer,
        device_class=device_class,
        workload=workload.id,
        operations=workload.operations,
        config_hash=workload.config_hash(rate_iops=rate_iops),
        tool=tool,
        target=target,
        device=device,
        rate_iops=rate_iops,
        cluster=cluster,
    )
