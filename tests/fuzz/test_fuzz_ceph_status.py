"""Whatever the monitors say: a status or one clear error, and gates that are closed for a reason."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plumbline.commands.ceph.setup import IMAGES, OBJECTS, first_foreign
from plumbline.config.model import GatesConfig
from plumbline.errors import ParseError
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.ceph.ceph_status import GATES, closed, parse_status, wants_detail

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
NAMES = st.sampled_from(["OSD_FULL", "POOL_FULL", "OSDMAP_FLAGS", "OSD_FLAGS", "OSD_DOWN", "x"])
CHECK = st.fixed_dictionaries(
    {
        "severity": st.sampled_from(["HEALTH_WARN", "HEALTH_ERR", "?"]) | JSON,
        "summary": JSON | st.just({"message": "m"}),
    },
    optional={"muted": JSON, "detail": JSON},
)
STATUS = st.fixed_dictionaries(
    {
        "health": JSON | st.fixed_dictionaries({"checks": JSON | st.dictionaries(NAMES, CHECK)}),
        "pgmap": JSON | st.fixed_dictionaries({"pgs_by_state": JSON}, optional={"misplaced_objects": JSON}),
    }
)


@given(JSON | STATUS, JSON | st.fixed_dictionaries({"checks": st.dictionaries(NAMES, CHECK)}))
def test_any_status(status: Any, detail: Any) -> None:
    wants_detail(status)
    with contextlib.suppress(ParseError):
        shut = closed(parse_status(status, detail), GatesConfig(), pools=("p",))
        assert all(why for why in shut.values())
        assert list(shut) == [gate for gate in GATES if gate in shut]


@given(st.sampled_from(["status", "status-osd-down", "status-recovery"]), st.data())
def test_a_real_status_with_a_part_replaced(name: str, data: st.DataObject) -> None:
    fixtures = Path(__file__).parents[1] / "fixtures" / "ceph-16.2"
    status = json.loads((fixtures / f"{name}.json").read_text())
    part = data.draw(st.sampled_from(["health", "pgmap"]))
    key = data.draw(st.sampled_from(sorted(status[part])))
    status[part][key] = data.draw(JSON)
    with contextlib.suppress(ParseError):
        closed(parse_status(status), GatesConfig())


@given(st.sampled_from([OBJECTS, IMAGES]), st.lists(st.text()))
def test_any_listing(kind: str, lines: list[str]) -> None:
    first_foreign(kind, lines)


@given(st.text())
def test_any_configuration_of_ceph(text: str) -> None:
    from plumbline.probes.ceph.ceph_access import _keyrings

    assert all(_keyrings(text, CephAccess("", "client.a", None, "", "", 1).user))
