"""One run of one periodic probe, whoever asked for it: locks, gates, the run, and the gates again while it lasts.

The order is: nobody else at work (this host's lock, then the cluster's), every gate open, then the probe itself. While
it runs, those gates that the probe does not close by its own load are asked again every few seconds, and so is the
cluster's lock; one that closes, or its loss, ends the run, and counts as a skip with its reason.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plumbline.core import threads
from plumbline.core.process import ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.gates import Gate, HeavyLock
from plumbline.probes.model import ClusterGuard, PeriodicProbe, Progress, Run
from plumbline.probes.result import ProbeResult

log = logging.getLogger(__name__)

STOPPED = "stopped"
"""The reason of a run that was ended from outside."""
STUCK = "stuck"
"""The reason while a command of an earlier run outlives SIGKILL: one hangs, never a pile of them."""
LOOK_AGAIN_S = 3.0
"""How often gates are asked while a probe runs: recovery that begins is met within this time."""


@dataclass(frozen=True, slots=True)
class Gates:
    """``before``: asked once, before the start; ``throughout``: then, and again while the probe runs."""

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
    """Run ``probe`` once. ``clock`` is Unix time; ``stopping`` ends it from outside.

    Raises :class:`ProbeRefused`: ``stuck``, ``locked``, ``lock-lost``, a gate's reason (also when it closed under way),
    the probe's own reasons, ``stopped``.
    """
    if pids := runner.stuck():
        raise ProbeRefused(
            STUCK,
            f"an earlier run still hangs in the kernel (process {', '.join(map(str, pids))}): what it measures does not"
            " answer; another one would hang beside it",
        )
    with _locks(probe, host_lock, cluster) as (keep_fds, leases):
        for gate in (*leases, *gates.throughout, *gates.before):
            gate()
        with _Watch(leases, gates.throughout, stopping, look_again_s) as watch:
            run = Run(
                runner=runner.within(watch.stop),
                clock=clock,
                stopping=watch.stop,
                keep_fds=keep_fds,
                progress=progress,
            )
            try:
                result = probe.run(run)
            except ProbeRefused as refusal:
                if refusal.reason == STOPPED and watch.closed is not None:
                    raise ProbeRefused(watch.closed.reason, f"stopped under way: {watch.closed}") from refusal
                raise
    return result


@contextlib.contextmanager
def _locks(
    probe: PeriodicProbe, host_lock: HeavyLock, cluster: ClusterGuard | None
) -> Iterator[tuple[tuple[int, ...], tuple[Gate, ...]]]:
    """Descriptors for the commands to keep, and what says that a lock was lost under way."""
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
    """Asks gates again and again beside a run; ``stop`` is set when one closed, or when the run is to end anyway.

    ``leases`` answer at once and are asked ten times a second: a gate that waits for a cluster must not keep us from
    seeing that its lock is lost.
    """

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
        """Not joined: a gate that asks a cluster which hangs must not hold the result back."""
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
        """A gate that nobody can ask is closed: a heavy run must not go on unwatched."""
        log.error("a gate can't be asked: %s: %s", type(mistake).__name__, mistake, exc_info=mistake)
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
