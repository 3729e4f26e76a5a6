"""Orders to workers as JSON, read without the ``json`` package."""

from __future__ import annotations

import json

import pytest

from plumbline.core.light_json import parse


@pytest.mark.parametrize(
    "value",
    [
        {"targets": [[5, "sdb"], [6, "nvme0n1"]], "dev": "/dev", "sys": "/sys"},
        {"directory": '/srv/\udcff caf\u00e9 "quoted" \\ \n', "direct": True, "filesystem": ""},
        [1, -2.5, None, False, "", {}],
    ],
)
def test_what_json_writes_is_read_back(value: object) -> None:
    assert parse(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{} {}", "nonsense", '{"a": "\n"}'])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, StopIteration)):
        parse(text)
