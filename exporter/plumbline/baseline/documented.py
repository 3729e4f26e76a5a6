"""What a document says besides its figures: methods, settings, pictures, figures left out, contradictions.

Each keeps its place in the document, so that nothing printed is lost and only experiments become rows.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from plumbline.baseline.files import Strict, known_workload
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.errors import BaselineError


class Picture(Strict, frozen=True):
    """Something the document shows without printing figures; ``last_line`` is set if its labels span several lines."""

    where: str
    line: int
    shows: str
    last_line: int = 0
    workloads: tuple[str, ...] = ()
    """The catalogue's ids for what the picture shows, where it has them."""
    note: str = ""


class LeftOut(Strict, frozen=True):
    """Printed figures that become no row because no workload matches their experiment."""

    where: str
    line: int
    says: str
    why: str
    last_line: int = 0
    """Set if the figures span several lines."""


class Method(Strict, frozen=True):
    """How something was measured that has no series, because its results are pictures or are not given."""

    where: str
    line: int
    tool: str
    command: str
    hardware: str = ""
    conditions: str = ""
    workloads: tuple[str, ...] = ()
    last_line: int = 0
    note: str = ""


class Setting(Strict, frozen=True):
    """A setting to which the document gives a value, and what Plumbline says about it.

    ``check`` is the id of the check that judges it (``plumbline check``); if empty, ``says`` explains why none does.
    """

    setting: str
    printed: str
    of: str
    where: str
    line: int
    says: str
    check: str = ""
    last_line: int = 0


class Statement(Strict, frozen=True):
    """What the document says at one place."""

    text: str
    where: str
    line: int


class Contradiction(Strict, frozen=True):
    """Statements at several places of the document that differ, beyond single rows."""

    about: str
    says: tuple[Statement, ...]
    used: str
    why: str


def check_named(
    methods: Sequence[Method],
    pictures: Sequence[Picture],
    hardware: Container[str],
    catalogue: WorkloadCatalogue,
    *,
    where: str,
) -> dict[str, str]:
    """The layer of each named workload. Raises :class:`BaselineError` for unknown workloads and hardware."""
    layers = {}
    named = [(f"methods[{index}]", method.workloads) for index, method in enumerate(methods)]
    named += [(f"pictures[{index}]", picture.workloads) for index, picture in enumerate(pictures)]
    for part, workloads in named:
        for workload in workloads:
            layers[workload] = known_workload(workload, catalogue, where=where, key=f"{part}.workloads").layer
    for index, method in enumerate(methods):
        if method.hardware and method.hardware not in hardware:
            key = f"methods[{index}].hardware"
            raise BaselineError(where, "the profile has no such hardware", key=key, value=method.hardware)
    return layers
