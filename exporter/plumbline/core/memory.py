"""The memory of our processes: its limit, its heap, and its privacy. Light: workers import it.

A server that a worker talks to must not be able to fill the host's memory. The limit is RLIMIT_DATA, not RLIMIT_AS
(setrlimit(2)): glibc reserves 64 MiB of address space for each arena, up to eight a CPU, so an address-space limit
would depend on the machine. Since Linux 4.7 the data limit counts every private writable page, thread stacks included.
"""

import ctypes
import resource

_M_ARENA_MAX = -8  # malloc.h
_PR_SET_DUMPABLE = 4

LIBRADOS = 2 << 30  # Bytes: seven times what a canary uses with all its threads (mostly stacks)


def limit_memory(most: int) -> None:
    """Limit this process: ``malloc`` fails beyond ``most`` bytes. Never raises a lower limit."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def share_one_heap() -> None:
    """Use one malloc arena for all threads; call it before a second thread starts. The GIL runs one thread at a time,
    and with an arena for each of many short-lived threads the daemon would grow for an hour, by a quarter."""
    try:  # contextlib is not light  # noqa: SIM105
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except AttributeError:
        pass  # a C library without arenas


def give_back_memory() -> None:
    """Return the heap's free pages to the kernel, once after the start, which needs memory that is not needed again."""
    try:  # contextlib is not light  # noqa: SIM105
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        pass  # a C library that is not glibc


def keep_memory_private() -> None:
    """No core file from now on, and no tracing by other processes of the same user: a core would hold the TLS key,
    passwords in use, S3 and Ceph keys. A core piped to a program (systemd-coredump, apport) ignores RLIMIT_CORE
    (core(5)); PR_SET_DUMPABLE 0 prevents it, and then ptrace(2) and /proc/<pid>/mem need CAP_SYS_PTRACE (prctl(2)).
    exec resets it, so each program of ours that holds a secret calls this itself. The price: only root gets a core or a
    debugger."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
