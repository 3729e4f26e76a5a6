"""A canary's worker as a process: started in an isolated interpreter, ended, and never waited for.

The lifeline is a pipe whose other end only the daemon holds: the worker ends when that closes, however the daemon
ended.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

import plumbline

_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from plumbline.probes.{module} import main; "
_BOOTSTRAP += "sys.exit(main(sys.argv[2:5]))"


class WorkerProcess:
    """A running worker: ``main([memory fd, lifeline fd, order])`` of ``plumbline.probes.<module>``.

    Raises ``OSError`` when it can't be started. ``name`` is for whoever looks at a list of processes.
    """

    def __init__(
        self, interpreter: str, module: str, memory_fd: int, order: str, *, name: Sequence[str], started: float
    ) -> None:
        self.started = started
        stderr = os.memfd_create("plumbline-canary-stderr")
        theirs, ours = os.pipe()
        code_root = str(Path(plumbline.__file__).resolve().parent.parent)
        # -I -S: no environment, no site packages. The worker needs nothing but the standard library and us.
        argv = [interpreter, "-I", "-S", "-c", _BOOTSTRAP.format(module=module), code_root]
        try:
            self.process = subprocess.Popen(
                [*argv, str(memory_fd), str(theirs), order, *name],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env={"LC_ALL": "C"},
                pass_fds=(memory_fd, theirs),
                start_new_session=True,
            )
        except OSError:
            os.close(ours)
            os.close(stderr)
            raise
        finally:
            os.close(theirs)
        self._lifeline, self._stderr = ours, stderr
        # best effort, lowest: the idle class would measure starvation instead of the service.
        # Fails when it died at once (its end will say) or in a sandbox, where nice 10 lowers it, too.
        with contextlib.suppress(psutil.Error, OSError):
            psutil.Process(self.process.pid).ionice(psutil.IOPRIO_CLASS_BE, 7)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def end(self, timeout_s: float) -> bool:
        """SIGTERM, with time to tidy up, then SIGKILL; False when it hangs in the kernel all the same."""
        for end, share in ((self.process.terminate, 0.75), (self.process.kill, 0.2)):
            end()
            try:
                self.process.wait(timeout_s * share)
            except subprocess.TimeoutExpired:
                continue
            return True
        return False

    def bury(self) -> str:
        """Close what was its, and give its last words. Only when it has ended."""
        os.close(self._lifeline)
        words = os.pread(self._stderr, 2**16, 0).decode("utf-8", "replace").strip().rpartition("\n")[2]
        os.close(self._stderr)
        return words
