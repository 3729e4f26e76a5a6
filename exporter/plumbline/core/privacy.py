"""What is in memory stays there: no core file, no tracing by other processes of the same user.

A core would hold the TLS key, passwords under way, S3 and Ceph keys. The limit RLIMIT_CORE alone doesn't do: core(5)
has it that a core piped to a program (systemd-coredump, apport) is not bound by it. PR_SET_DUMPABLE 0 does, and with it
ptrace(2) and /proc/<pid>/mem take CAP_SYS_PTRACE (prctl(2)). exec sets it anew, so each program of ours that holds a
secret calls this for itself; the limit is inherited by all of them. Light: workers import it.

The price: no core and no debugger of the same user for whoever hunts a crash; root still has both.
"""

from __future__ import annotations

import ctypes
import resource

_PR_SET_DUMPABLE = 4


def keep_memory_private() -> None:
    """For this process, from now on."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
