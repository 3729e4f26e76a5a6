"""What a document says besides its figures: methods, settings, pictures, figures left out, contradictions.

Each keeps its place in the document, so that nothing printed is lost and only experiments become rows. ``last_line`` is
set where something spans several lines.
"""

from collections.abc import Container, Sequence

from plumbline.baseline.files import Place, Printed
from plumbline.config.types import Strict


class Picture(Printed, frozen=True):
    """Something the document shows without printing figures; ``workloads`` are the catalogue's ids for it."""

    shows: str
    last_line: int = 0
    workloads: tuple[str, ...] = ()
    note: str = ""


class LeftOut(Printed, frozen=True):
    """Printed figures that become no row because no workload matches their experiment."""

    says: str
    why: str
    last_line: int = 0


class Method(Printed, frozen=True):
    """How something was measured that has no series, because its results are pictures or are not given."""

    tool: str
    command: str
    hardware: str = ""
    conditions: str = ""
    workloads: tuple[str, ...] = ()
    last_line: int = 0
    note: str = ""


class Setting(Printed, frozen=True):
    """A setting to which the document gives a value, and what Plumbline says about it. ``check`` is the id of the check
    that judges it (``plumbline check``); if empty, ``says`` explains why none does."""

    setting: str
    printed: str
    of: str
    says: str
    check: str = ""
    last_line: int = 0


class Statement(Printed, frozen=True):
    text: str


class Contradiction(Strict, frozen=True):
    """Statements at several places of the document that differ, beyond single rows."""

    about: str
    says: tuple[Statement, ...]
    used: str
    why: str


def check_named(
    methods: Sequence[Method], pictures: Sequence[Picture], hardware: Container[str], place: Place
) -> dict[str, str]:
    """The layer of each named workload. Raises :class:`BaselineError` for unknown workloads and hardware."""
    layers = {}
    parts: tuple[tuple[str, Sequence[Method | Picture]], ...] = (("methods", methods), ("pictures", pictures))
    for part, shown in parts:
        for index, figure in enumerate(shown):
            for name in figure.workloads:
                layers[name] = place.at(f"{part}[{index}]").workload(name, "workloads").layer
    for index, method in enumerate(methods):
        if method.hardware and method.hardware not in hardware:
            raise place.at(f"methods[{index}]").error("hardware", "the profile has no such hardware", method.hardware)
    return layers
