"""Where a port's numbers come from: ``plumbline nic``. Pure: a reading in, a structure out, also for JSON.

It shows each figure with its counters and their current values, each counter that looks like a loss but is left out,
with the reason, and each cause that the driver can't report: a missing series is not a zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from plumbline.errors import Unavailable
from plumbline.sources.net import drivers
from plumbline.sources.net.driverrules import RTNL, matching, terms
from plumbline.sources.net.drivers import Cell, Count
from plumbline.sources.net.network import PortReading

_CAUSES = {
    "drops": {"receive": ("ring", "fifo", "filter", "other"), "transmit": ("other",)},
    "errors": {"receive": ("crc", "length", "frame", "other"), "transmit": ("carrier", "other")},
}
_WHY = {
    "driver": "rules for this driver",
    "rtnl": "the kernel's own fields, as their documentation has them",
    "members": "repeats the counters of the links below it: see those",
}


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    """Printed and encoded, never decoded."""


class Term(_Said, frozen=True):
    """One counter in a sum; ``value`` adds up all of its queues."""

    sign: str
    counter: str
    value: int


class Figure(_Said, frozen=True):
    """One exported number. ``frames`` is the sum of the terms, never below 0."""

    family: str
    direction: str
    cause: str
    frames: int
    terms: tuple[Term, ...]
    whole_port: bool
    """The other functions of a shared port show the same frames."""


class LeftOut(_Said, frozen=True):
    """A counter of the port that is left out of the figures."""

    counter: str
    value: int
    why: str


class Ring(_Said, frozen=True):
    """Descriptors: current and maximum."""

    ring: str
    entries: int | None
    maximum: int | None


class Pause(_Said, frozen=True):
    """Flow control. ``source``: ``netlink``, ``driver`` (the driver table), empty: the frames are not counted."""

    autonegotiate: bool | None
    receive: bool | None
    transmit: bool | None
    source: str
    receive_frames: int | None
    transmit_frames: int | None


class Explanation(_Said, frozen=True):
    """One device."""

    device: str
    driver: str
    firmware: str
    bus: str
    master: str
    drop_source: str
    why: str
    source: str
    """Where the counters' meanings are documented."""
    figures: tuple[Figure, ...]
    not_told: tuple[str, ...]
    """Causes that this port's driver can't report; they have no series. Software links have no such causes."""
    left_out: tuple[LeftOut, ...]
    pause: Pause | None
    rings: tuple[Ring, ...]


def explain(reading: PortReading) -> Explanation:
    """Explain the numbers of one link."""
    info = reading.info
    figures = tuple(_figures(reading))
    known = info.driver if info else reading.link.kind or "loopback"
    why = _WHY[reading.drop_source]
    if info is not None and reading.drop_source == "rtnl":
        why = f"no rules for the driver {known or 'without a name'}: {why}"
    return Explanation(
        device=reading.link.name,
        driver=known,
        firmware=info.firmware if info else "",
        bus=info.bus if info else "",
        master=reading.master,
        drop_source=reading.drop_source,
        why=why,
        source=" ".join(reading.rules.source.split()),
        figures=figures,
        not_told=tuple(_not_told(figures)) if info else (),
        left_out=tuple(_left_out(reading)),
        pause=_pause(reading),
        rings=tuple(_rings(reading)),
    )


def pick(
    readings: Sequence[PortReading], device: str | None, skipped: Sequence[tuple[str, str]] = ()
) -> tuple[PortReading, ...]:
    """All of them, or the one of that name; :class:`Unavailable` names the existing ones, or why reading failed."""
    if device is None:
        return tuple(readings)
    found = tuple(reading for reading in readings if reading.link.name == device)
    if not found:
        for name, reason in skipped:
            if name == device:
                raise Unavailable(
                    f"{device}: its driver can't be asked ({reason}); `ip -s link show {device}` still can"
                )
        names = ", ".join(sorted(reading.link.name for reading in readings)) or "none"
        raise Unavailable(f"no network device {device}; there are: {names}")
    return found


def _figures(reading: PortReading) -> Iterator[Figure]:
    loss = drivers.losses(reading.plan, reading.values, reading.link.stats)
    for family, cells, counts in (
        ("drops", reading.plan.drops, loss.drops),
        ("errors", reading.plan.errors, loss.errors),
    ):
        frames = {count[:2]: count.frames for count in counts}
        for cell in cells:
            if (cell.direction, cell.cause) in frames:
                yield _figure(reading, family, cell, frames[cell.direction, cell.cause])
    if reading.pause_source == "driver":
        for cell, count in _paired(reading.plan.pause, loss.pause):
            yield _figure(reading, "pause", cell, count.frames)


def _paired(cells: Sequence[Cell], counts: Sequence[Count]) -> Iterator[tuple[Cell, Count]]:
    by_direction = {count.direction: count for count in counts}
    for cell in cells:
        if cell.direction in by_direction:
            yield cell, by_direction[cell.direction]


def _figure(reading: PortReading, family: str, cell: Cell, frames: int) -> Figure:
    parts = tuple(
        Term(sign=sign, counter=name.removesuffix("?"), value=counted)
        for sign, name in terms(cell.form)
        if (counted := drivers.value(name, reading.names, reading.values, reading.link.stats)) is not None
    )
    return Figure(
        family=family,
        direction=cell.direction,
        cause=cell.cause,
        frames=frames,
        terms=parts,
        whole_port=any(part.counter in reading.rules.port_wide for part in parts),
    )


def _not_told(figures: Sequence[Figure]) -> Iterator[str]:
    told = {(figure.family, figure.direction, figure.cause) for figure in figures}
    for family, directions in _CAUSES.items():
        for direction, causes in directions.items():
            for cause in causes:
                if (family, direction, cause) not in told:
                    yield f"{direction} {family}: {cause}"


def _left_out(reading: PortReading) -> Iterator[LeftOut]:
    for name, why in reading.rules.not_losses.items():
        if name.startswith(RTNL) or matching(name, reading.names):
            counted = drivers.value(name, reading.names, reading.values, reading.link.stats)
            if counted is not None:
                yield LeftOut(counter=name, value=counted, why=why)


def _pause(reading: PortReading) -> Pause | None:
    state = reading.pause
    if state is None:
        return None
    return Pause(
        autonegotiate=state.config.autonegotiate,
        receive=state.config.receive,
        transmit=state.config.transmit,
        source=reading.pause_source,
        receive_frames=state.receive_frames,
        transmit_frames=state.transmit_frames,
    )


def _rings(reading: PortReading) -> Iterator[Ring]:
    sizes = reading.rings
    if sizes is None:
        return
    for ring, entries, maximum in (
        ("rx", sizes.rx, sizes.rx_max),
        ("rx_mini", sizes.rx_mini, sizes.rx_mini_max),
        ("rx_jumbo", sizes.rx_jumbo, sizes.rx_jumbo_max),
        ("tx", sizes.tx, sizes.tx_max),
    ):
        if entries is not None or maximum is not None:
            yield Ring(ring=ring, entries=entries, maximum=maximum)
