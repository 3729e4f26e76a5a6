"""What the configuration of every probe has, and how it checks itself.

A struct checks its own fields when it is made; whether a workload of the catalogue fits is asked by
:meth:`ProbeBase.chosen`. Both raise :class:`FieldError`, to which the caller adds the path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from plumbline.config.types import Duration, FieldError, Schedule, Size, Strict, secret_problem
from plumbline.config.workloads import BlockWorkload, Workload, WorkloadCatalogue
from plumbline.core.storage_names import reserved

PROBE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
# Below these a probe never rests, or nothing can answer in time.
_SHORTEST = {
    "interval": (1.0, "1s"),
    "timeout": (0.1, "100ms"),
    "runtime": (1.0, "1s"),
    "stuck_after": (1.0, "1s"),
    "request_timeout": (0.1, "100ms"),
    "gap": (0.001, "1ms"),
}
# Of the workloads that would fit, in one line of an error.
_FITTING_SHOWN = 8


class ProbeBase(Strict, frozen=True, kw_only=True):
    """What every probe has."""

    layer: ClassVar[str]
    """The layer whose workloads it can run."""
    runs: ClassVar[tuple[type[Workload], ...]] = (BlockWorkload,)
    """The kinds of workload it can run."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a path or `credential:NAME`."""
    remote: ClassVar[bool] = False
    """Its directory may lie behind a server that does not answer."""
    whole_seconds: ClassVar[bool] = False
    """Its tool counts `runtime` in whole seconds."""

    name: str
    """The `probe` label; lower-case letters, digits, `.`, `_`, `-`. With several targets, devices or OSDs, `/` and the
    target, device or OSD follow."""
    device_class: str | None = None
    """What it is compared with. ``None``: what is found out about the target: what the kernel says of a disk, an OSD's
    CRUSH class, the speed of the port that leads there, the type of a file system."""
    enabled: bool = True
    """False: as if it were not in the file."""

    def __post_init__(self) -> None:
        if not PROBE_NAME.fullmatch(self.name):
            raise self.mistake("name", "use lower-case letters, digits, '.', '_' and '-'")
        for field, (least_s, shown) in _SHORTEST.items():
            value = getattr(self, field, None)
            if value is not None and value < least_s:
                raise self.mistake(field, f"at least {shown}")
        for field in self.secrets:
            path = getattr(self, field)
            if path is not None and (problem := secret_problem(path)):
                raise self.mistake(field, problem)

    @property
    def kind(self) -> str:
        """The ``type`` in the configuration."""
        return str(self.__struct_config__.tag)

    def directory_in(self, storage: Path) -> Path | None:  # noqa: ARG002
        """The directory it works in, where ``storage`` is the storage path; ``None``: it needs none."""
        return None

    def peers(self) -> tuple[tuple[str, str | None], ...]:
        """The hosts it measures, each with the local address to measure from (``None``: any)."""
        return ()

    def chosen(self, catalogue: WorkloadCatalogue) -> Any:
        """What its builder gets: the workload. :class:`FieldError` for one that is unknown or does not fit."""
        raise NotImplementedError

    def fitting(self, catalogue: WorkloadCatalogue, workload_id: str, field: str = "workload") -> Workload:
        """The workload of this id, if it is of a kind and layer that this probe can run."""
        workload = catalogue.by_id.get(workload_id)
        if workload is None:
            raise FieldError(field, catalogue.unknown(workload_id), workload_id)
        if not self._can_run(workload):
            ids = [each.id for each in catalogue.by_id.values() if self._can_run(each)]
            some = ", ".join(ids[:_FITTING_SHOWN]) + (", … (docs/workloads.md)" if len(ids) > _FITTING_SHOWN else "")
            raise FieldError(field, f"not for this type of probe; fitting: {some}", workload_id)
        return workload

    def _can_run(self, workload: Workload) -> bool:
        return isinstance(workload, self.runs) and workload.layer == self.layer

    def check_in_storage(self, directory: str | None) -> None:
        """Without a directory, one of the probe's name in the storage path is used: that must not be one of ours."""
        if directory is None and reserved(self.name):
            raise self.mistake("name", "a file of Plumbline's has this name; choose another")

    def check_holds_block(self, field: str, block_size: int) -> None:
        """A size that has to hold at least one block."""
        if getattr(self, field) < block_size:
            raise self.mistake(field, "smaller than the workload's block")


class OneWorkload(ProbeBase, frozen=True, kw_only=True):
    """A probe that runs one workload."""

    workload: str
    """Its id in the catalogue."""

    def chosen(self, catalogue: WorkloadCatalogue) -> Any:
        """The workload."""
        workload = self.fitting(catalogue, self.workload)
        self.check_workload(workload)
        return workload

    def check_workload(self, workload: Any) -> None:
        """:class:`FieldError` where the workload, one of :attr:`runs`, does not go with the other fields."""


class Periodic(OneWorkload, frozen=True, kw_only=True):
    """What every periodic probe has. Heavy ones run one at a time in the cluster."""

    interval: Duration = Duration(6 * 3600.0)
    """From start to start, at least 1s; a start that comes while a run is under way is dropped."""
    at: Schedule | None = None
    """Instead of `interval`: moments of the week in local time, e.g. `Sun 03:00` or `daily 02:30`; splayed by host
    over half an hour."""
    timeout: Duration = Duration(60.0)
    """Wall time after which the whole process group is killed; at least 100ms."""
    max_load_per_cpu: Annotated[float, Meta(gt=0)] = 2.0
    """Skip while the one-minute load average per CPU is above this."""
    max_device_busy: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """Skip while the disk or the network port below was busy for more than this share of the last moments."""

    def __post_init__(self) -> None:
        super().__post_init__()
        runtime = getattr(self, "runtime", None)
        if runtime is not None and self.timeout <= runtime:
            raise self.mistake("timeout", "must be longer than runtime")
        if self.interval < 2 * self.timeout:
            raise self.mistake("interval", "must be at least twice the timeout, or the probe never rests")


class FioFiles(Periodic, frozen=True, kw_only=True):
    """What every probe has that runs fio in files."""

    runtime: Duration = Duration(10.0)
    """Of the measured part, at least 1s; laying out the files comes before, once."""
    file_size: Size = Size(64 * 2**20)
    """Of each job's file."""
    rate_iops: Annotated[int, Meta(gt=0)] | None = None
    """Cap on operations per second of each job; a capped run is compared only with baselines of the same cap."""

    def check_workload(self, workload: Any) -> None:
        """A file has to hold a block."""
        if isinstance(workload, BlockWorkload):
            self.check_holds_block("file_size", workload.block_size)
