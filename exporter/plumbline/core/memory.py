"""What a process of ours may hold: a server that a worker talks to must not be able to fill the host's memory. Light.

RLIMIT_DATA, not RLIMIT_AS (setrlimit(2)): glibc reserves 64 MiB of addresses for each of its arenas, of which there are
up to eight a CPU, so that a limit of addresses would depend on the machine. Since Linux 4.7 the data limit counts every
private writable page, thread stacks too.
"""

import ctypes
import resource

_M_ARENA_MAX = -8  # malloc.h

LIBRADOS = 2 << 30
"""Bytes: seven times what a canary with all its threads has (stacks above all)."""


def limit_memory(most: int) -> None:
    """Of this process, from now on: ``malloc`` fails beyond ``most`` bytes. Never raises a limit that is lower."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def share_one_heap() -> None:
    """Of all threads; call it before there is a second one. The interpreter's lock lets one of them work at a time.

    With an arena for each of many short-lived threads the daemon grows for an hour, by a quarter.
    """
    try:  # contextlib is not light  # noqa: SIM105
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except AttributeError:
        pass  # a C library that has no arenas
