"""Formatting of values for people, the same on the status page, on the terminal and in the reports.

An amount of data is in binary units (TiB), a rate and all else in base units with SI prefixes (MB/s): as Grafana shows
both on the dashboards. A document's own unit stays; see :mod:`plumbline.baseline.units`.
"""

import math
from decimal import Decimal

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def si(value: float, unit: str, digits: int = 3) -> str:
    """``8.33 ms``, ``44.2 MB/s``, ``28 k/s``. ``unit`` is the base unit."""
    if not value:
        return f"0 {unit}" if unit != "1/s" else "0"
    scale, prefix = next(((s, p) for s, p in _SI if abs(value) >= s * 0.9995), _SI[-1])
    number = f"{value / scale:.{digits}g}"
    if unit == "1/s":
        return f"{number}{prefix}"
    return f"{number} {prefix}{unit}"


def size_text(size: float) -> str:
    """An amount of data in bytes → ``42.5 TiB``, ``4 KiB``, ``0 B``."""
    steps = 0
    while abs(size) >= 1023.5 and steps < len(_BINARY) - 1:
        size, steps = size / 1024, steps + 1
    return f"{size:.0f} {_BINARY[steps]}" if abs(size) >= 99.95 else f"{size:.3g} {_BINARY[steps]}"


def base_text(value: float, unit: str) -> str:
    """The value in its base unit without a prefix: ``0.00833 s``, ``4,351,590 B/s``, ``28,000 1/s``."""
    if unit == "s":
        return f"{Decimal(f'{value:.4g}'):f} s"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def duration_text(seconds: float) -> str:
    """``3 d 4 h``, ``5 h 12 min``, ``12 min``, ``40 s``: two units, without the second if it is zero."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    days, hours = divmod(hours, 24)
    if days >= 30:
        return f"{days:,} d"
    parts = ((days, "d"), (hours, "h")) if days else ((hours, "h"), (minutes, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def seconds_text(seconds: float) -> str:
    """A latency or an age, with no-break spaces: ``163 µs``, ``4.72 ms``, ``1.5 s``, ``12 min``, ``3 d 4 h``."""
    return _unbroken(si(seconds, "s") if seconds < 120 else duration_text(seconds))


def figure_text(figure: str, value: float) -> str:
    """``iops``, ``throughput`` or a latency in base units → ``4,100 IOPS``, ``202 MB/s``, ``163 µs``, unbroken."""
    if figure == "iops":
        return _unbroken(f"{value:,.0f} IOPS" if value >= 100 else f"{value:.3g} IOPS")
    return _unbroken(si(value, "B/s")) if figure == "throughput" else seconds_text(value)


def factor_text(ratio: float) -> str:
    """``1.9``, ``12``: two digits are enough for a comparison."""
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


def degradation_text(figure: str, ratio: float | None, tolerance_ratio: float | None) -> str:
    """A degradation ratio in words: ``as accepted``, ``1.9× slower``, ``2.0× less``; empty without a ratio. Without a
    tolerance nothing was accepted, so a ratio within 5 % is ``about the same``."""
    if ratio is None:
        return ""
    worse, better = ("less", "more") if figure in ("iops", "throughput") else ("slower", "faster")
    slack = tolerance_ratio or 1.05
    if ratio > slack:
        return f"{factor_text(ratio)}× {worse}" if ratio < math.inf else "nothing"
    if ratio * slack < 1:
        return f"{factor_text(1 / ratio)}× {better}" if ratio else better
    return "as accepted" if tolerance_ratio else "about the same"


def count_text(number: int, singular: str, many: str = "") -> str:
    """``1 host``, ``1,200 hosts``."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")
