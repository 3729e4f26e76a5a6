"""ZFS pools: do they work, and have their devices counted errors?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from plumbline.checks.array.facts import ArrayFacts, Pool
from plumbline.checks.model import Check, Fix, Severity, Verdict
from plumbline.checks.text import listed, plural
from plumbline.sources.disk.zpool_status import Vdev

_ONLINE = "ONLINE"
_SUSPENDED = "SUSPENDED"


def _state(facts: ArrayFacts) -> Iterator[Verdict]:
    for pool in facts.pools:
        if pool.state == _ONLINE and not pool.unhealthy:
            yield Verdict(pool.name, _ONLINE, _ONLINE)
            continue
        is_ = pool.state
        if pool.unhealthy:
            is_ += f", not fit: {listed(pool.unhealthy)}"
        name = shlex.quote(pool.name)
        if pool.state == _SUSPENDED:
            fix = Fix(
                f"zpool clear {name}",
                caution="Only once its devices are back (dmesg, cables): until then every read and write waits.",
            )
        else:
            fix = Fix(
                f"zpool status -v {name}",
                caution="This only shows. A device that came back: zpool online; a broken one: zpool replace.",
            )
        serves = pool.state in (_ONLINE, "DEGRADED")
        because = "" if serves else "It serves nothing until its devices are back."
        yield Verdict(pool.name, is_, _ONLINE, fix, Severity.WARNING if serves else Severity.CRITICAL, because)


def _errors(facts: ArrayFacts) -> Iterator[Verdict]:
    for pool in facts.pools:
        if pool.errors is None:
            continue
        should = "no errors counted"
        if not pool.errors and not pool.data_errors:
            yield Verdict(pool.name, should, should)
            continue
        damaged = bool(pool.data_errors)
        yield Verdict(
            pool.name,
            "; ".join(_counted(pool)),
            should,
            Fix(
                f"zpool status -v {shlex.quote(pool.name)}",
                caution="This only shows, also which files are damaged. Then: cables and smartctl, zpool replace or "
                "zpool clear, zpool scrub.",
            ),
            Severity.CRITICAL if damaged else Severity.WARNING,
            "Redundancy did not suffice: what is damaged has to come from a backup." if damaged else "",
        )


def _counted(pool: Pool) -> Iterator[str]:
    if pool.data_errors:
        yield plural(pool.data_errors, "damaged object")
    if pool.errors:
        yield listed(map(_of_vdev, pool.errors))


def _of_vdev(vdev: Vdev) -> str:
    return f"{vdev.path} ({', '.join(f'{count:,} {kind}' for kind, count in vdev.errors.items() if count)})"


STATE = Check(
    "array.zfs-pool",
    "Have every ZFS pool and its devices online.",
    "Imported pools. Their devices too where zpool status can be asked.",
    "A degraded pool has lost redundancy; one that is faulted or suspended makes every process wait that touches it.",
    "zpoolconcepts(7) (device failure and recovery); zpool-status(8)",
    Severity.WARNING,
    _state,
    "zpool status -v <pool>",
)
ERRORS = Check(
    "array.zfs-errors",
    "Have no errors on a pool's devices.",
    "Pools whose devices' counts are known (zpool status).",
    "ZFS mended what it could; a device that errs goes on to err.",
    "zpool-status(8); zpool-clear(8)",
    Severity.WARNING,
    _errors,
    "zpool status -v <pool>",
)

CHECKS = (STATE, ERRORS)
