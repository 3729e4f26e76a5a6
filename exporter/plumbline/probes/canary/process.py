"""The canaries' worker process: started, ended, and never waited for."""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from msgspec import Struct

from plumbline.core.isolated import argv_of
from plumbline.core.process import Child
from plumbline.probes.canary import memory
from plumbline.probes.canary.snapshot import Snapshot
from plumbline.probes.run.reading import CanaryState


class Trouble(Struct, frozen=True):
    """Why no worker is running."""

    state: CanaryState
    reason: str = ""
    message: str = ""


class WorkerProcess:
    """A running worker: ``main([lifeline fd, order])`` of ``module``. ``keep_fds`` stay open in it. Raises ``OSError``
    if it can't be started. ``started``: monotonic seconds."""

    def __init__(
        self,
        module: str,
        order: str,
        *,
        keep_fds: Sequence[int],
        started: float,
        site_packages: bool = False,
        interpreter: str = sys.executable,
    ) -> None:
        self.started = started
        stderr = os.memfd_create("plumbline-canary-stderr")
        theirs, ours = os.pipe()
        try:
            worker = argv_of(module, str(theirs), order, site_packages=site_packages, interpreter=interpreter)
            self._process = Child(worker, tied=False, stderr=stderr, keep_fds=(*keep_fds, theirs))
        except OSError:
            os.close(ours)
            os.close(stderr)
            raise
        finally:
            os.close(theirs)
        self._lifeline, self._stderr = ours, stderr
        # best effort, lowest: the idle class would measure starvation instead of the service.
        # fails if the worker died at once (reported at its end), or in a sandbox, where nice 10 lowers it, too
        import psutil  # noqa: PLC0415  (1 MiB, for canaries only)

        with contextlib.suppress(psutil.Error, OSError):
            psutil.Process(self.pid).ionice(psutil.IOPRIO_CLASS_BE, 7)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.ended

    def replace(self) -> None:
        """Ask it to end without waiting: the next worker serves more canaries."""
        self._process.signal(signal.SIGTERM)

    def end(self, timeout_s: float, *, asked_share: float) -> bool:
        """SIGTERM, then SIGKILL after ``asked_share`` of the time; False if it still hangs in the kernel."""
        return self._process.end(timeout_s * asked_share, killed_within_s=timeout_s * (0.95 - asked_share))

    def reap(self) -> str:
        """Reap it, close its descriptors, and return its last line of standard error. Only after it has ended."""
        self._process.reap()
        os.close(self._lifeline)
        words = os.pread(self._stderr, 2**16, 0).decode("utf-8", "replace").strip().rpartition("\n")[2]
        os.close(self._stderr)
        return words

    def why(self, last_words: str, reported: Snapshot) -> Trouble:
        code = self._process.reap() or 0
        if code == memory.EXIT_REFUSED and reported.state == memory.REFUSED:
            reason, _, message = reported.text.partition("\n")
            return Trouble(CanaryState.REFUSED, reason, message)
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        return Trouble(CanaryState.RESTARTING, "died", f"the worker ended {how}{last_words and ': '}{last_words}")
