"""A figure that a tool or firmware reports passes a range before anything uses it."""

import pytest
from msgspec import Struct

from plumbline.sources.disk import smartctl
from plumbline.sources.disk.nvme_smart import Limits, parse_health
from plumbline.sources.plausible import COUNT, LIMIT_CELSIUS, PERCENT
from support.nvme import OCTETS, USED, smart_page

PLACES = {"exit_status", "id", "offset", "number"}
"""What finds a figure in smartctl's answer; whoever uses another number in it has to name its range."""


def test_no_number_of_smartctl_can_be_used_without_a_range() -> None:
    """Where a field is an ``object``, mypy lets nothing but a range have it."""
    structs = [kind for kind in vars(smartctl).values() if isinstance(kind, type) and issubclass(kind, Struct)]
    answers = [kind for kind in structs if kind.__module__ == smartctl.__name__]
    assert len(answers) > 10
    numbers = [
        f"{kind.__name__}.{name}: {annotation}"
        for kind in answers
        for name, annotation in kind.__annotations__.items()
        if name not in PLACES and any(word in str(annotation) for word in ("int", "float", "Place", "Any"))
    ]
    assert not numbers


def test_no_figure_of_nvme_is_believed_with_all_bits_set() -> None:
    believed = []
    for name, (first, last) in OCTETS.items():
        if name == "critical_warning":
            continue
        ones = 2 ** (8 * (last - first + 1)) - 1
        usual = parse_health(smart_page(USED), Limits(343, 353), source="nvme0")
        health = parse_health(smart_page(USED | {name: ones}), Limits(343, 353), source="nvme0")
        changed = {field for field in health.__struct_fields__ if getattr(health, field) != getattr(usual, field)}
        believed += [f"{name}: {field}" for field in changed if getattr(health, field) not in {None, 255}]
    assert not believed
    silly = parse_health(smart_page(USED), Limits(2**16 - 1, 273 + 13), source="nvme0")
    assert (silly.warning_celsius, silly.critical_celsius) == (None, None)


@pytest.mark.parametrize("value", [2**31 - 1, 2**32 - 1, 2**48 - 1, 2**63 - 1, 2**64 - 1, -1, True, None, "7", 7.0])
def test_what_is_no_count(value: object) -> None:
    assert COUNT.of(value) is None


def test_both_ends_belong_to_a_range() -> None:
    assert [PERCENT.of(value) for value in (-1, 0, 100, 101)] == [None, 0, 100, None]
    assert [LIMIT_CELSIUS.of(value) for value in (39, 40, 110, 111)] == [None, 40, 110, None]
