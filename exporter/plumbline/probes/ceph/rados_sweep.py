"""Removal of objects that Plumbline made: only those in our namespace with our name prefix.

Light modules only: the canary's worker imports this.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plumbline.probes.ceph.librados import Pool, Removal

AT_A_TIME = 8  # Removals in flight: a disk in production hardly notices


def sweep(
    pool: Pool, is_ours: Callable[[str], bool], *, within_s: float, clock: Callable[[], float] = time.monotonic
) -> tuple[int, int]:
    """Returns how many were removed, and how many were found but remain (out of time, or an error). ``OSError`` if the
    namespace can't be listed."""
    deadline = clock() + within_s
    return remove(pool, (name for name in pool.objects() if is_ours(name)), deadline=deadline, clock=clock)


def remove(
    pool: Pool, names: Iterable[str], *, deadline: float, clock: Callable[[], float] = time.monotonic
) -> tuple[int, int]:
    """Remove these objects, several at a time; missing ones count as removed. Returns as :func:`sweep`."""
    removed = left = 0
    under_way: list[Removal] = []

    def finish() -> None:
        nonlocal removed, left
        try:
            under_way.pop(0).result()
        except FileNotFoundError:
            removed += 1
        except OSError:
            left += 1
        else:
            removed += 1

    for name in names:
        if clock() >= deadline:
            left += 1
            break
        if len(under_way) >= AT_A_TIME:
            finish()
        under_way.append(pool.start_remove(name))
    while under_way:
        finish()
    return removed, left
