"""The class of the devices below a pool, from its CRUSH rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.config.model import CephConfig
from plumbline.errors import ParseError
from plumbline.probes.ceph.ceph_task import class_of
from plumbline.probes.ceph.osd_lookup import ask_pool_class


def rule(*takes: str) -> dict[str, object]:
    """As ``ceph osd crush rule dump NAME`` writes it."""
    steps = [{"op": "take", "item": -1, "item_name": take} for take in takes]
    return {"rule_id": 1, "rule_name": "r", "type": 1, "steps": [*steps, {"op": "emit"}]}


@pytest.mark.parametrize(
    ("takes", "classes", "expected"),
    [
        (["default~ssd"], ["hdd", "ssd"], "ssd"),
        (["default~ssd", "default~hdd"], ["hdd", "ssd"], "mixed"),
        (["default"], ["hdd"], "hdd"),
        (["default"], ["hdd", "ssd"], "mixed"),
        (["default", "default~ssd"], ["ssd"], "ssd"),
        (["default"], [], None),
        ([], ["nvme"], "nvme"),
    ],
)
def test_the_class_of_a_pool(takes: list[str], classes: list[str], expected: str | None) -> None:
    assert class_of(rule(*takes), classes) == expected


@pytest.mark.parametrize(("said", "classes"), [(None, []), ({}, []), ({"steps": [{}]}, []), (rule("x"), None)])
def test_what_is_no_rule(said: object, classes: object) -> None:
    with pytest.raises(ParseError, match=r"^ceph osd crush: unexpected answer"):
        class_of(said, classes)


def test_without_a_cluster_it_is_not_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert ask_pool_class("p", CephConfig(conf=str(tmp_path / "none")), {}) is None
    assert "pool p: its device class is unknown" in caplog.text
