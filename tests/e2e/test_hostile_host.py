"""A host whose network ports have names that mean no good, made by the real kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plumbline.core.escape import visible
from support import promtool
from support.daemon import run, running
from support.inside import Inside
from support.netns import namespace
from support.programs import need

NAMES = ('"><script>', "back\\slash\\n", "\x1b[2J\x1b[31m", "'onload='x", "{{.}}<b>")


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="not root: can't make network namespaces")
def test_ports_named_like_markup_and_terminal_codes(folder: Path) -> None:
    need("ip")
    with namespace() as ns:
        for number, name in enumerate(NAMES):
            ns.ip("link", "add", "name", name, "type", "veth", "peer", "name", f"peer{number}")
        with running(folder, config={"probes": []}, prefix=["ip", "netns", "exec", ns.name]) as daemon:
            inside = Inside(ns, daemon)
            assert set(map(visible, NAMES)) <= inside.devices()
            answer = inside.get("/metrics?profile=full")
            assert not [each for each in promtool.complaints(answer.body) if "pars" in each]
            page = inside.get("/")
            assert "<script" not in page.text
            assert "<b>" not in page.text
            assert page.headers["content-security-policy"].startswith("default-src 'none'")
            for command in (["nic"], ["check"], ["check", "--all"]):
                done = run(*command, prefix=["ip", "netns", "exec", ns.name])
                assert done.stdout
                assert "\x1b" not in done.stdout + done.stderr
            assert "\x1b" not in daemon.said()
            assert "Traceback" not in daemon.said()


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="not root: the latency collector needs its capabilities")
def test_a_disk_whose_name_is_no_utf8(folder: Path, tmp_path: Path) -> None:
    """The kernel takes any byte from a driver but a slash; the rest of the tree is this host's own."""
    sys, disk = tmp_path / "sys", tmp_path / "sys" / "devices" / "bad"
    (disk / "mq").mkdir(parents=True)
    for path in ("block", "class"):
        (sys / path).mkdir()
    for path in ("kernel", "devices/system", "class/net"):
        (sys / path).symlink_to(f"/sys/{path}")
    (disk / "dev").write_text("8:240\n")
    (disk / "size").write_text("1000\n")
    (sys / "block" / os.fsdecode(b"sd\xff")).symlink_to("../devices/bad")
    with running(folder, "--path.sysfs", sys, config={"probes": []}) as daemon:
        metrics = daemon.metrics()
        assert metrics.get("plumbline_collector_success", collector="disk") == 1
        if metrics.get("plumbline_collector_success", collector="latency"):
            assert len(metrics.labels("plumbline_disk_latency_seconds_count", "device")) == 1
        assert daemon.get("/").status == 200
        assert daemon.stop()[0] == 0
