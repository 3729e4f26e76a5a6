"""Every program that the daemon starts by itself hangs, floods, exits 137 or prints garbage, all at once.

What each caller makes of it is in tests/unit/probes/run/test_bad_tools.py; here it is the daemon that goes on. The
programs of Ceph are asked for nothing on a node without a cluster.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from pathlib import Path

import pytest

from plumbline.core.scheduler import splay
from support.daemon import WITHIN_S, Daemon, alive, command_line, eventually, running
from support.scraped import Scrape

FIXTURES = Path(__file__).parents[1] / "fixtures"
PEER = "127.0.0.1"
SLEEP_S = 86_125
PAGE_S = 5.0
"""Half of what Prometheus waits; on a quiet machine a page takes some hundredths."""
MEMORY_KIB = 48 << 10
"""Each output is kept up to 1 MiB, of several programs at once."""
BEHAVIOURS = {
    "hangs": f"trap '' TERM; /bin/sleep {SLEEP_S}; /bin/sleep {SLEEP_S}",
    "floods stdout": "exec /bin/cat /dev/zero",
    "exits 137": "exit 137",
    "prints garbage": "printf '\\000\\377{]\\n\\033[2J'; exec /usr/bin/head -c 5000 /dev/urandom",
}
SAID = {
    "hangs": (
        "fio: not finished in time", "iperf3 did not end within 8 s",
    ),
    "floods stdout": ("fio: wrote too much output and was stopped", "iperf3 wrote too much output and was stopped"),
    "exits 137": ("(exit status 137)", "iperf3 --json: not JSON"),
    "prints garbage": ("(exit status 0)", "iperf3 --json: not JSON"),
}  # fmt: skip
"""On the status page."""
VERSIONS = {"fio": "fio-3.33", "iperf3": "iperf 3.12", "smartctl": "", "zpool": ""}
"""Told as ever, so that it is the work itself that goes wrong."""


def imposters(folder: Path, behaviour: str) -> Path:
    """A directory of programs, the only one in the daemon's PATH."""
    programs = folder / "bin"
    programs.mkdir()
    for name, version in VERSIONS.items():
        program = programs / name
        told = f'case "$1" in --version) echo "{version}"; exit 0;; esac\n' if version else ""
        program.write_text(f"#!/bin/sh\n{told}{BEHAVIOURS[behaviour]}\n")
        program.chmod(0o755)
    return programs


@pytest.fixture(scope="module")
def host(module_folder: Path) -> list[str | Path]:
    """Trees of a host with ZFS and a SATA disk; what gates and scrapes look at is this machine's."""
    tree = Path(shutil.copytree(FIXTURES / "ceph-cephadm-node", module_folder / "host", symlinks=True))
    shutil.copytree(FIXTURES / "arrays-storage-node/proc/spl", tree / "proc/spl")
    (tree / "proc/net").mkdir(exist_ok=True)
    for name in ("diskstats", "loadavg", "net/softnet_stat"):
        shutil.copyfile(Path("/proc") / name, tree / "proc" / name)
    trees = {"procfs": "proc", "sysfs": "sys", "devfs": "dev", "udev": "run/udev"}
    return [part for flag, name in trees.items() for part in (f"--path.{flag}", tree / name)]


def probe(kind: str, target: str, after_s: int) -> dict[str, object]:
    """One whose name this host's splay lets start in the second after ``after_s``."""
    names = (f"{kind}-{number}" for number in itertools.count())
    starts = {each: splay(os.uname().nodename, each + target, 60) for each in itertools.islice(names, 2000)}
    name = next(each for each, at_s in starts.items() if after_s <= at_s < after_s + 1)
    return {"type": kind, "name": name, "interval": "60s", "max_load_per_cpu": 1000, "max_device_busy": 1}


