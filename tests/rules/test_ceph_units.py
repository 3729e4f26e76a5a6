"""Units and joins of the layer over Ceph's producers, on captured pages."""

from __future__ import annotations

import pytest

from support.ceph_layer import asked, group, near, promtool
from support.ceph_pages import LOAD_S, Page, captured, growing, relabelled, scraped, served

RUN_S = 900
"""Twice the rules' window and more."""


def test_units_are_never_mixed(tmp_path):
    """Whole milliseconds become seconds once, shares stay between 0 and 1; both against the captured page itself."""
    page = captured("degraded")
    commit = page["ceph_osd_commit_latency_ms", (("ceph_daemon", "osd.1"),)]
    used = page["ceph_pool_percent_used", (("pool_id", "1"),)]
    assert commit >= 10
    assert 0 < used < 1
    stored, avail = (page[f"ceph_pool_{name}", (("pool_id", "1"),)] for name in ("stored", "max_avail"))
    assert used == pytest.approx(stored / (stored + avail), rel=0.01), "a share of what it can hold, in no percent"
    cases = [
        near('plumbline:osd_reported_latency:seconds{part="commit",ceph_daemon="osd.1"}', commit / 1000, 60),
        near('plumbline:osd_reported_latency:seconds{part="apply",ceph_daemon="osd.1"}', commit / 1000, 60),
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


# -- disks


def test_an_osd_is_joined_to_its_disk_whoever_says_so(tmp_path):
    """By its own host's daemon; else by the manager, whether the scrape honours its labels or not."""
    # the captured OSDs are on whole disks (here loop devices); on LVM, the usual case, `device` is the volume
    page = relabelled(served(18, "mgr-metrics"), _on_volumes)
    honoured = scraped(page, job="ceph")

    def exported(name: str, labels: dict[str, str]) -> dict[str, str]:
        if "instance" not in labels:
            return {**labels, "instance": "mgr-x:9283"}
        return {**{k: v for k, v in labels.items() if k != "instance"}, "exported_instance": labels["instance"],
                "instance": "mgr-x:9283"}  # fmt: skip

    own = {("plumbline_disk_use_info", (("device", "sdq"), ("use", "osd"), ("user", "osd.1"),
                                        ("instance", "stor01.example:10047"))): 1.0}  # fmt: skip
    several = _with_two_disks(honoured)
    tests = []
    for name, pages_ in (("honoured", honoured), ("exported", relabelled(page, exported))):
        cases = [
            asked('count(plumbline:osd_device:info{hostname="stor18",device="loop6",ceph_daemon="osd.0"})', 1, 60),
            asked("count(plumbline:osd_device:info)", 3, 60),
        ]
        tests.append(group(name, 15, growing(pages_, pages_, LOAD_S, 15, 10), cases))
    both = honoured | own
    cases = [
        asked('count(plumbline:osd_device:info{hostname="stor18",device="sdq",ceph_daemon="osd.1",'
              'instance="stor01.example:10047"})', 1, 60),
        asked("count(plumbline:osd_device:info)", 3, 60),
    ]  # fmt: skip
    tests.append(group("own", 15, growing(both, both, LOAD_S, 15, 10), cases))
    alone = [asked('count(plumbline:osd_device:info{device="sdq",ceph_daemon="osd.1"})', 1, 60)]
    tests.append(group("own alone", 15, growing(own, own, LOAD_S, 15, 10), alone))
    cases = [asked('count(plumbline:osd_device:info{device=~"dm-."})', 3, 60)]
    tests.append(group("several disks", 15, growing(several, several, LOAD_S, 15, 10), cases))
    promtool(tmp_path, tests)


def _on_volumes(name: str, labels: dict[str, str]) -> dict[str, str]:
    return {**labels, "device": f"/dev/dm-{labels['devices'][-1]}"} if name == "ceph_disk_occupation" else labels


def _with_two_disks(page: Page) -> Page:
    return relabelled(page, lambda _, labels: {**labels, **({"devices": "nvme0n1,sdc"} if "devices" in labels else {})})
