"""LACP churn from ``/proc/net/bonding/<bond>``, for kernels whose netlink does not report it.

https://github.com/torvalds/linux/blob/v6.12/drivers/net/bonding/bond_procfs.c (``bond_info_show_slave``)

One block per slave, in mode 802.3ad with these lines (and more, not needed, for readers with CAP_NET_ADMIN)::

    Slave Interface: enp145s0f0
    MII Status: up
    Speed: 40000 Mbps
    Duplex: full
    Link Failure Count: 1
    Permanent HW addr: f4:1d:6b:6f:3b:97
    Slave queue ID: 0
    Aggregator ID: 1
    Actor Churn State: churned
    Partner Churn State: churned
    Actor Churned Count: 1
    Partner Churned Count: 2

This file is formatted for people, so a scrape does not read it; the state changes at most once a minute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs
from plumbline.sources.net.bonding import Churn
from plumbline.sources.net.links import label

SkipHook = Callable[[str, str], None]
_STATES = {churn.value: churn for churn in Churn}
_COUNT = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class SlaveChurn:
    """One slave's churn state. ``None``: not LACP, not attached, or older than Linux 4.2."""

    actor: Churn | None = None
    partner: Churn | None = None
    actor_times: int | None = None
    """Number of churns since the bond was created."""
    partner_times: int | None = None


Churns = Mapping[tuple[str, str], SlaveChurn]
"""Churn by (bond, slave)."""


def parse_bonding(text: str, *, source: str) -> dict[str, SlaveChurn]:
    """Parse churn by slave. Other lines (patched kernels have more) are skipped; a malformed churn line raises."""
    found: dict[str, dict[str, str]] = {}
    block: dict[str, str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        key, _, value = line.partition(": ")
        if key == "Slave Interface":
            if not value or value in found:
                raise ParseError(source, f"slave {value!r} has no name or is there twice", line=number)
            block = found[value] = {}
        elif block is not None and key in _FIELDS:
            if not _FIELDS[key](value):
                raise ParseError(source, f"{key}: {value[:40]!r}", line=number)
            block[key] = value
    return {slave: _slave(fields) for slave, fields in found.items()}


def read_churns(roots: Roots, *, on_skip: SkipHook) -> Churns:
    """Churn of the slaves of all bonds; empty without bonds. A bond that can't be read is skipped."""
    directory = roots.proc / "net" / "bonding"
    churns: dict[tuple[str, str], SlaveChurn] = {}
    for name in sysfs.entries(directory):
        path = directory / name
        data = sysfs.read_bytes(path)
        bond = label(name.encode("utf-8", "surrogateescape"))
        if data is None:
            on_skip(bond, "vanished")
            continue
        try:
            slaves = parse_bonding(label(data), source=str(path))
        except ParseError:
            on_skip(bond, "malformed")
            continue
        churns.update({(bond, slave): churn for slave, churn in slaves.items()})
    return churns


def _slave(fields: Mapping[str, str]) -> SlaveChurn:
    actor_times, partner_times = (fields.get(f"{side} Churned Count") for side in ("Actor", "Partner"))
    return SlaveChurn(
        _STATES.get(fields.get("Actor Churn State", "")),
        _STATES.get(fields.get("Partner Churn State", "")),
        None if actor_times is None else int(actor_times),
        None if partner_times is None else int(partner_times),
    )


def _is_state(value: str) -> bool:
    return value in _STATES or value == "unknown"


def _is_count(value: str) -> bool:
    return bool(_COUNT.fullmatch(value))


_FIELDS: Mapping[str, Callable[[str], bool]] = {
    "Actor Churn State": _is_state,
    "Partner Churn State": _is_state,
    "Actor Churned Count": _is_count,
    "Partner Churned Count": _is_count,
}
