"""The configuration of disk probes: in a directory, or reading the raw device."""

import re
from pathlib import Path
from typing import Annotated, ClassVar, TypeGuard

from msgspec import Meta

from plumbline.config.probes.base import FioFiles, OneWorkload, ProbeBase
from plumbline.config.types import Duration, FieldError, Size
from plumbline.config.workloads import BlockWorkload, Workload, WorkloadCatalogue

_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9!_-]{0,31}")
_NOT_SINGLE = "the canary does single O_DIRECT operations: a disk workload with qd1-j1"


class CanaryConfig(ProbeBase, frozen=True, kw_only=True, tag_field="type", tag="canary"):
    """The continuous light probe: single operations at Poisson-distributed times in a file of our own."""

    layer: ClassVar[str] = "disk"

    workloads: tuple[str, ...] = ("randread-4k-qd1-j1", "randwrite-4k-qd1-j1-dsync")
    """Catalogue ids, one for each operation; only single O_DIRECT operations (qd1-j1)."""
    directory: str | None = None
    """``None``: a directory named after the probe in the storage path."""
    file_size: Size | None = None
    """``None``: 1 GiB on rotational disks (more than their own cache), 16 MiB on others."""
    rate: Annotated[float, Meta(gt=0, le=100)] | None = None
    """Operations a second, for all workloads together. ``None``: 1 on rotational disks, 10 on others."""
    stuck_after: Duration = Duration(10.0)
    """An operation in flight for longer sets ``plumbline_probe_success`` to 0; at least 1s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_in_storage(self.directory)
        if not self.workloads:
            raise self.mistake("workloads", "name at least one workload")
        if self.file_size is not None and self.file_size < 2**20:
            raise self.mistake("file_size", "at least 1MiB")

    def directory_in(self, storage: Path) -> Path:
        return Path(self.directory) if self.directory else storage / self.name

    def chosen(self, catalogue: WorkloadCatalogue) -> tuple[BlockWorkload, ...]:
        """The workloads; no two have the same operation."""
        workloads: list[BlockWorkload] = []
        for workload_id in self.workloads:
            workload = self.fitting(catalogue, workload_id, "workloads")
            if not _is_single_direct(workload):
                raise FieldError("workloads", _NOT_SINGLE, workload_id)
            if any(set(workload.operations) & set(other.operations) for other in workloads):
                raise FieldError("workloads", "two workloads with the same operation", workload_id)
            workloads.append(workload)
        return tuple(workloads)


class FioConfig(FioFiles, frozen=True, kw_only=True, tag_field="type", tag="fio"):
    """A periodic fio run of one catalogue workload in a directory, or read-only on a raw device."""

    layer: ClassVar[str] = "disk"

    workload: str
    """Its id in the catalogue, e.g. `randread-4k-qd16-j1`."""
    directory: str | None = None
    """``None``: a directory named after the probe in the storage path."""
    devices: tuple[str, ...] = ()
    """Instead of a directory: raw disks by kernel name, or `osd` for every disk that holds an OSD; a volume means the
    whole disks below it. They are only read: workloads that write are refused."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_in_storage(self.directory)
        _check_devices(self.devices)
        if self.devices and self.directory is not None:
            raise FieldError("devices", "name a directory or devices, not both")

    def directory_in(self, storage: Path) -> Path | None:
        if self.devices:
            return None
        return Path(self.directory) if self.directory else storage / self.name

    def check_workload(self, workload: BlockWorkload) -> None:
        super().check_workload(workload)
        if self.devices:
            _check_reads(workload)


class RawCanaryConfig(OneWorkload, frozen=True, kw_only=True, tag_field="type", tag="raw-canary"):
    """The canary on raw devices: single O_DIRECT reads at random positions, opened so that writing is impossible."""

    layer: ClassVar[str] = "disk"

    devices: tuple[str, ...] = ("osd",)
    """Disks by kernel name, or `osd` for every disk that holds an OSD of this host. A volume, multipath or encrypted
    device means the whole disks below it. A listed disk is kept awake, so list none that should sleep."""
    workload: str = "randread-4k-qd1-j1"
    """A catalogue id; only single O_DIRECT reads (qd1-j1), like ioping's."""
    rate: Annotated[float, Meta(gt=0, le=100)] | None = None
    """Operations a second on each device. ``None``: 1 on rotational disks, 10 on others, at most 1 % of its time."""
    stuck_after: Duration = Duration(10.0)
    """An operation in flight for longer sets ``plumbline_probe_success`` to 0; at least 1s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_devices(self.devices)

    def check_workload(self, workload: BlockWorkload) -> None:
        _check_reads(workload)
        if not _is_single_direct(workload):
            raise self.mistake("workload", _NOT_SINGLE)


DiskProbe = CanaryConfig | RawCanaryConfig | FioConfig


def _is_single_direct(workload: Workload) -> TypeGuard[BlockWorkload]:
    return isinstance(workload, BlockWorkload) and workload.iodepth * workload.jobs == 1 and workload.direct


def _check_devices(devices: tuple[str, ...]) -> None:
    for device in devices:
        if not _DEVICE.fullmatch(device):
            raise FieldError("devices", "expected a kernel name such as sdb or nvme0n1, or osd", device)


def _check_reads(workload: BlockWorkload) -> None:
    if workload.operations != ("read",):
        raise FieldError("workload", "raw devices are only read", workload.id)
    if not workload.direct:
        raise FieldError("workload", "raw devices are read with O_DIRECT", workload.id)
