"""The spread that a tool prints beside its averages; shown with the row but not compared.

rados bench prints the standard deviation, minimum and maximum over its seconds; ping prints ``min/avg/max/mdev``.
Baselines judge averages and percentiles; a profile keeps the spread because the document prints it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from plumbline.baseline.files import Strict
from plumbline.baseline.units import Iops, Latency, Throughput
from plumbline.errors import BaselineError

Average = Iops | Latency | Throughput
_KINDS: Mapping[str, type[Average]] = {"iops": Iops, "throughput": Throughput, "latency": Latency}


class Also(Strict, frozen=True):
    """One statistic of a row's figure, as printed; ``statistic`` is the tool's own word."""

    figure: Literal["iops", "throughput", "latency"]
    statistic: Literal["min", "max", "stddev", "mdev"]
    printed: str
    line: int


def check_spread(spread: Sequence[Also], averages: Mapping[str, Average | None], *, where: str, key: str) -> None:
    """Check that each statistic appears once, in its figure's unit, with no minimum above the average or maximum below.

    ``averages``: the row's figure by name, ``None`` if it has none. Raises :class:`BaselineError`.
    """
    seen: set[tuple[str, str]] = set()
    for index, also in enumerate(spread):
        at = f"{key}[{index}]"
        if (also.figure, also.statistic) in seen:
            raise BaselineError(where, "stands twice", key=at, value=f"{also.figure} {also.statistic}")
        seen.add((also.figure, also.statistic))
        try:
            printed = _KINDS[also.figure].parse(also.printed)
        except ValueError as error:
            raise BaselineError(where, str(error), key=f"{at}.printed", value=also.printed) from None
        average = averages.get(also.figure)
        if average is None:
            continue
        if also.statistic == "min" and printed.exact > average.exact:
            raise BaselineError(where, f"is above the average {average.text}", key=f"{at}.printed", value=also.printed)
        if also.statistic == "max" and printed.exact < average.exact:
            raise BaselineError(where, f"is below the average {average.text}", key=f"{at}.printed", value=also.printed)
