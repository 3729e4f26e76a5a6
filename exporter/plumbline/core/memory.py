"""What a worker may hold at most: a server that it talks to must not be able to fill the host's memory. Light.

RLIMIT_DATA, not RLIMIT_AS (setrlimit(2)): glibc reserves 64 MiB of addresses for each of its arenas, of which there are
up to eight a CPU, so that a limit of addresses would depend on the machine. Since Linux 4.7 the data limit counts every
private writable page, thread stacks too.
"""

import resource

LIBRADOS = 2 << 30
"""Bytes: seven times what a canary with all its threads has (stacks above all)."""


def limit_memory(most: int) -> None:
    """Of this process, from now on: ``malloc`` fails beyond ``most`` bytes. Never raises a limit that is lower."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
