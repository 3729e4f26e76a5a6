"""The contents of ``plumbline baseline list`` and ``show`` as types, from which tables and ``--json`` are made."""

import msgspec

from plumbline.baseline.documented import Contradiction, LeftOut, Method, Picture, Setting
from plumbline.baseline.model import Source


class Summary(msgspec.Struct, frozen=True):
    """One profile or file: a line of ``list``. ``where`` is the file, empty for a shipped profile. ``device_classes``
    counts entries. ``judges``: device classes that it judges on this node, or may judge: measured and site baselines
    judge all of theirs. ``holds`` counts what a profile has besides its rows, such as budgets."""

    name: str
    source: Source
    title: str
    where: str
    entries: int
    device_classes: dict[str, int]
    judges: tuple[str, ...]
    recorded: str = ""
    holds: dict[str, int] = {}


class Figure(msgspec.Struct, frozen=True):
    """One figure, as printed and in its base unit (seconds, operations or bytes per second)."""

    figure: str
    printed: str
    base: float
    unit: str


class ShownRow(msgspec.Struct, frozen=True):
    """One operation of one workload. ``series``: the row's figure or table, and the hardware. Without ``judges`` it is
    only shown (the document contradicts itself by more than a factor of two). ``breaches``: the arithmetic
    contradictions within the row, which the notes explain. ``level``: how restless it was, and the load meanwhile."""

    layer: str
    device_class: str
    workload: str
    operation: str
    config_hash: str
    figures: tuple[Figure, ...]
    tolerance_ratio: float | None = None
    level: str = ""
    series: str = ""
    tool: str = ""
    command: str = ""
    line: int | None = None
    judges: bool = True
    breaches: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class ShownStage(msgspec.Struct, frozen=True):
    """One stage of a budget for one link: one pass as printed, and ``seconds`` over all ``times``."""

    stage: str
    layer: str
    printed: str
    times: int
    seconds: float
    share_ratio: float


class ShownLink(msgspec.Struct, frozen=True):
    """One link of a budget. ``over_seconds``: how much the stages exceed the printed total; 0 if they add up."""

    link: str
    device_class: str
    line: int
    total: Figure
    stages: tuple[ShownStage, ...]
    over_seconds: float
    breaks: str = ""


class ShownBudget(msgspec.Struct, frozen=True):
    about: str
    where: str
    workload: str
    layer: str
    hardware: str
    tool: str
    command: str
    links: tuple[ShownLink, ...]
    notes: tuple[str, ...]
    stage_notes: dict[str, str]


class Shown(msgspec.Struct, frozen=True):
    """One profile or file, whole or filtered."""

    name: str
    source: Source
    title: str
    facts: dict[str, str]
    rows: tuple[ShownRow, ...]
    pictures: tuple[Picture, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    budgets: tuple[ShownBudget, ...] = ()
    settings: tuple[Setting, ...] = ()
    methods: tuple[Method, ...] = ()
