"""Every kind of probe there is, literally: type in the configuration → what it means on a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plumbline.probe_config import CanaryConfig, FioConfig, RbdBenchConfig, RbdFioConfig
from plumbline.probes import canary_job, fio, rbd_bench, rbd_fio
from plumbline.probes.model import Host, Plan

KINDS: dict[type, Callable[[Any, Host], Plan]] = {
    CanaryConfig: canary_job.build,
    FioConfig: fio.build,
    RbdBenchConfig: rbd_bench.build,
    RbdFioConfig: rbd_fio.build,
}
"""``Any``: each builder takes the struct it stands beside. :class:`ConfigError` is for what no host could run."""
