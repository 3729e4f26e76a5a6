"""The periodic probes that run fio: in files of a directory, or reading raw disks."""

from pathlib import Path

from msgspec import Struct

from plumbline.config.probes.disk import FioConfig
from plumbline.config.workloads import BlockWorkload
from plumbline.probes.disk.fio_raw import RawFioPlan, run_raw_fio
from plumbline.probes.disk.raw_disks import raw_disks
from plumbline.probes.fio.fio import remove_surplus, run_fio
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.run.result import ProbeResult
from plumbline.probes.run.tool import FIO, Tool


class FioProbe(Struct, frozen=True):
    """The periodic probe of one fio workload, in a directory or on one raw disk."""

    config: FioConfig
    plan: FioPlan | RawFioPlan
    device: str  # The disk, or the one below the directory; empty if unknown
    tool: Tool = FIO

    heavy = True

    @property
    def identity(self) -> Identity:
        plan = self.plan
        return Identity.of(
            self.config,
            plan.workload,
            probe=plan.probe,
            device_class=plan.device_class,
            tool="fio",
            target=self.device if isinstance(plan, RawFioPlan) else "",
            device=self.device,
            rate_iops=plan.rate_iops,
        )

    @property
    def fio_place(self) -> str:
        plan = self.plan
        return plan.device if isinstance(plan, RawFioPlan) else str(plan.directory)

    def run(self, run: Run) -> ProbeResult:
        if isinstance(self.plan, RawFioPlan):
            return run_raw_fio(self.plan, run, self.tool)
        return run_fio(self.plan, run, self.tool)

    def clean_up(self, run: Run) -> None:
        """See :func:`remove_surplus`; a run on a raw disk leaves nothing behind."""
        if isinstance(self.plan, FioPlan):
            run.progress(Progress("removing data files that are no longer used"))
            remove_surplus(self.plan)


def build(config: FioConfig, workload: BlockWorkload, host: Host) -> Plan:
    """One probe per disk; without disks, one in a directory."""
    if not config.devices:
        directory = Path(config.directory) if config.directory else host.storage / config.name
        below = host.disk_below(directory)
        device_class = config.device_class or (below and below.device_class) or "unknown"
        in_storage = not config.directory
        files = FioPlan.of(config, workload, directory=directory, device_class=device_class, in_storage=in_storage)
        return Plan(periodic=(FioProbe(config, files, below.name if below else ""),))
    probes = []
    for name, disk in raw_disks(config.devices, host):
        plan = RawFioPlan(
            probe=f"{config.name}/{name}",
            workload=workload,
            device=name,
            device_class=config.device_class or (disk and disk.device_class) or "unknown",
            dev=str(host.roots.dev),
            sys=str(host.roots.sys),
            runtime_s=float(config.runtime),
            timeout_s=float(config.timeout),
            rate_iops=config.rate_iops,
        )
        probes.append(FioProbe(config, plan, name))
    return Plan(periodic=tuple(probes))
