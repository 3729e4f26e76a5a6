"""``plumbline baseline show`` filtered by layer, device class or workload.

Statements about the whole document (contradictions, figures left out) are shown only without a filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from plumbline.baseline.shown import Shown, ShownBudget
from plumbline.errors import BaselineError


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter; ``None`` matches everything. ``workload`` is an id or a shell pattern."""

    layer: str | None = None
    device_class: str | None = None
    workload: str | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is filtered out."""
        return self.layer is None and self.device_class is None and self.workload is None

    def has(self, layer: str, device_class: str, workload: str) -> bool:
        """Whether the filter matches."""
        return (
            self.layer in (None, layer)
            and self.device_class in (None, device_class)
            and (self.workload is None or fnmatchcase(workload, self.workload))
        )


def narrowed(
    shown: Shown, wanted: Wanted, layers: Mapping[str, str], classes: Mapping[str, str] | None = None
) -> Shown:
    """``shown``, filtered. ``layers``: workload → layer for workloads named outside the rows; ``classes``: hardware →
    device class.

    Raises :class:`BaselineError` if nothing is left, listing what there is.
    """
    if wanted.everything:
        return shown
    classes = classes or {}

    def any_wanted(workloads: Sequence[str], device_class: str) -> bool:
        return any(wanted.has(layers[workload], device_class, workload) for workload in workloads)

    rows = tuple(row for row in shown.rows if wanted.has(row.layer, row.device_class, row.workload))
    budgets = tuple(budget for one in shown.budgets for budget in _budget(one, wanted))
    methods = tuple(one for one in shown.methods if any_wanted(one.workloads, classes.get(one.hardware, "")))
    pictures = tuple(one for one in shown.pictures if any_wanted(one.workloads, ""))
    by_layer = wanted.layer is not None and Wanted(wanted.layer) == wanted
    settings = tuple(one for one in shown.settings if by_layer and one.check.partition(".")[0] == wanted.layer)
    if not (rows or budgets or methods or pictures or settings):
        have = ", ".join(_have(shown, layers, classes)) or "no row"
        reason = f"nothing of this layer, device class and workload; it has: {have}"
        raise BaselineError(shown.name, reason)
    return msgspec.structs.replace(
        shown,
        rows=rows,
        budgets=budgets,
        methods=methods,
        pictures=pictures,
        settings=settings,
        left_out=(),
        contradictions=(),
    )


def _budget(budget: ShownBudget, wanted: Wanted) -> Iterator[ShownBudget]:
    """The budget with the links that match, if any."""
    links = tuple(link for link in budget.links if wanted.has(budget.layer, link.device_class, budget.workload))
    if links:
        yield msgspec.structs.replace(budget, links=links)


def _have(shown: Shown, layers: Mapping[str, str], classes: Mapping[str, str]) -> list[str]:
    have = {f"{row.layer} {row.device_class}" for row in shown.rows}
    have |= {f"{budget.layer} {link.device_class}" for budget in shown.budgets for link in budget.links}
    have |= {
        f"{layers[workload]} {classes.get(method.hardware, '')}".rstrip()
        for method in shown.methods
        for workload in method.workloads
    }
    return sorted(have)
