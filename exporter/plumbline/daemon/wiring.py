"""Builds the parts that read, probe and judge, in one explicit order: each part knows only those before it.

The daemon runs them continuously; `plumbline check` looks twice, and starts, locks and writes nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from plumbline.background.ceph import CephMapWatch
from plumbline.background.claims import ClaimWatch
from plumbline.background.fingerprint import read_fingerprint
from plumbline.background.host import HostWatch
from plumbline.background.leases import Leases, LeaseWatch
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.checks.disk_flush import WORKLOAD, DurableWrites
from plumbline.checks.fixes import read_system
from plumbline.checks.run import Judge
from plumbline.collectors import registry
from plumbline.collectors.canary import CanariesReading
from plumbline.collectors.daemon import DaemonState
from plumbline.collectors.finding import FindingsReading
from plumbline.collectors.host import Latest
from plumbline.collectors.probe import ProbesReading
from plumbline.config.model import Config
from plumbline.core.answers import ask_side_by_side
from plumbline.core.light_import import without_init
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import Slot
from plumbline.daemon.running import HostContext, PreparedConfig
from plumbline.errors import PlumblineError, ProbeRefused, Unavailable
from plumbline.metrics.exposition import Exposition
from plumbline.probes.ceph.cluster import CephGuard, ClusterView
from plumbline.probes.run.schedule import ProbeStatus, Probing
from plumbline.probes.run.state import ProbeRecord, StateStore
from plumbline.sources.ceph.cephmap import CephMap
from plumbline.sources.kernel.softnet import SoftnetUnwrapper
from plumbline.sources.kernel.vantage import Vantage, read_vantage

with without_init("prometheus_client"):  # it imports servers and clients: 5 MiB
    from prometheus_client.process_collector import ProcessCollector

log = logging.getLogger("plumbline")

FACTS_WITHIN_S = 3.0  # How long the daemon waits for the first facts before it continues without them
CEPH, CEPH_EVERY_S = "ceph", 15.0  # The cluster's state for the metrics; queried only if a probe needs the cluster
FINGERPRINT, FINGERPRINT_EVERY_S = "fingerprint", 600.0
"""It changes with updates, and reading it starts processes, so a delay of minutes does not matter."""


class Wiring:
    """The parts. ``running`` is the active configuration: a reload replaces it as a whole, and every part reads it."""

    def __init__(
        self, context: HostContext, config: Config, store: StateStore, *, state: Callable[[], DaemonState]
    ) -> None:
        roots, environment = context.roots, context.environment
        self.record: Callable[[str], ProbeRecord] = store.get  # what is remembered of a probe, by its name
        self.running: PreparedConfig = context.prepare(config)
        vantage = found_vantage(config, roots, environment)
        self.cluster = CephGuard(config.ceph, config.gates, host=context.host)
        self.probing = Probing(
            store=store, roots=roots, host=context.host, environment=environment, vantage=vantage, cluster=self.cluster
        )
        self.claims = ClaimWatch(context.storage, vantage)
        self.leases = LeaseWatch(context.storage)
        self.ceph_map = CephMapWatch(self.config, roots=roots, environment=environment)
        self.watch = watch = HostWatch(
            config=self.config,
            store=store,
            roots=roots,
            environment=environment,
            osd_addresses=self.ceph_map.osd_addresses,
        )
        self.ceph = Slot[ClusterView](self._look_at_cluster, what="the Ceph cluster", stale_after_s=4 * CEPH_EVERY_S)
        self._fingerprint = Slot[Fingerprint](
            lambda: read_fingerprint(roots, environment=environment, ceph=self.config().ceph),
            what="what this node consists of",
            stale_after_s=4 * FINGERPRINT_EVERY_S,
        )
        self.judge = Judge(partial(read_system, roots, environment), self._durable_writes)
        self._parts = registry.Parts(
            roots=roots,
            network=watch.network,
            links=watch.links,
            softnet=SoftnetUnwrapper(),
            kernel=watch.kernel,
            storage=watch.storage,
            osds=watch.osds,
            latest=Latest(
                {
                    **watch.latest,
                    ClusterView: lambda: self.ceph.value,
                    CephMap: lambda: self.ceph_map.map.value,
                    Leases: lambda: self.leases.slot.value,
                    CanariesReading: lambda: CanariesReading(tuple(self.probing.readings()), vantage),
                    ProbesReading: lambda: ProbesReading(tuple(self._probes()), time.time()),
                    FindingsReading: self._findings,
                    Fingerprint: self.fingerprint,
                    DaemonState: state,
                }
            ),
        )
        self.exposition = Exposition(
            (), None, clock=time.perf_counter, logger=log, process=ProcessCollector(registry=None).collect
        )

    def config(self) -> Config:
        return self.running.config

    def collect(self, *, daemon: bool = True) -> None:
        """Activate the collectors that the configuration enables; without a daemon only those that then have data."""
        config = self.config()
        enabled = [collector for collector in registry.collectors(config) if daemon or not collector.needs_daemon]
        self.exposition.replace(enabled, registry.configured(self._parts, config, self.running.book))

    def give_up_capabilities(self) -> str:
        """Drop the capabilities that no collector still needs; returns a message for the log."""
        return self.watch.use_capabilities(registry.capabilities(self.config()))

    def slow_tier(self) -> list[Job]:
        """Jobs that read outside the scrape: periodic in the daemon, once each look in `plumbline check`."""
        ceph = Job(CEPH, CEPH_EVERY_S, 0.0, self.ceph.refresh, serves=("ceph",))
        return [self._if_shown(job) for job in (*self.watch.jobs(), ceph)]

    def jobs(self) -> list[Job]:
        fingerprint = Job(FINGERPRINT, FINGERPRINT_EVERY_S, 0.0, self._read_fingerprint, serves=("baseline",))
        others = (self.ceph_map.map.job, self.claims.slot.job, self.leases.slot.job, fingerprint)
        return [*self.slow_tier(), *(self._if_shown(job) for job in others)]

    def _if_shown(self, job: Job) -> Job:
        """It reads nothing while all collectors that would show it are switched off."""

        def run(cancel: threading.Event) -> None:
            if not job.serves or any(map(self.config().collects, job.serves)):
                job.run(cancel)

        return replace(job, run=run)

    def apply(self, running: PreparedConfig) -> None:
        """Apply another configuration to all parts."""
        self.running = running
        config = running.config
        self.watch.configured()
        self.cluster.configure(config.ceph, config.gates)
        self.probing.apply(running.plan, running.book.bounds(), config.gates)

    @property
    def outdated(self) -> str:
        """Why probes have to be planned anew; empty if they need not."""
        if self.probing.outdated:
            return "the OSDs or mounts changed"
        # before the first look nothing is known
        if self.claims.slot.last is not None and self.claims.identities() != self.running.plan.reported:
            return "the claims of volumes changed"
        return ""

    def reported(self) -> list[ProbeStatus]:
        """Probes that other processes run, but for names that a probe of the configuration has."""
        own = {probe.identity.probe for probe in self.probing.periodic()}
        return [status for status in self.claims.statuses() if status.identity.probe not in own]

    def _probes(self) -> list[ProbeStatus]:
        return [*self.probing.statuses(), *self.reported()]

    def _durable_writes(self) -> list[DurableWrites]:
        """What the configured probes of durable writes measured, whenever that was: it is the disk's nature."""
        return [
            DurableWrites(probe.identity.device, operation.rates)
            for probe in self.running.plan.periodic
            if probe.identity.workload == WORKLOAD
            if (success := self.record(probe.identity.probe).success) is not None
            if success.config_hash == probe.identity.config_hash
            for operation in success.operations
        ]

    def fingerprint(self) -> Fingerprint:
        """The parts of this node; empty if not read yet or if that hangs, and then nothing is compared."""
        try:
            return self._fingerprint.value
        except PlumblineError:
            return Fingerprint()

    def _read_fingerprint(self, cancel: threading.Event) -> None:
        """Only measured baselines say what the node was like, so without one there is nothing to compare."""
        if self.running.book.measured_on:
            self._fingerprint.refresh(cancel)

    def _findings(self) -> FindingsReading:
        if self.judge.findings is None:
            raise Unavailable("the host has not been judged yet")
        return FindingsReading(self.judge.findings)

    def _look_at_cluster(self) -> ClusterView:
        """:class:`Unavailable` if no probe needs the cluster: a node with a cluster may not grant us access to it."""
        if not self.probing.needs_cluster:
            raise Unavailable("no probe here needs a Ceph cluster")
        try:
            return self.cluster.look()
        except ProbeRefused as refusal:
            raise Unavailable(str(refusal)) from refusal


def no_daemon() -> DaemonState:
    """Raises :class:`Unavailable`; for use without a daemon."""
    raise Unavailable("no daemon runs")


def found_vantage(config: Config, roots: Roots, environment: Mapping[str, str]) -> str:
    """The ``vantage`` label: as configured, otherwise detected. Fixed for the daemon's life, as the machine's is."""
    if config.vantage is not None:
        return config.vantage
    look = partial(read_vantage, roots, root=Path("/"), environment=environment)
    answers, _ = ask_side_by_side({"vantage": look}, FACTS_WITHIN_S, what="look")
    if not answers:
        log.warning("the vantage can't be detected: a read hangs; assuming host, or set vantage: in the configuration")
        return Vantage.HOST.value
    vantage, by = answers["vantage"]
    log.debug("vantage %s: %s", vantage, by)
    return vantage.value
