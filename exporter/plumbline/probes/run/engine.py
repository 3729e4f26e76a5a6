"""One run of one periodic probe, scheduled or on demand: locks, gates, the run, and gates checked during the run.

Order: take the locks (this host's, then the cluster's), check every gate, run the probe. During the run, the gates that
the probe's own load does not close are checked every few seconds, and so is the cluster's lock. A gate that closes, or
a lost lock, ends the run, which counts as a skip with that reason.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from plumbline.core import threads
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.run.gates import Gate, HeavyLock
from plumbline.probes.run.model import ClusterGuard, PeriodicProbe, Progress, Run
from plumbline.probes.run.result import ProbeResult

log = logging.getLogger(__name__)

STOPPED = "stopped"  # The reason of a run that was ended from outside
STUCK = "stuck"  # The reason while a command of an earlier run survives SIGKILL: at most one command hangs
LOOK_AGAIN_S = 3.0  # How often gates are checked while a probe runs: recovery that begins is noticed within this time


class Gates(Struct, frozen=True):
    """``before``: checked once, before the start; ``throughout``: checked then and during the run."""

    before: Sequence[Gate] = ()
    throughout: Sequence[Gate] = ()


def run_probe(
    probe: PeriodicProbe,
    *,
    runner: ProcessRunner,
    host_lock: HeavyLock,
    cluster: ClusterGuard | None,
    gates: Gates,
    clock: Callable[[], float],
    stopping: threading.Event,
    progress: Callable[[Progress], None] = lambda _progress: None,
    look_again_s: float = LOOK_AGAIN_S,
) -> ProbeResult:
    """Run ``probe`` once. ``clock`` is Unix time; ``stopping`` ends it from outside. Raises :class:`ProbeRefused`:
    ``stuck``, ``locked``, ``lock-lost``, a gate's (also if it closed during the run), the probe's own, ``stopped``."""
    if pids := runner.stuck():
        raise ProbeRefused(
            STUCK,
            f"an earlier run still hangs in the kernel (process {', '.join(map(str, pids))}): what it measures does not"
            " answer, and another run would hang as well",
        )
    with _locks(probe, host_lock, cluster) as (keep_fds, leases):
        for gate in (*leases, *gates.throughout, *gates.before):
            gate()
        with _Watch(leases, gates.throughout, stopping, look_again_s) as watch:
            run = Run(
                runner=runner.within(watch.stop), clock=clock, stopping=watch.stop, keep_fds=keep_fds, progress=progress
            )
            try:
                result = probe.run(run)
            except ProbeRefused as refusal:
                if refusal.reason == STOPPED and watch.closed is not None:
                    raise ProbeRefused(watch.closed.reason, f"stopped during the run: {watch.closed}") from refusal
                raise
    return result


@contextlib.contextmanager
def _locks(
    probe: PeriodicProbe, host_lock: HeavyLock, cluster: ClusterGuard | None
) -> Iterator[tuple[tuple[int, ...], tuple[Gate, ...]]]:
    """Lock descriptors for the commands to keep open, and the gates that report a lock lost during the run."""
    if not probe.heavy:
        yield (), ()
        return
    name = probe.identity.probe
    with host_lock.hold(name) as descriptor:
        if cluster is None:
            yield (descriptor,), ()
            return
        with cluster.hold(name) as lease:
            yield (descriptor,), (lease.check,)


class _Watch:
    """Checks gates repeatedly during a run; ``stop`` is set when one closed, or when the run must end anyway.
    ``leases`` answer at once and are checked ten times a second, in their own thread: a gate that waits for a cluster
    must not delay the detection of a lost lock."""

    def __init__(
        self, leases: Sequence[Gate], gates: Sequence[Gate], stopping: threading.Event, every_s: float
    ) -> None:
        self._leases, self._gates, self._stopping, self._every_s = leases, gates, stopping, every_s
        self.stop = threading.Event()
        self.closed: ProbeRefused | None = None
        self._over = threading.Event()

    def __enter__(self) -> _Watch:
        if self._stopping.is_set():
            self.stop.set()
        threads.start("gate-follow", self._follow, died=self._blind)
        if self._gates:
            threads.start("gate-ask", self._ask, died=self._blind)
        return self

    def __exit__(self, *_: object) -> None:
        """Does not join the threads: a gate that waits for a hung cluster must not delay the result."""
        self._over.set()

    def _follow(self) -> None:
        while not self._over.is_set():
            if self._stopping.wait(0.1):
                self.stop.set()
                return
            if not self._all_open(self._leases):
                return

    def _ask(self) -> None:
        while not self._over.wait(self._every_s):
            if not self._all_open(self._gates):
                return

    def _blind(self, mistake: Exception) -> None:
        """A gate that cannot be checked counts as closed: a heavy run must not go on unwatched."""
        log.error("a gate can't be checked: %s: %s", type(mistake).__name__, mistake, exc_info=mistake)
        self._close(ProbeRefused("gate-failed", f"{type(mistake).__name__}: {mistake}"))

    def _close(self, refusal: ProbeRefused) -> None:
        if not self._over.is_set():
            self.closed = self.closed or refusal
            self.stop.set()

    def _all_open(self, gates: Sequence[Gate]) -> bool:
        for gate in gates:
            try:
                gate()
            except ProbeRefused as refusal:
                self._close(refusal)
                return False
        return True
