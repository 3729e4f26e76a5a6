"""Ceph gone for a day and back, compressed: all of it hangs, then the monitor is dead; the daemon goes on asking.

What a day without the cluster holds at the daemon's own pace: a canary's worker that can't connect is started again a
minute after it gave up (5 s), so 86,400 / 65 = 1,330 times; the map is asked for 1,440 times, and a session for the
gates that fails is begun 1,110 times (a minute and 18 s). A failed attempt takes librados a second, its shortest limit,
and 0.1 s of CPU, so a day's 3,900 can't be pressed into half a minute. Here a worker is started again at once, which
the daemon looks for each second, so every other second instead of every 65, and twelve canaries do what one does on a
node: about 5 starts a second. :data:`GONE_S` seconds are 80 minutes' starts, ``PLUMBLINE_CEPH_GONE_S=270`` a day's; the
map and the gates' state are asked for thirty times as often as in earnest. What is kept of a failed attempt shows long
before: there are several times more of them than the bounds leave room for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import pytest

from plumbline.config.model import CephConfig
from plumbline.probes.ceph.ceph_access import NAMESPACE
from plumbline.probes.ceph.cluster import LOCK_OBJECT
from support.ceph_cluster import CephCluster
from support.ceph_probes import set_up
from support.daemon import Daemon, alive, command_line, eventually, running
from support.scraped import Scrape

pytestmark = [pytest.mark.integration, pytest.mark.ceph]

GONE_S = float(os.environ.get("PLUMBLINE_CEPH_GONE_S", "15"))
WITHIN_S = 120.0
PAGE_S = 5.0
"""Half of what Prometheus waits; on a quiet machine a page takes some hundredths."""
OSDS = ("osd.0", "osd.1", "osd.2")
STEADY, BENCH = "steady", "bench"
RESTLESS = tuple(f"restless-{number}" for number in range(12))
HURRIED = """
import sys
from plumbline.background import ceph
from plumbline.daemon import wiring
from plumbline.core.backoff import Backoff
from plumbline.probes.ceph.cluster import CephGuard

Backoff.FIRST_S = Backoff.LAST_S = 0.0
wiring.CEPH_EVERY_S = ceph.CEPH_MAP_EVERY_S = 2.0
ceph.KEPT_S = 4.0
CephGuard.__init__.__kwdefaults__["lease_s"] = 9.0
from plumbline.cli import main

sys.exit(main())
"""
"""The daemon as it is but for its pace: how often it asks, how long it shows the last map, how long its lock lasts."""
COMMAND = (sys.executable, "-c", HURRIED)
ROOM = 16
"""Children, descriptors and threads may be so many more than before: what is under way, and pages that are served."""
ENOUGH = 3 * ROOM
"""Attempts in vain: one of anything kept for each would not go unseen."""
MEMORY_KIB = 4 << 10
"""From the first page of an absence to its last."""
ENVIRONMENT = {**os.environ, "MALLOC_ARENA_MAX": "1"}
"""Or memory would tell how many threads ever served a page: each may get an arena of its own, some MiB each."""
LINES = 4
"""Of the log for each canary and absence: its worker died, is refused, its operations hang, fail."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The daemon at one moment; ``children`` are theirs, too."""

    children: int
    descriptors: int
    threads: int
    rss_kib: int

    @classmethod
    def of(cls, daemon: Daemon) -> Footprint:
        proc = Path(f"/proc/{daemon.pid}")
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        return cls(
            len(daemon.children()),
            len(list((proc / "fd").iterdir())),
            int(status["Threads"]),
            int(status["VmRSS"].split()[0]),
        )

    def fits(self, other: Footprint, room: int = 0) -> bool:
        """Whether all but the memory is at most the other's, and ``room`` more."""
        return all(mine <= theirs + room for mine, theirs in zip(astuple(self)[:3], astuple(other)[:3], strict=True))


