"""How long tasks waited for CPU, I/O or memory: pressure stall information, ``/proc/pressure``.

https://github.com/torvalds/linux/blob/v6.12/Documentation/accounting/psi.rst (Linux 4.20), one file per resource::

    some avg10=0.82 avg60=5.40 avg300=9.92 total=2415749727
    full avg10=0.25 avg60=2.55 avg300=6.59 total=1022205557

``total`` is microseconds since boot. The averages are not used: Prometheus computes its own, over any window.
"""

import re

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs

RESOURCES = ("cpu", "io", "irq", "memory")
_LINE = re.compile(r"(some|full) (?:avg[0-9]+=[0-9]+\.[0-9]+ )*total=([0-9]{1,20})")


class Pressure(Struct, frozen=True):
    """One resource, in microseconds since boot. ``None``: the kernel has no such line (``irq`` has no ``some``)."""

    resource: str
    some_us: int | None = None  # At least one task waited for it
    full_us: int | None = None  # All non-idle tasks waited for it at once


class PressureReading(tuple[Pressure, ...]):
    """All resources that the kernel accounts."""


def parse_pressure(text: str, resource: str, *, source: str) -> Pressure:
    """Parse one file; unknown lines are skipped. :class:`ParseError` for a ``some`` or ``full`` without a total."""
    totals: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith(("some ", "full ")):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise ParseError(source, f"not a pressure line: {line[:80]!r}", line=number)
        totals[match[1]] = int(match[2])
    return Pressure(resource, totals.get("some"), totals.get("full"))


def read_pressure(roots: Roots) -> PressureReading:
    """All resources that the kernel accounts; :class:`Unavailable` if there are none (``psi=0``, or before 4.20)."""
    pressures = []
    for resource in RESOURCES:
        path = roots.proc / "pressure" / resource
        data = sysfs.read_bytes(path)  # EOPNOTSUPP under psi=0; irq needs Linux 6.1 and its own option
        if data is not None:
            pressures.append(parse_pressure(data.decode("ascii", "replace"), resource, source=str(path)))
    if not pressures:
        raise Unavailable("no readable file in /proc/pressure; it needs Linux 4.20 with CONFIG_PSI, and not psi=0")
    return PressureReading(pressures)
