"""Why a thread of this process is late: it gets no CPU, or the call it is in does not return.

proc_pid_stat(5), proc_pid_wchan(5); https://github.com/torvalds/linux/blob/v6.12/Documentation/scheduler/sched-stats.rst
(``/proc/<pid>/schedstat``: CONFIG_SCHED_INFO)::

    /proc/self/task/812/stat          812 (python3) D 1 …
    /proc/self/task/812/wchan         rtnl_dumpit; 0: not waiting, or hidden
    /proc/self/task/812/schedstat     9203412 3104882113 17: nanoseconds on a CPU and runnable without one; turns

The times count from the thread's start: what may be late needs a thread of its own, or :meth:`Stall.since`.
"""

import re
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from plumbline.core.kernel import read_kernel

TASKS = Path("/proc/self/task")  # this process's own: thread ids are those of its PID namespace, not of the host's
_STARVED_SHARE = 0.5  # of its time
_NS_PER_S = 1_000_000_000
_STAT = re.compile(rb"[0-9]+ \(.*\) (?P<state>[A-Za-z]) ", re.DOTALL)
_WCHAN = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]*")
_SCHEDSTAT = re.compile(rb"(?P<ran>[0-9]{1,20}) (?P<waited>[0-9]{1,20}) [0-9]+\s*")
_LOCK = "futex"  # how the C library, and so Python, waits for another thread


class Stall(Struct, frozen=True):
    """What the kernel says about a thread. ``""`` and ``None``: nothing."""

    state: str  # R (runs, or waits for a CPU), S, D …
    waits_in: str  # the kernel function that it sleeps in
    ran_s: float | None
    queued_s: float | None  # runnable without a CPU, each time until it got one

    def since(self, before: "Stall") -> "Stall":
        """The same, with the times counted from an earlier look at the same thread."""
        ran_s, queued_s = _less(self.ran_s, before.ran_s), _less(self.queued_s, before.queued_s)
        return replace(self, ran_s=ran_s, queued_s=queued_s)

    def _waited_s(self, elapsed_s: float) -> float:
        """Without a CPU. The kernel counts a wait when it ends: one that lasts may be all the time it did not run."""
        if self.state == "R" and self.ran_s is not None:
            return max(0.0, elapsed_s - self.ran_s)
        return self.queued_s or 0.0

    def starved(self, elapsed_s: float) -> bool:
        """Whether lack of CPU explains most of the ``elapsed_s`` that the times count. A call that hangs does not
        count: a sleeping thread wants no CPU."""
        return self._waited_s(elapsed_s) >= _STARVED_SHARE * elapsed_s

    def why(self, elapsed_s: float) -> str:
        """The reason as a clause for logs and pages."""
        if self.starved(elapsed_s):
            return f"the host is short of CPU: it waited {self._waited_s(elapsed_s):.1f} of {elapsed_s:.1f} s for one"
        if self.state == "R":
            return "it still runs, or waits for a CPU" if self.ran_s is None else f"it used {self.ran_s:.1f} s of CPU"
        if not self.state:
            return "a read hangs in the kernel; see dmesg"
        at = f"state {self.state}{f' in {self.waits_in}' if self.waits_in else ''}"
        if self.waits_in.startswith(_LOCK):
            return f"it waits for another thread of the daemon ({at})"
        return f"a read hangs in the kernel ({at}); see dmesg"


def read_stall(thread: int, tasks: Path = TASKS) -> Stall:
    """Look at a thread by its kernel id, or in ``/proc`` at a process of one thread. Never raises: what has ended has
    no state."""
    stat, schedstat = _STAT.match(_read(tasks, thread, "stat")), _SCHEDSTAT.match(_read(tasks, thread, "schedstat"))
    waits_in = _WCHAN.fullmatch(_read(tasks, thread, "wchan").strip())
    return Stall(
        stat["state"].decode() if stat else "",
        waits_in[0].decode() if waits_in else "",
        int(schedstat["ran"]) / _NS_PER_S if schedstat else None,
        int(schedstat["waited"]) / _NS_PER_S if schedstat else None,
    )


def _less(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


def _read(tasks: Path, thread: int, name: str) -> bytes:
    try:
        return read_kernel(tasks / str(thread) / name)
    except OSError:
        return b""
