"""Figures as Grafana writes them, for the units that the dashboards use.

https://github.com/grafana/grafana/blob/main/packages/grafana-data/src/valueFormats/categories.ts
"""

from __future__ import annotations

import math
import time

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_IEC = ((1024.0**4, "Ti"), (1024.0**3, "Gi"), (1024.0**2, "Mi"), (1024.0, "Ki"))
_TIMES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SUFFIXES = {"Bps": "B/s", "bps": "b/s", "pps": "p/s", "iops": "io/s", "ops": "ops/s", "hertz": "Hz"}


def text(value: float, unit: str, decimals: int | None = None) -> str:
    """One figure. An unknown unit is written behind the plain number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    match unit:
        case "s":
            return _duration(value, decimals)
        case "percentunit":
            return f"{_number(value * 100, decimals)}%"
        case "bytes":
            return _scaled(value, _IEC, "B", decimals)
        case "celsius":
            return f"{_number(value, decimals)} °C"
        case "dateTimeFromNow":
            return f"{_duration(time.time() - value / 1000, None)} ago"
        case "dateTimeAsIso":
            return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(value / 1000))
        case "none":
            return _number(value, decimals)
        case "short":
            return _scaled(value, _SI, "", decimals, gap="")
        case _ if unit in _SUFFIXES:
            return _scaled(value, _SI, _SUFFIXES[unit], decimals)
        case _:
            return f"{_number(value, decimals)} {unit}".rstrip()


def _duration(value: float, decimals: int | None) -> str:
    if value == 0:
        return "0 s"
    size, name = next(((size, name) for size, name in _TIMES if abs(value) >= size), _TIMES[-1])
    return f"{_number(value / size, decimals)} {name}"


def _scaled(
    value: float, scale: tuple[tuple[float, str], ...], suffix: str, decimals: int | None, gap: str = " "
) -> str:
    size, prefix = next(((size, name) for size, name in scale if abs(value) >= size), (1.0, ""))
    return f"{_number(value / size, decimals)}{gap}{prefix}{suffix}".rstrip()


def _number(value: float, decimals: int | None) -> str:
    """Three significant digits unless told otherwise, without zeros that say nothing."""
    if decimals is not None:
        return f"{value:.{decimals}f}"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
        shown = f"{value:.{digits}f}"
        return shown.rstrip("0").rstrip(".") if "." in shown else shown
    return f"{value:.2e}"
