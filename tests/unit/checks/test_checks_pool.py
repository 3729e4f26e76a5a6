"""Copies of pools: three, and none served from the last."""

from __future__ import annotations

import pytest

from plumbline.checks.model import judge
from plumbline.checks.pool import CHECKS
from plumbline.sources.ceph.cephmap import Pool, Rule

RULE = Rule("default", "", "host")


@pytest.mark.parametrize(
    ("size", "minimum", "now"),
    [
        (3, 2, None),
        (4, 2, None),
        (3, 1, "ceph osd pool set 'my vms' min_size 2"),
        (2, 2, "ceph osd pool set 'my vms' size 3"),
        (2, 1, "ceph osd pool set 'my vms' size 3 && ceph osd pool set 'my vms' min_size 2"),
        (1, 1, "ceph osd pool set 'my vms' size 3 && ceph osd pool set 'my vms' min_size 2"),
    ],
)
def test_a_replicated_pool(size: int, minimum: int, now: str | None) -> None:
    (finding,) = judge(CHECKS, (Pool(4, "my vms", "replicated", RULE, size, minimum, 3.0),))
    assert (finding.subject, finding.actual) == ("pool my vms", f"size {size}, min_size {minimum}")
    assert (finding.fix.now if finding.fix else None) == now
    assert finding.met is (now is None)


def test_erasure_coded_pools_have_other_rules() -> None:
    assert judge(CHECKS, (Pool(4, "archive", "erasure", RULE, 3, 2, 1.5),)) == ()
