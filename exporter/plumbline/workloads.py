"""The workload catalogue: what is measured on purpose, written once, shared by probes and baselines.

A workload's id says what it is: ``<pattern>-<block size>-qd<queue depth>-j<jobs>[-dsync|-buffered]``. A probe result
and a baseline entry are comparable only when layer, device class, workload, operation *and* ``config_hash`` agree.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources

import msgspec
import yaml

from plumbline.errors import ConfigError

LAYERS = ("network", "disk", "osd", "rados", "rbd", "filesystem", "object", "client")
STATISTICS = ("mean", "p50", "p95", "p99", "p999", "max")


class Pattern(StrEnum):
    """Access pattern, in fio's words (``rw=``)."""

    READ = "read"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    RANDRW = "randrw"


class Sync(StrEnum):
    """Durability asked of every write: none beyond O_DIRECT, or O_DSYNC (data on stable media on return)."""

    NONE = "none"
    DSYNC = "dsync"


_OPERATIONS = {
    Pattern.READ: ("read",),
    Pattern.WRITE: ("write",),
    Pattern.RANDREAD: ("read",),
    Pattern.RANDWRITE: ("write",),
    Pattern.RANDRW: ("read", "write"),
}


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One block workload. ``block_size`` in bytes; ``iodepth`` operations in flight per job; ``jobs`` processes."""

    id: str
    layer: str
    pattern: Pattern
    block_size: int
    iodepth: int = 1
    jobs: int = 1
    direct: bool = True
    sync: Sync = Sync.NONE
    rwmix_read: int = 50
    """Share of reads in percent; only for ``randrw``."""
    description: str = ""

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations a result of this workload has: ``read``, ``write`` or both."""
        return _OPERATIONS[self.pattern]

    def config_hash(self, *, rate_iops: float | None = None) -> str:
        """Twelve hex digits over all parameters that change a result.

        ``rate_iops`` is a cap the probe put on the workload (operations per second, per job); a capped run is
        another experiment than an uncapped one. File size and run time are not part of it: they bound the probe,
        and the documented runs of the seeds differ in them by design. Neither is the canary's pace: at queue
        depth 1 every operation meets an idle queue, however many a second there are.
        """
        parts = [
            self.layer,
            self.pattern.value,
            str(self.block_size),
            str(self.iodepth),
            str(self.jobs),
            "direct" if self.direct else "buffered",
            self.sync.value,
            str(self.rwmix_read) if self.pattern is Pattern.RANDRW else "-",
            f"{rate_iops:g}" if rate_iops else "-",
        ]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class WorkloadCatalogue:
    """All known workloads by id."""

    by_id: dict[str, Workload]

    def get(self, workload_id: str, *, where: str, key: str) -> Workload:
        """The workload, or :class:`ConfigError` naming ``where`` and ``key`` with the nearest known ids."""
        try:
            return self.by_id[workload_id]
        except KeyError:
            import difflib  # only on the error path  # noqa: PLC0415

            near = difflib.get_close_matches(workload_id, self.by_id, n=3, cutoff=0.4)
            hint = f"; near: {', '.join(near)}" if near else ""
            raise ConfigError(where, f"no such workload in the catalogue{hint}", key=key, value=workload_id) from None


def load_catalogue() -> WorkloadCatalogue:
    """The catalogue the package ships (``workloads.yaml``); a mistake in it is :class:`ConfigError`."""
    text = resources.files("plumbline").joinpath("workloads.yaml").read_text("utf-8")
    try:
        rows = msgspec.convert(yaml.load(text, Loader=_loader()), list[Workload])  # noqa: S506  (a SafeLoader)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError("workloads.yaml", str(error)) from error
    by_id: dict[str, Workload] = {}
    for row in rows:
        if row.id in by_id or row.layer not in LAYERS:
            raise ConfigError("workloads.yaml", "repeated id or unknown layer", key=row.id, value=row.layer)
        by_id[row.id] = row
    return WorkloadCatalogue(by_id)


def _loader() -> type[yaml.SafeLoader]:
    """libyaml's loader where it is built in: ten times faster, same language."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
