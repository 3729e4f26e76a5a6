"""``plumbline nic``: where a network device's numbers come from, as text and as JSON.

It shows each figure with its counters and their current values, each counter that looks like a loss but is left out,
with the reason, and each cause that the driver can't report: a missing series is not a zero.
"""

import argparse
from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console

from plumbline.commands.node import read_ports
from plumbline.commands.shared import complain, show
from plumbline.core.console import line, table
from plumbline.errors import Unavailable, UnknownName
from plumbline.sources.net import drivers
from plumbline.sources.net.drivers import RTNL, Cell, matching, terms
from plumbline.sources.net.network import PortReading

# By family and direction.
_CAUSES = {
    ("drops", "receive"): ("ring", "fifo", "filter", "other"),
    ("drops", "transmit"): ("other",),
    ("errors", "receive"): ("crc", "length", "frame", "other"),
    ("errors", "transmit"): ("carrier", "other"),
}
_WHY = {
    "driver": "rules for this driver",
    "rtnl": "the kernel's own fields, as their documentation has them",
    "members": "repeats the counters of the links below it: see those",
}


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One counter in a sum; ``value`` adds up all of its queues."""

    sign: str
    counter: str
    value: int


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One exported number. ``frames`` is the sum of the terms, never below 0."""

    family: str
    direction: str
    cause: str
    frames: int
    terms: tuple[Term, ...]
    whole_port: bool  # The other functions of a shared port show the same frames


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    counter: str
    value: int
    why: str


class Ring(msgspec.Struct, frozen=True, kw_only=True):
    ring: str
    entries: int | None
    maximum: int | None


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Flow control. ``source``: ``netlink``, ``driver`` (the driver table), empty: the frames are not counted."""

    autonegotiate: bool | None
    receive: bool | None
    transmit: bool | None
    source: str
    receive_frames: int | None
    transmit_frames: int | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    device: str
    driver: str
    firmware: str
    bus: str
    master: str
    drop_source: str
    why: str
    source: str  # Where the counters' meanings are documented
    figures: tuple[Figure, ...]
    not_told: tuple[str, ...]
    """Causes that this port's driver can't report; they have no series. Software links have no such causes."""
    left_out: tuple[LeftOut, ...]
    pause: Pause | None
    rings: tuple[Ring, ...]


def run(options: argparse.Namespace) -> int:
    if options.fabric:
        from plumbline.commands import fabric  # noqa: PLC0415  (on demand alone)

        return fabric.run(options)
    readings, skipped = read_ports(config_file=options.config_file)
    ports = [explain(reading) for reading in pick(readings, options.device, skipped)]
    show(options, ports, lambda console: print_ports(console, ports))
    for device, reason in skipped:
        complain(f"left out: {device}: its driver can't be queried ({reason})")
    return 0


def explain(reading: PortReading) -> Explanation:
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
    """All, or the one of that name. :class:`UnknownName` lists them; :class:`Unavailable`: reading it failed."""
    picked = tuple(reading for reading in readings if device in (None, reading.link.name))
    if device is not None and not picked:
        if reason := dict(skipped).get(device):
            raise Unavailable(f"{device}: its driver can't be queried ({reason}); see `ip -s link show {device}`")
        names = ", ".join(sorted(reading.link.name for reading in readings)) or "none"
        raise UnknownName(f"no network device {device}; there are: {names}")
    return picked


def _figures(reading: PortReading) -> Iterator[Figure]:
    loss = drivers.losses(reading.plan, reading.values, reading.link.stats)
    for family, cells, counts in (
        ("drops", reading.plan.drops, loss.drops),
        ("errors", reading.plan.errors, loss.errors),
        ("priority pause", reading.plan.priority_pause, loss.priority_pause),
    ):
        frames = {count[:2]: count.frames for count in counts}
        for cell in cells:
            if (cell.direction, cell.cause) in frames:
                yield _figure(reading, family, cell, frames[cell.direction, cell.cause])
    if reading.pause_source == "driver":
        by_direction = {count.direction: count.frames for count in loss.pause}
        for cell in reading.plan.pause:
            if cell.direction in by_direction:
                yield _figure(reading, "pause", cell, by_direction[cell.direction])


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
    reported = {(figure.family, figure.direction, figure.cause) for figure in figures}
    for (family, direction), causes in _CAUSES.items():
        for cause in causes:
            if (family, direction, cause) not in reported:
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
    for ring in ("rx", "rx_mini", "rx_jumbo", "tx") if reading.rings else ():
        entries, maximum = getattr(reading.rings, ring), getattr(reading.rings, f"{ring}_max")
        if entries is not None or maximum is not None:
            yield Ring(ring=ring, entries=entries, maximum=maximum)


def print_ports(console: Console, ports: Sequence[Explanation]) -> None:
    """Each figure with the counters behind it, then what is left out and why."""
    for position, port in enumerate(ports):
        if position:
            line(console, "")
        facts = [port.driver, port.firmware and f"firmware {port.firmware}", port.bus and f"bus {port.bus}"]
        facts.append(port.master and f"in {port.master}")
        line(console, f"{port.device}: {', '.join(filter(None, facts))}", "bold")
        line(console, f"  drop_source {port.drop_source}: {port.why}")
        line(console, f"  read in: {port.source}")
        rows = [
            (
                f"  {figure.family}",
                figure.direction,
                figure.cause,
                str(figure.frames),
                _sum_of(figure) + (" (whole port)" if figure.whole_port else ""),
            )
            for figure in port.figures
        ]
        if rows:
            table(console, ("  Family", "Direction", "Cause", "Frames", "From"), rows)
        if port.not_told:
            line(console, f"  no series, this driver does not report: {', '.join(port.not_told)}")
        for left in port.left_out:
            line(console, f"  left out: {left.counter} {left.value} ({left.why})")
        if port.pause:
            line(console, f"  flow control: {_flow_control(port.pause)}")
        if port.rings:
            rings = (f"{ring.ring} {_or_unknown(ring.entries)} of {_or_unknown(ring.maximum)}" for ring in port.rings)
            line(console, f"  rings: {', '.join(rings)}")


def _sum_of(figure: Figure) -> str:
    parts = "".join(f" {term.sign} {term.counter} {term.value}" for term in figure.terms)
    return parts.removeprefix(" + ") or "nothing"


def _flow_control(pause: Pause) -> str:
    words = {True: "on", False: "off", None: "unknown"}
    frames = {
        "netlink": "counted by the kernel (netlink)",
        "driver": "counted by the driver (see pause above)",
        "": "not counted by anyone",
    }[pause.source]
    if pause.source == "netlink":
        frames += f": {_or_unknown(pause.receive_frames)} received, {_or_unknown(pause.transmit_frames)} transmitted"
    settings = ("receive", pause.receive), ("transmit", pause.transmit), ("autonegotiation", pause.autonegotiate)
    return ", ".join(f"{name} {words[value]}" for name, value in settings) + f"; frames {frames}"


def _or_unknown(number: int | None) -> str:
    return "unknown" if number is None else str(number)
