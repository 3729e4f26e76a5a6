"""The cluster as samples."""

from __future__ import annotations

from plumbline.collectors.ceph import CHECK, FLAG, GATE_OPEN, LOCK_HELD, REACHABLE, samples
from plumbline.probes.ceph.cluster import ClusterView


def test_open_and_closed_gates() -> None:
    view = ClusterView(
        True, {"recovery": "1 PG"}, flags=(("", "noout"), ("stor02", "noout")), checks=(("OSD_DOWN", "HEALTH_WARN", 3),)
    )
    found = {(spec, labels): value for spec, labels, value in samples(view)}
    assert found == {
        (REACHABLE, ()): 1,
        (GATE_OPEN, ("maintenance",)): 1,
        (GATE_OPEN, ("full",)): 1,
        (GATE_OPEN, ("recovery",)): 0,
        (GATE_OPEN, ("health",)): 1,
        (FLAG, ("", "noout")): 1,
        (FLAG, ("stor02", "noout")): 1,
        (CHECK, ("OSD_DOWN", "HEALTH_WARN")): 3,
        (LOCK_HELD, ()): 0,
    }


def test_what_does_not_answer_has_no_gates() -> None:
    found = {(spec, labels): value for spec, labels, value in samples(ClusterView(False, lock_held=True))}
    assert found == {(REACHABLE, ()): 0, (LOCK_HELD, ()): 1}
