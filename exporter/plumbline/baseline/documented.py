"""What a document says beside its figures: methods, settings, pictures, what is left out, contradictions.

Each stands with its place in the document, so that nothing printed is lost and nothing is a row that is no experiment.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from plumbline.baseline.files import Strict, known_workload
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.errors import BaselineError


class Picture(Strict, frozen=True):
    """What the document shows without printing figures; ``last_line`` where its labels fill several lines."""

    where: str
    line: int
    shows: str
    last_line: int = 0
    workloads: tuple[str, ...] = ()
    """What the picture shows, where the catalogue has it."""
    note: str = ""


class LeftOut(Strict, frozen=True):
    """Figures that the document prints and that are no row, because no workload is their experiment."""

    where: str
    line: int
    says: str
    why: str
    last_line: int = 0
    """Where the figures fill several lines."""


class Method(Strict, frozen=True):
    """How something was measured whose results are pictures, or not given: there is no series to say it."""

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
    """A setting the document gives a value to, and what Plumbline says about it.

    ``check`` is the id of the check that judges it (``plumbline check``); empty: none does, ``says`` tells why.
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
    """What the document says differently at several places, beyond single rows."""

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
    """The layer of each workload named; :class:`BaselineError` for an unknown one, or a method's unknown hardware."""
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