@dataclass(frozen=True, slots=True)
class Absence:
    """What was seen while the cluster was gone."""

    attempts: float
    page_s: float
    """The slowest page."""
    seen: tuple[Footprint, ...]
    page: Scrape
    status: str
    said: str

    def __str__(self) -> str:
        most = [max(getattr(each, field.name) for each in self.seen) for field in fields(Footprint)]
        memory = [each.rss_kib for each in self.seen[:: max(1, len(self.seen) // 10)]]
        return (
            f"{self.attempts:.0f} attempts in vain, {len(self.seen)} pages of at most {self.page_s:.2f} s, "
            f"{self.said.count(chr(10))} lines; at most {most}; RSS {memory} KiB"
        )


def config(access: CephConfig) -> dict[str, object]:
    def canary(name: str, osds: str) -> dict[str, object]:
        return {"type": "rados-canary", "name": name, "osds": [osds], "rate": 2, "stuck_after": "3s"}

    bench = {
        "type": "rados-bench", "name": BENCH, "runtime": "1s", "timeout": "3s", "interval": "6s", "max_objects": 16,
        "max_load_per_cpu": 1000,
    }  # fmt: skip
    return {
        "probes": [canary(STEADY, "all"), *(canary(name, "osd.0") for name in RESTLESS), bench],
        "ceph": {
            "conf": access.conf, "user": access.user, "keyring": access.keyring, "pool": access.pool,
            "map": "always", "timeout": "1s",
        },
        "gates": {"health": "any", "recovery": True},
    }  # fmt: skip


def works(page: Scrape, *probes: str) -> set[float | None]:
    return {page.get("plumbline_probe_success", probe=probe) for probe in probes}


def all_is_well(page: Scrape) -> bool:
    """Every canary works, the gates are asked for, and the map is told."""
    told = page.get("plumbline_collector_success", collector="cephmap"), page.get("plumbline_ceph_reachable")
    return works(page, *(f"{name}/osd.0" for name in (STEADY, *RESTLESS))) == {1} and told == (1, 1)


def attempts(page: Scrape) -> float:
    """Canaries' workers that were started in vain."""
    return sum(
        page.total("plumbline_probe_runs_skipped_total", probe=f"{name}/osd.0", reason="unreachable")
        for name in RESTLESS
    )


def benches(daemon: Daemon) -> float:
    """Runs of the bench that succeeded."""
    return daemon.metrics().total("plumbline_probe_runs_total", probe=BENCH, result="success")


def freeze_everything(ceph: CephCluster) -> None:
    for name in ("mon.a", *OSDS):
        ceph.freeze(name)


def kill_workers_of_restless(daemon: Daemon) -> None:
    """As a restart of the daemon would: who is connected needs no monitor until an OSD moves."""
    for pid in daemon.children():
        words = command_line(pid)
        if "rados_canary_worker" in words and "restless" in words:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def absence(daemon: Daemon) -> Absence:
    """Scrape it for :data:`GONE_S` seconds, and longer where a busy machine has not failed often enough by then."""
    said, before = len(daemon.said()), attempts(daemon.metrics())
    kill_workers_of_restless(daemon)
    seen: list[Footprint] = []
    page, status, slowest_s, began = daemon.metrics(), "", 0.0, time.monotonic()
    while time.monotonic() < began + GONE_S or attempts(page) - before < ENOUGH:
        assert time.monotonic() < began + GONE_S + WITHIN_S, f"{attempts(page) - before} attempts only"
        asked = time.monotonic()
        answer = daemon.get("/metrics")
        slowest_s = max(slowest_s, time.monotonic() - asked)
        assert answer.status == 200
        seen.append(Footprint.of(daemon))
        if len(seen) % 5 == 0:
            page = Scrape.of_text(answer.text)
            asked = time.monotonic()
            status = daemon.page()
            slowest_s = max(slowest_s, time.monotonic() - asked)
        time.sleep(0.2)
    return Absence(attempts(page) - before, slowest_s, tuple(seen), page, status, daemon.said()[said:])


def processes_of(ceph: CephCluster) -> list[int]:
    """Of Plumbline, that know this cluster, whoever their parent is by now."""
    found = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return [pid for pid in found if "plumbline.probes" in (words := command_line(pid)) and str(ceph.conf) in words]


def test_it_goes_away_for_long_and_comes_back(ceph: CephCluster, tmp_path: Path) -> None:
    began = time.monotonic()
    with (
        set_up(ceph, timeout_s=1.0) as access,
        running(tmp_path, config=config(access), command=COMMAND, environment=ENVIRONMENT) as daemon,
    ):
        eventually(lambda: all_is_well(daemon.metrics()), within_s=WITHIN_S, every_s=0.3)
        daemon.page()
        before = Footprint.of(daemon)
        print(f"{time.monotonic() - began:.0f} s: well,", before)
        for gone in ("frozen", "killed"):
            if gone == "frozen":
                freeze_everything(ceph)
            else:
                ceph.kill_mon()
            without = absence(daemon)
            print(f"{time.monotonic() - began:.0f} s: {gone},", without)

            assert without.page_s < PAGE_S
            assert all(each.fits(before, ROOM) for each in without.seen), (before, without.seen)
            page = without.page
            failing = page.labels("plumbline_collector_success", "collector") - {
                each.labels["collector"] for each in page.series("plumbline_collector_success") if each.value == 1
            }
            assert failing == {"cephmap"}
            assert without.seen[-1].rss_kib - without.seen[0].rss_kib < MEMORY_KIB

            assert page.get("plumbline_ceph_reachable") == 0
            assert works(page, *(f"{name}/osd.0" for name in RESTLESS)) == {0}
            # without a monitor the OSDs go on, and so does who knew them
            assert works(page, *(f"{STEADY}/{osd}" for osd in OSDS)) == {0 if gone == "frozen" else 1}
            assert "no monitor answered within 1 s; is the cluster up, the network open?" in without.status
            assert "Collector cephmap fails: the cluster map can't be read" in without.status
            assert page.total("plumbline_probe_runs_skipped_total", probe=BENCH, reason="unreachable") > 0
            assert without.said.count("\n") < LINES * (len(RESTLESS) + len(OSDS))

            ceph.heal()
            eventually(lambda: all_is_well(daemon.metrics()), within_s=WITHIN_S, every_s=0.3)
            eventually(lambda: Footprint.of(daemon).fits(before), within_s=WITHIN_S)
            print(f"{time.monotonic() - began:.0f} s: back,", Footprint.of(daemon))
        done = benches(daemon)
        eventually(lambda: benches(daemon) > done, within_s=WITHIN_S, every_s=0.3)  # it removes what others left
        assert "Traceback" not in daemon.said()
        children = daemon.children()
        assert daemon.stop()[0] == 0
        assert not [pid for pid in children if alive(pid)]
        assert processes_of(ceph) == []
        names = ceph.run("rados", "-p", access.pool, "-N", NAMESPACE, "ls").split()
        assert set(names) <= {LOCK_OBJECT}
