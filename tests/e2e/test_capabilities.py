"""What a daemon that root runs keeps of root's capabilities."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from plumbline.core.capabilities import NEVER_USED, Capability
from support.daemon import running

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="not root: there is nothing to give up"),
]


def sets_of(pid: int, thread: str = "") -> dict[str, int]:
    """``CapEff`` and its like of a process, or of one of its threads."""
    status = Path(f"/proc/{pid}/{thread}status").read_text()
    return {name: int(value, 16) for name, value in re.findall(r"^(Cap\w+):\s*([0-9a-f]+)$", status, re.MULTILINE)}


def test_a_daemon_of_root_drops_what_nothing_here_uses_in_every_thread(folder: Path) -> None:
    mine = sets_of(os.getpid())["CapEff"]
    with running(folder, config={"probes": [{"type": "canary", "name": "canary"}]}) as daemon:
        daemon.metrics()
        threads = [f"task/{each.name}/" for each in Path(f"/proc/{daemon.pid}/task").iterdir()]
        assert len(threads) > 3
        for thread in threads:
            held = sets_of(daemon.pid, thread)
            for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
                assert not [each for each in NEVER_USED if held[name] >> each & 1], (thread, name)
        if mine >> 8 & 1:  # SETPCAP: only then can the bounding set be narrowed
            for pid in (daemon.pid, *daemon.children()):
                assert not [each for each in NEVER_USED if sets_of(pid)["CapBnd"] >> each & 1]
        assert "that nothing here uses" in daemon.said()


def test_with_the_collectors_off_that_need_them_the_strong_ones_go_too(folder: Path) -> None:
    config = {"probes": [], "collectors": {"health": False, "pcie": False}}
    with running(folder, config=config) as daemon:
        held = sets_of(daemon.pid)["CapEff"]
        assert not [each.label for each in Capability if held >> each & 1]
