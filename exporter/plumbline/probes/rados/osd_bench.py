"""Ceph's own bench of one OSD: it drops the caches, then writes objects of its own, never touching a client's data.

    ceph tell osd.3 cache drop
    ceph tell osd.3 bench 12288000 4096 4194304 100

The OSD refuses anything above its own limits (``osd_bench_*``: at most 30 s of writes at 100 IOPS of small blocks, or
100 MB/s of large ones), which are never raised here; so after an abort the bench continues in the OSD for at most that
long. It writes and removes objects in its own meta collection.

``ceph tell osd.N`` needs ``osd 'allow *'``: access to all the cluster's data. The other probes' user has no such right;
a separate user (``ceph.osd_bench_user``) is created only on request. If the daemon may write to the admin socket of an
OSD on this host, the bench goes through that, and needs no Ceph user at all.

Both print the same (``iops`` since Ceph 13; Ceph before 12 quoted ``bytes_per_sec``, and had no ``elapsed_sec``):

    {"bytes_written":1073741824,"blocksize":4194304,"elapsed_sec":1.734130467,"bytes_per_sec":619181684.67309451,
     "iops":147.62441746547091}

https://github.com/ceph/ceph/blob/main/src/osd/OSD.cc (``bench``)
"""

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.config.probes.ceph import OsdBenchConfig
from plumbline.config.workloads import OsdBench
from plumbline.core.foreign import decode_json
from plumbline.core.process import Completed
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.rados.ceph_program import first_line, judge
from plumbline.probes.rados.osd_choice import ChosenOsd, look_up
from plumbline.probes.run.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.tool import CEPH, refuse_if_stopped

_DENIED = (errno.EACCES, errno.EPERM)
Positive = Annotated[float, Meta(gt=0, le=1e300)]


class OsdBenchReport(msgspec.Struct, frozen=True):
    """Totals of one bench. ``None``: this release does not report it."""

    bytes_written: Positive
    block_bytes: Positive = msgspec.field(name="blocksize")
    bytes_per_second: Positive = msgspec.field(name="bytes_per_sec")
    elapsed_s: Positive | None = msgspec.field(default=None, name="elapsed_sec")
    iops: Positive | None = None


def parse_osd_bench(text: str, *, source: str = "ceph tell osd bench") -> OsdBenchReport:
    """Parse the figures; raises :class:`ParseError` for anything invalid."""
    return decode_json(text, OsdBenchReport, source=source, what="unexpected output", strict=False)


class OsdBenchProbe(msgspec.Struct, frozen=True):
    config: OsdBenchConfig
    workload: OsdBench
    access: CephAccess
    osd: ChosenOsd
    sockets: Path
    """``/run/ceph``."""

    heavy = True

    @property
    def target(self) -> str:
        """``osd.3``."""
        return f"osd.{self.osd.number}"

    @property
    def identity(self) -> Identity:
        return Identity.of(
            self.config,
            self.workload,
            probe=f"{self.config.name}/{self.target}",
            device_class=self.osd.device_class,
            tool="ceph",
            target=self.target,
            device=self.osd.device,
            cluster=True,
        )

    def argv(self, *words: str) -> tuple[str, ...]:
        """A command to the OSD: through its admin socket if we may use it, else by ``ceph tell``."""
        socket = self._socket()
        if socket is not None:
            return ("ceph", "--conf", self.access.conf, "daemon", str(socket), *words)
        return self.access.for_osd_bench().ceph("tell", self.target, *words)

    def run(self, run: Run) -> ProbeResult:
        if self._socket() is None:
            self.access.for_osd_bench().check()
        version = CEPH.version(run.runner)
        started = run.clock()
        timeout_s, workload = float(self.config.timeout), self.workload
        run.progress(Progress("dropping the OSD's caches", 0.0))
        done = self._command(run, self.argv("cache", "drop"), timeout_s)
        spent_s = done.duration_s
        outcome, message = judge(done, f"{self.target} cache drop", timeout_s)
        operations: tuple[OperationResult, ...] = ()
        if outcome is Outcome.SUCCESS:
            run.progress(Progress("the OSD writes", 0.3))
            numbers = [workload.total_bytes, workload.block_size]
            if workload.object_size:
                numbers += [workload.object_size, workload.objects]
            done = self._command(run, self.argv("bench", *map(str, numbers)), timeout_s - spent_s)
            spent_s += done.duration_s
            outcome, message = judge(done, f"{self.target} bench", timeout_s)
        if outcome is Outcome.SUCCESS:
            try:
                report = parse_osd_bench(done.stdout.decode("utf-8", "replace"), source=f"{self.target} bench")
                name = workload.operations[0]
                operations = (OperationResult(operation=name, iops=report.iops, throughput=report.bytes_per_second),)
            except ParseError as error:
                outcome, message = Outcome.FAILURE, f"{error}: {first_line(done)}"
        return self.identity.result(
            tool_version=version,
            started=started,
            duration=spent_s,
            outcome=outcome,
            operations=operations,
            message=message,
        )

    def clean_up(self, run: Run) -> None:
        """Nothing to do: the OSD removes its objects itself."""

    def _command(self, run: Run, argv: Sequence[str], timeout_s: float) -> Completed:
        done = run.runner.run(argv, timeout_s=timeout_s, keep_fds=run.keep_fds)
        refuse_if_stopped(done.cancelled)
        text = first_line(done)
        if done.returncode in _DENIED or any(word in text for word in ("EACCES", "EPERM", "Permission denied")):
            raise ProbeRefused(
                "permission",
                f"{self.target}: the user lacks the permission for a bench, osd 'allow *' ({text}); "
                "run `plumbline ceph setup --osd-bench` and set ceph.osd_bench_user",
            )
        return done

    def _socket(self) -> Path | None:
        """The OSD's admin socket, if this user may use it. cephadm puts it one directory deeper, per cluster."""
        name = f"*{self.target}.asok"
        for path in sorted([*self.sockets.glob(name), *self.sockets.glob(f"*/{name}")]):
            if stat.S_ISSOCK(path.stat().st_mode) and os.access(path, os.W_OK):
                return path
        return None


def build(config: OsdBenchConfig, workload: OsdBench, host: Host) -> Plan:
    """One probe per OSD; the lock for heavy probes makes them run one at a time."""
    access, sockets = CephAccess.of(host.ceph), host.roots.udev.parent / "ceph"
    osds = look_up(config.osds, config.device_class, host)
    return Plan(periodic=tuple(OsdBenchProbe(config, workload, access, osd, sockets) for osd in osds))
