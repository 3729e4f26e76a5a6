"""Figures with the units in which they are printed: ``412us``, ``202.00 MiB/s``, ``28K IOPS``.

Baseline files and profiles never hold hand-converted numbers: the printed text is kept, and the base value (seconds,
bytes per second, operations per second) is computed here, in decimal, so that a written value reads back as the same
float. ``MB`` is 10⁶ bytes, ``MiB`` 2²⁰ (IEEE 1541), and ``Mb`` is bits.
"""

import math
import re
from decimal import Decimal
from typing import ClassVar, Self

_PRINTED = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,40})?)(?P<thousand>K?)\s{0,3}(?P<unit>[A-Za-zµμ]+(?:/s)?)")
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_PREFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_BYTES = {f"{prefix}B": Decimal(factor) for prefix, factor in (_PREFIXES | _BINARY_PREFIXES).items()}
_BITS = {f"{prefix}b": Decimal(factor) / 8 for prefix, factor in _PREFIXES.items()}


class Quantity:
    """One printed figure greater than 0: its text, number and unit as printed. Subclasses define their units. Not a
    dataclass, because msgspec would decode the fields instead of passing the printed text."""

    __slots__ = ("number", "text", "unit")

    UNITS: ClassVar[dict[str, Decimal]] = {}  # Unit → its size in base units
    WRITTEN: ClassVar[tuple[str, ...]] = ()
    """The units :meth:`of` chooses from, largest first. All are powers of ten: dividing by 2²⁰ would need twenty more
    digits to read back as the same float."""
    FORMS: ClassVar[str] = ""

    def __init__(self, text: str, number: Decimal, unit: str) -> None:
        self.text, self.number, self.unit = text, number, unit

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Quantity) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    @classmethod
    def parse(cls, text: object) -> Self:
        """Parse a figure with a known unit; anything else raises ``ValueError`` with the accepted forms."""
        match = _PRINTED.fullmatch(text) if isinstance(text, str) else None
        unit = match["thousand"] + match["unit"].replace("µ", "u").replace("μ", "u") if match else ""
        if not match or unit not in cls.UNITS:
            raise ValueError(f"expected a figure with its unit, such as {cls.FORMS}")
        number = Decimal(match["number"])
        if not number:
            raise ValueError("must be greater than 0; leave out what was not measured")
        return cls(match[0], number, unit)

    @classmethod
    def of(cls, value: float) -> Self:
        """The most readable figure for a base value between 10⁻¹⁵ and 10¹⁵; it parses back to the same float."""
        exact = Decimal(repr(float(value)))
        unit = next((name for name in cls.WRITTEN if exact >= cls.UNITS[name]), cls.WRITTEN[-1])
        number = Decimal(f"{(exact / cls.UNITS[unit]).normalize():f}")
        return cls(f"{number:f}{unit if unit in _SECONDS else f' {unit}'}", number, unit)

    @property
    def value(self) -> float:
        return float(self.exact)

    @property
    def exact(self) -> Decimal:
        """The figure in its base unit, not rounded to a float."""
        return self.number * self.UNITS[self.unit]

    @property
    def step(self) -> Decimal:
        """One unit in the last significant digit, in the base unit: ``28.20 ms`` → 10 µs, ``400 ms`` → 100 ms. Trailing
        zeros of a whole number say nothing about its precision; after a decimal point they do."""
        exponent = self.number.as_tuple().exponent
        if exponent == 0:
            exponent = self.number.normalize().as_tuple().exponent
        return Decimal((0, (1,), int(exponent))) * self.UNITS[self.unit]


_SECONDS = {name: Decimal((0, (1,), power)) for name, power in (("s", 0), ("ms", -3), ("us", -6), ("ns", -9))}


class Latency(Quantity):
    """The duration of one operation; base unit seconds."""

    __slots__ = ()
    UNITS = _SECONDS
    WRITTEN = tuple(_SECONDS)
    FORMS = "412us, 1.5ms or 2s"


class Throughput(Quantity):
    """Data per second; base unit bytes per second."""

    __slots__ = ()
    UNITS: ClassVar[dict[str, Decimal]] = {f"{unit}/s": factor for unit, factor in (_BYTES | _BITS).items()}
    WRITTEN = ("TB/s", "GB/s", "MB/s", "kB/s", "B/s")
    FORMS = "202 MB/s, 196 MiB/s or 9.4 Gb/s (MB is 10⁶ bytes, MiB 2²⁰, Mb bits)"


class Iops(Quantity):
    """Operations per second. A number without a unit is accepted too, because it is unambiguous."""

    __slots__ = ()
    UNITS: ClassVar[dict[str, Decimal]] = {"IOPS": Decimal(1), "KIOPS": Decimal(1000)}
    WRITTEN = ("IOPS",)
    FORMS = "51600 IOPS or 28K IOPS"

    @classmethod
    def parse(cls, text: object) -> Self:
        """Like :meth:`Quantity.parse`, but also accepts numbers."""
        if isinstance(text, int | float) and not isinstance(text, bool) and math.isfinite(text) and 0 < text < 1e15:
            return cls.of(text)
        return super().parse(text)


class Volume(Quantity):
    """An amount of data; base unit bytes."""

    __slots__ = ()
    UNITS = _BYTES
    WRITTEN = ("TB", "GB", "MB", "kB", "B")
    FORMS = "5368709120 B or 5 GiB"
