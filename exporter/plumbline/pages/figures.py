"""Numbers as people read them: SI prefixes on base units."""

from __future__ import annotations

from decimal import Decimal

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def si(value: float, unit: str, digits: int = 3) -> str:
    """``8.33 ms``, ``44.2 MB/s``, ``28 k/s``; ``unit`` is the base unit."""
    if not value:
        return f"0 {unit}" if unit != "1/s" else "0"
    scale, prefix = next(((s, p) for s, p in _SI if abs(value) >= s * 0.9995), _SI[-1])
    number = f"{value / scale:.{digits}g}"
    if unit == "1/s":
        return f"{number}{prefix}"
    return f"{number} {prefix}{unit}"


def base_text(value: float, unit: str) -> str:
    """The figure in its base unit without a prefix: ``0.00833 s``, ``4,351,590 B/s``, ``28,000 1/s``."""
    if unit == "s":
        return f"{Decimal(f'{value:.4g}'):f} s"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
