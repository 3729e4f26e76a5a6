"""Units of the layer over Ceph's producers, on captured pages."""

from __future__ import annotations

import pytest

from support.ceph_layer import group, near, promtool
from support.ceph_pages import LOAD_S, captured, growing

RUN_S = 900
"""Twice the rules' window and more."""


def test_units_are_never_mixed(tmp_path):
    """Shares stay between 0 and 1, against the captured page itself."""
    page = captured("degraded")
    used = page["ceph_pool_percent_used", (("pool_id", "1"),)]
    assert 0 < used < 1
    stored, avail = (page[f"ceph_pool_{name}", (("pool_id", "1"),)] for name in ("stored", "max_avail"))
    assert used == pytest.approx(stored / (stored + avail), rel=0.01), "a share of what it can hold, in no percent"
    cases = [
        near('plumbline:pool_used:ratio{pool="bench",pool_id="1"}', used, 60),
    ]
    promtool(tmp_path, [group("units", 15, growing(page, page, LOAD_S, 15, 10), cases)])


def test_an_image_latency_is_in_seconds(tmp_path):
    """Totals of a real cluster's image as Ceph's own announcement printed them under a help that says "msec" (ceph.io,
    "New in Nautilus: RBD Performance Monitoring"): 10 ms and 0.8 ms an operation, if and only if they are nanoseconds.
    """
    totals = {"write": (6886443555662.0, 684652.0), "read": (4371224159814.0, 5175256.0)}
    image = (("pool", "rbd"), ("namespace", ""), ("image", "image0"), ("instance", "mgr-x:9283"))
    first, last = {}, {}
    for operation, pair in totals.items():
        for suffix, value in zip(("sum", "count"), pair, strict=True):
            first[f"ceph_rbd_{operation}_latency_{suffix}", image] = 0.0
            last[f"ceph_rbd_{operation}_latency_{suffix}", image] = value
    cases = [
        near(f'plumbline:rbd_latency:mean5m{{pool="rbd",image="image0",operation="{operation}"}}', seconds, RUN_S)
        for operation, seconds in (("write", 0.010058312187303915), ("read", 0.0008446392139469042))
    ]
    promtool(tmp_path, [group("rbd", 15, growing(first, last, RUN_S, 15, 60), cases)])
