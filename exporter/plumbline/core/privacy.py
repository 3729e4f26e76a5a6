"""Keeping the process's memory private: no core file, no tracing by other processes of the same user.

A core would hold the TLS key, passwords in use, S3 and Ceph keys. RLIMIT_CORE alone is not enough: by core(5) a core
piped to a program (systemd-coredump, apport) ignores the limit. PR_SET_DUMPABLE 0 prevents it, and then ptrace(2) and
/proc/<pid>/mem need CAP_SYS_PTRACE (prctl(2)). exec resets it, so each program of ours that holds a secret calls this
itself; the limit is inherited by all of them. Light: workers import it.

The price: a user who hunts a crash gets no core and no debugger under the same user; root still has both.
"""

from __future__ import annotations

import ctypes
import resource

_PR_SET_DUMPABLE = 4


def keep_memory_private() -> None:
    """Apply both to this process, from now on."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