def config(folder: Path, behaviour: str) -> dict[str, object]:
    """fio first, then iperf3, as heavy probes run one at a time."""
    fio = probe("fio", "", 0) | {
        "workload": "randread-4k-qd1-j1", "runtime": "1s", "timeout": "2s", "file_size": "1MiB",
        "directory": str(folder / "fio"),
    }  # fmt: skip
    iperf3 = probe("iperf3", f"/{PEER}", 5 if behaviour == "hangs" else 1)
    iperf3 |= {"targets": [PEER], "runtime": "1s", "timeout": "8s"}
    return {"probes": [fio, iperf3]}


def wrong(page: Scrape) -> dict[str, object]:
    """Tool → what the page says is wrong with it; false: not yet."""
    failed = {
        each.labels["probe"].partition("-")[0]: each.labels["result"]
        for each in page.series("plumbline_probe_runs_total")
        if each.labels["result"] != "success" and each.value
    }
    asked = {
        each.labels["device"]: each.labels["reason"] for each in page.series("plumbline_disk_health_unavailable_info")
    }
    return {
        "fio": failed.get("fio"),
        "iperf3": failed.get("iperf3"),
        "smartctl": asked.get("sda"),
        "zpool": page.get("plumbline_zfs_status_available") == 0,
    }


def timed(daemon: Daemon) -> tuple[Scrape, str, float]:
    """Both pages, and the seconds that the slower one took."""
    began = time.monotonic()
    answer = daemon.get("/metrics?profile=full")
    scraped = time.monotonic()
    text = daemon.page()
    took_s = max(scraped - began, time.monotonic() - scraped)
    assert answer.status == 200
    return Scrape.of_text(answer.text), text, took_s


def memory_kib(daemon: Daemon, kind: str) -> int:
    """``VmRSS`` or, at its most, ``VmHWM``."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{daemon.pid}/status").read_text().splitlines())
    return int(status[kind].split()[0])


def sleepers() -> list[int]:
    found = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return [pid for pid in found if str(SLEEP_S) in command_line(pid)]


@pytest.mark.long
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_pages_come_and_say_what_is_wrong(folder: Path, host: list[str | Path], behaviour: str) -> None:
    environment = {**os.environ, "PATH": str(imposters(folder, behaviour))}
    others = sleepers()  # a first try that failed ends its daemon, not what ignores SIGTERM
    with running(folder, *host, config=config(folder, behaviour), environment=environment) as daemon:
        timed(daemon)
        before = memory_kib(daemon, "VmRSS")
        slowest_s, seen = 0.0, set[int]()

        def all_is_said() -> bool:
            nonlocal slowest_s
            page, text, took_s = timed(daemon)
            slowest_s = max(slowest_s, took_s)
            seen.update(daemon.children())
            return all(wrong(page).values()) and all(word in text for word in SAID[behaviour])

        eventually(all_is_said, within_s=2 * WITHIN_S, every_s=0.2)
        assert slowest_s < PAGE_S
        page, text, _ = timed(daemon)
        probe = "timeout" if behaviour == "hangs" else "failure"
        disk = "no-answer" if behaviour in ("hangs", "exits 137") else "malformed"
        assert wrong(page) == {
            "fio": probe, "iperf3": probe, "smartctl": disk, "zpool": True,
        }  # fmt: skip
        assert {each.value for each in page.series("plumbline_collector_success")} == {1}
        assert {each.value for each in page.series("plumbline_probe_success")} == {0}
        assert text.isprintable()
        grown = memory_kib(daemon, "VmHWM") - before
        print(f"{behaviour}: pages within {slowest_s:.2f} s, memory {before} KiB and {grown} at most")
        assert grown < MEMORY_KIB

        code, took_s = daemon.stop()
        assert code == 0
        print(f"stopped in {took_s:.1f} s")
        assert not [pid for pid in seen if alive(pid)]
        assert sleepers() == others
        said = daemon.said()
        assert "Traceback" not in said
        assert max(map(len, said.splitlines())) < 1000
