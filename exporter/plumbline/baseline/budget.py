"""A documented latency budget: where the time of one operation goes, stage by stage, for each kind of link.

A budget is not a workload row: it breaks down one operation. The loader checks the sum, so that a panel can stack the
stages and draw the total as a line over them. A stage that the operation passes several times is printed once::

    total 2565 us = 2 x network 182 us + device 54 us + 5 x ack 26 us + code 2017 us      (1 GbE, 4 KiB)
"""

from collections.abc import Container, Iterator
from decimal import Decimal
from typing import Annotated

import msgspec

from plumbline.baseline.files import Place
from plumbline.baseline.units import Latency
from plumbline.config.types import Strict
from plumbline.config.workloads import LAYERS


class Stage(Strict, frozen=True):
    """One stage, which an operation passes ``times`` times; ``printed`` is the heading of its column. ``workload`` is
    the workload with which Plumbline measures it live; empty if there is none."""

    name: str
    layer: str
    printed: str
    times: Annotated[int, msgspec.Meta(ge=1)] = 1
    workload: str = ""
    note: str = ""


class Link(Strict, frozen=True):
    """One row: a kind of link, the total, and one pass through each stage, as printed."""

    link: str
    device_class: str
    line: int
    total: Latency
    stages: dict[str, Latency]
    breaks: str = ""  # Why the total differs from the sum of the stages; required where it does and refused elsewhere


class Budget(Strict, frozen=True):
    """The breakdown of one operation of one workload, for several links."""

    about: str
    where: str
    line: int
    hardware: str
    tool: str
    command: str
    workload: str
    stages: tuple[Stage, ...]
    links: tuple[Link, ...]
    conditions: str = ""
    note: str = ""


class Part(msgspec.Struct, frozen=True):
    """One stage of one link in base units: ``seconds`` over all passes, ``share_ratio`` of the total."""

    stage: Stage
    printed: Latency
    seconds: float
    share_ratio: float


def parts(budget: Budget, link: Link) -> Iterator[Part]:
    for stage in budget.stages:
        printed = link.stages[stage.name]
        exact = printed.exact * stage.times
        yield Part(stage, printed, float(exact), float(exact / link.total.exact))


def over(budget: Budget, link: Link) -> float:
    """Seconds by which the stages exceed the printed total; negative: time that no stage accounts for."""
    return float(_sum(budget, link) - link.total.exact)


def check_budget(budget: Budget, hardware: Container[str], place: Place) -> None:
    """Raise :class:`BaselineError` for an unknown name, a missing figure, or a wrong sum without an explanation."""
    if budget.hardware not in hardware:
        raise place.error("hardware", "the profile has no such hardware", budget.hardware)
    names = [stage.name for stage in budget.stages]
    if len(set(names)) < len(names):
        raise place.error("stages", "two stages have the same name", ", ".join(names))
    for number, stage in enumerate(budget.stages):
        at = place.at(f"stages[{number}]")
        if stage.layer not in LAYERS:
            raise at.error("layer", f"one of {', '.join(LAYERS)}", stage.layer)
        if stage.workload:
            at.workload(stage.workload)
    place.workload(budget.workload)
    classes = [link.device_class for link in budget.links]
    if len(set(classes)) < len(classes):
        raise place.error("links", "two links have the same device_class", ", ".join(classes))
    for number, link in enumerate(budget.links):
        at = place.at(f"links[{number}]")
        if set(link.stages) != set(names):
            raise at.error("stages", f"expected each of: {', '.join(names)}", ", ".join(link.stages))
        _check_sum(budget, link, at)


def _check_sum(budget: Budget, link: Link, place: Place) -> None:
    """Each figure may be off by half of its last digit, as many times as it is counted."""
    slack = link.total.step / 2 + sum(link.stages[stage.name].step / 2 * stage.times for stage in budget.stages)
    off = _sum(budget, link) - link.total.exact
    if abs(off) > slack and not link.breaks:
        side = "above" if off > 0 else "below"
        reason = f"the stages are {Latency.of(float(abs(off))).text} {side} the total {link.total.text}; say why"
        raise place.error("breaks", reason)
    if abs(off) <= slack and link.breaks:
        raise place.error("breaks", "the stages add up to the total", link.breaks)


def _sum(budget: Budget, link: Link) -> Decimal:
    return sum((link.stages[stage.name].exact * stage.times for stage in budget.stages), Decimal(0))
