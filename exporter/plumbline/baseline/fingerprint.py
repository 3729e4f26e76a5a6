"""The environment of a baseline: software, devices and settings; and what has changed since.

::

    fingerprint:
      ceph: 19.2.3
      kernel: 6.12.48-amd64
      fio: "3.39"
      disks: {S4XYNG0M: SAMSUNG MZ7LH960HAJR 904Q}
      nics: {ens1f0: mlx5_core 6.12.48 26.41.1000}
      tuning: 5d41402abc4b

:mod:`plumbline.background.fingerprint` reads it. A part that is unknown on either side is not compared, because a
failed reading is not a change of the host.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta


class Part(StrEnum):
    """The parts that can change; values of the ``part`` label."""

    CEPH = "ceph"
    KERNEL = "kernel"
    FIO = "fio"
    DISKS = "disks"
    NICS = "nics"
    TUNING = "tuning"


class Fingerprint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A host's environment; empty fields are unknown. ``ceph``: version of the cluster's OSDs, or of Ceph's packages
    without a cluster. ``kernel``: ``uname -r``. ``disks``: serial number, or the kernel's device name if there is none
    → model and firmware. ``nics``: hardware port → driver, its version and the firmware's. ``tuning``: hash of the
    kernel settings and disk queues that checks read."""

    ceph: str = ""
    kernel: str = ""
    fio: str = ""
    disks: dict[str, str] = msgspec.field(default_factory=dict)
    nics: dict[str, str] = msgspec.field(default_factory=dict)
    tuning: Annotated[str, Meta(pattern=r"^([0-9a-f]{12})?$")] = ""

    def known(self) -> tuple[Part, ...]:
        return tuple(part for part in Part if getattr(self, part.value))


class Change(msgspec.Struct, frozen=True):
    """One part that changed; ``then`` and ``now`` name only what differs."""

    part: Part
    then: str
    now: str


def changes(then: Fingerprint, now: Fingerprint) -> tuple[Change, ...]:
    """What differs, in the order of :class:`Part`. A disk or port that was removed, or whose firmware changed, is a
    change; one that was added is not, because no measurement depended on it."""
    rows = []
    for part in compared(then, now):
        before, after = getattr(then, part.value), getattr(now, part.value)
        if isinstance(before, dict):
            before, after = _differing(before, after)
        if before != after:
            rows.append(Change(part, before, after))
    return tuple(rows)


def compared(then: Fingerprint, now: Fingerprint) -> tuple[Part, ...]:
    """The parts known on both sides, which :func:`changes` compares."""
    return tuple(part for part in then.known() if part in now.known())


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, str]:
    names = sorted(name for name in then if now.get(name) != then[name])
    return (
        ", ".join(f"{name} ({then[name]})" for name in names),
        ", ".join(f"{name} ({now[name]})" if name in now else f"{name} gone" for name in names),
    )
