"""What Ceph 16.2 said of its map, as the task that asks gives it on (``tests/fixtures/ceph-16.2-map``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "ceph-16.2-map"


def said(name: str) -> Any:
    """One answer, decoded."""
    return json.loads((_FIXTURES / f"{name}.json").read_text())


def answers(state: str = "") -> dict[str, Any]:
    """All answers by their commands; ``state``: ``-out`` or ``-stray``, else healthy."""
    use = {"osd df": said(f"osd-df{state}"), "df": said("df")}
    return {
        "osd tree": said(f"osd-tree{state}"),
        "osd dump": said("osd-dump"),
        "osd crush rule dump": said("osd-crush-rule-dump"),
        "mon dump": {"mons": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
        "use": use,
        "unread": "",
    }
