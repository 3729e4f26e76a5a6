"""Fields and checks shared by the configuration of all probes.

A struct checks its own fields when it is created; :meth:`ProbeBase.chosen` checks that a workload of the catalogue
fits. Both raise :class:`FieldError`, to which the caller adds the path.
"""

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from plumbline.config.types import Duration, FieldError, Schedule, Size, Strict, secret_problem
from plumbline.config.workloads import BlockWorkload, Workload, WorkloadCatalogue
from plumbline.core.storage_names import reserved

PROBE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
# A shorter value leaves the probe no pause, or nothing can answer in time.
_SHORTEST = {
    "interval": (1.0, "1s"),
    "timeout": (0.1, "100ms"),
    "runtime": (1.0, "1s"),
    "stuck_after": (1.0, "1s"),
    "request_timeout": (0.1, "100ms"),
    "gap": (0.001, "1ms"),
}
# Number of fitting workloads named in an error, so that it stays one line.
_FITTING_SHOWN = 8


class ProbeBase(Strict, frozen=True, kw_only=True):
    """Fields of every probe."""

    layer: ClassVar[str]
    """The layer whose workloads it can run."""
    runs: ClassVar[tuple[type[Workload], ...]] = (BlockWorkload,)
    """The kinds of workload it can run."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a path or `credential:NAME`."""
    anchors: ClassVar[tuple[str, ...]] = ()
    """Those of ``secrets`` whose files say whom to trust: others may read them, but not change them."""
    remote: ClassVar[bool] = False
    """Whether its directory may be on a server that does not respond."""
    whole_seconds: ClassVar[bool] = False
    """Whether its tool only takes whole seconds for `runtime`."""

    name: str
    """The `probe` label; lower-case letters, digits, `.`, `_`, `-`. With several targets, devices or OSDs, `/` and the
    target, device or OSD are appended."""
    device_class: str | None = None
    """The class whose baselines it is compared with. ``None``: detected from the target: the kernel's data on a disk,
    an OSD's CRUSH class, the speed of the port that leads there, the type of a file system."""
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
        return str(self.__struct_config__.tag)

    def directory_in(self, storage: Path) -> Path | None:  # noqa: ARG002
        """The directory it works in, given the storage path ``storage``; ``None`` if it needs none."""
        return None

    def peers(self) -> tuple[tuple[str, str | None], ...]:
        """The hosts it measures, each with the local address to measure from (``None``: any)."""
        return ()

    def chosen(self, catalogue: WorkloadCatalogue) -> Any:
        """The workload, for the probe's builder. :class:`FieldError` if it is unknown or does not fit."""
        raise NotImplementedError

    def fitting(self, catalogue: WorkloadCatalogue, workload_id: str, field: str = "workload") -> Workload:
        """The workload of this id. :class:`FieldError` if it is unknown or this probe can't run its kind or layer."""
        workload = catalogue.by_id.get(workload_id)
        if workload is None:
            raise FieldError(field, catalogue.unknown(workload_id), workload_id)
        if not self._can_run(workload):
            ids = [other.id for other in catalogue.by_id.values() if self._can_run(other)]
            some = ", ".join(ids[:_FITTING_SHOWN]) + (", … (docs/workloads.md)" if len(ids) > _FITTING_SHOWN else "")
            raise FieldError(field, f"not for this type of probe; possible: {some}", workload_id)
        return workload

    def _can_run(self, workload: Workload) -> bool:
        return isinstance(workload, self.runs) and workload.layer == self.layer

    def check_in_storage(self, directory: str | None) -> None:
        """Check the default directory, named after the probe in the storage path: it must not be one of our files."""
        if directory is None and reserved(self.name):
            raise self.mistake("name", "Plumbline has a file of this name; choose another")

    def check_holds_block(self, field: str, block_size: int) -> None:
        if getattr(self, field) < block_size:
            raise self.mistake(field, "smaller than the workload's block")


class OneWorkload(ProbeBase, frozen=True, kw_only=True):
    """A probe that runs one workload."""

    workload: str
    """Its id in the catalogue."""

    def chosen(self, catalogue: WorkloadCatalogue) -> Any:
        workload = self.fitting(catalogue, self.workload)
        self.check_workload(workload)
        return workload

    def check_workload(self, workload: Any) -> None:
        """:class:`FieldError` if the workload, one of :attr:`runs`, does not fit the other fields."""


class Periodic(OneWorkload, frozen=True, kw_only=True):
    """Fields of every periodic probe. Heavy ones run one at a time in the cluster."""

    interval: Duration = Duration(6 * 3600.0)
    """From start to start, at least 1s; a start that comes during a run is dropped."""
    at: Schedule | None = None
    """Replaces `interval`: times of the week in local time, e.g. `Sun 03:00` or `daily 02:30`; splayed by host over
    half an hour."""
    timeout: Duration = Duration(60.0)
    """Wall time after which the whole process group is killed; at least 100ms."""
    max_load_per_cpu: Annotated[float, Meta(gt=0)] = 2.0
    """Skip the run while the one-minute load average per CPU is above this."""
    max_device_busy: Annotated[float, Meta(gt=0, le=1)] = 0.5
    """Skip the run while the underlying disk or network port was recently busy for more than this share of the time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        runtime = getattr(self, "runtime", None)
        if runtime is not None and self.timeout <= runtime:
            raise self.mistake("timeout", "must be longer than runtime")
        if self.interval < 2 * self.timeout:
            raise self.mistake("interval", "must be at least twice the timeout, so that the probe pauses")


class FioFiles(Periodic, frozen=True, kw_only=True):
    """Fields of every probe that runs fio in files."""

    runtime: Duration = Duration(10.0)
    """Duration of the measured part, at least 1s; the files are laid out before that, once."""
    file_size: Size = Size(64 * 2**20)
    """Size of each job's file."""
    rate_iops: Annotated[int, Meta(gt=0)] | None = None
    """Cap on operations per second of each job; a capped run is compared only with baselines of the same cap."""

    def check_workload(self, workload: Any) -> None:
        if isinstance(workload, BlockWorkload):
            self.check_holds_block("file_size", workload.block_size)
