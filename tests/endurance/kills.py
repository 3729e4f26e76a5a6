"""SIGKILL at any moment, again and again: what is there after the next start?

``make kill-storm ARGS='--kills 1000'``. Each round starts the daemon on the same state directory, with a canary and a
fio probe that runs all the time, and kills the daemon alone, somewhere between its first instruction and half as long
again as it takes to work. Then nothing of it may be left running, the state must be readable, and the next round must
find nothing damaged. The last start is let live: it works, and what was left of the runs is gone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.core.scheduler import splay
from plumbline.probes.run.state import read_state
from support.daemon import COMMAND, alive, command_line, eventually, running, write_config

LATEST = 1.5
"""The latest kill, in times of what a start takes here until the canary works."""
ENDS_WITHIN_S = 20.0
"""For its children to follow it, on a busy machine; they do within milliseconds on a quiet one."""


@dataclass(slots=True)
class Storm:
    """What was seen."""

    kills: int = 0
    with_children: int = 0
    """Kills that met children at work."""
    while_fio_ran: int = 0
    longest_orphan_s: float = 0.0
    """How long the slowest child took to follow."""
    runs_remembered: int = 0
    faults: list[str] = field(default_factory=list)


def config(folder: Path, *, fio: bool) -> dict[str, object]:
    canary: dict[str, object] = {
        "type": "canary",
        "name": "canary",
        "directory": str(folder / "canary"),
        "file_size": "1MiB",
        "rate": 50,
    }
    heavy = {
        "type": "fio", "name": early_name(), "directory": str(folder / "fio"), "workload": "randwrite-4k-qd1-j1",
        "file_size": "1MiB", "runtime": "1s", "timeout": "4s", "interval": "8s",
        "max_device_busy": 1, "max_load_per_cpu": 1000,
    }  # fmt: skip
    return {"probes": [canary, heavy] if fio else [canary]}


def early_name() -> str:
    """A name whose first run comes at once on this host: else most daemons would be dead before it."""
    names = (f"fio-{number}" for number in range(10_000))
    return next(name for name in names if splay(socket.gethostname(), name, 8.0) < 0.3)


def storm(folder: Path, *, kills: int, seed: int = 0, fio: bool) -> Storm:
    """Run it in an empty ``folder`` on a disk."""
    chance, seen = random.Random(seed), Storm()
    write_config(folder, config(folder, fio=fio))
    flags = ("--config.file", str(folder / "plumbline.yaml"), "--storage.path", str(folder / "state"))
    began = time.monotonic()
    with running(folder, config=config(folder, fio=fio)) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1, within_s=120)
        start_s = time.monotonic() - began
    with contextlib.suppress(KeyboardInterrupt):  # it lasts: what was seen until then is told
        for _ in range(kills):
            _kill_one(folder, flags, chance.uniform(0, LATEST * start_s), seen)
    _look_at_the_last(folder, fio, seen)
    return seen


def _kill_one(folder: Path, flags: Sequence[str], after_s: float, seen: Storm) -> None:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--web.listen-address", "127.0.0.1:0", *flags], stdout=log, stderr=log
        )
    try:
        time.sleep(after_s)
        if process.poll() is not None:
            seen.faults.append(f"ended by itself with {process.returncode}: {(folder / 'log').read_text()[-300:]}")
            return
        process.send_signal(signal.SIGSTOP)  # so that it starts nothing between the look and its death
        children = _tree(process.pid)
        words = [command_line(each) for each in children]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
    seen.kills += 1
    seen.with_children += bool(children)
    seen.while_fio_ran += any("fio" in each and "--name" in each for each in words)
    killed = time.monotonic()
    while left := [each for each in children if alive(each)]:
        if time.monotonic() - killed > ENDS_WITHIN_S:
            seen.faults.append(f"{len(left)} orphans: {[command_line(each) for each in left]}")
            for each in left:
                os.kill(each, signal.SIGKILL)
            break
        time.sleep(0.005)
    if children:
        seen.longest_orphan_s = max(seen.longest_orphan_s, time.monotonic() - killed)
    with contextlib.suppress(FileNotFoundError):
        read_state(folder / "state")  # raises for what is damaged


def _look_at_the_last(folder: Path, fio: bool, seen: Storm) -> None:
    with running(folder, config=config(folder, fio=fio)) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1, within_s=60)
        if fio:
            eventually(lambda: daemon.metrics().total("plumbline_probe_runs_total", result="success"), within_s=120)
        seen.runs_remembered = int(daemon.metrics().total("plumbline_probe_runs_total"))
        said = daemon.said()
        if "unreadable state" in said or "Traceback" in said:
            seen.faults.append(f"the last daemon said: {said[-500:]}")
        code, _ = daemon.stop()
        if code:
            seen.faults.append(f"the last daemon ended with {code}")
    seen.faults += [f"left: {each}" for each in leftovers(folder)]


def leftovers(folder: Path) -> list[str]:
    """Files that nobody needs after a start and a stop in order."""
    wanted = {
        "state": {".plumbline-storage", "state.json", "lock", "heavy-probe.lock"},
        "canary": {"canary.dat", ".plumbline-probe"},
        "fio": {"fio.0", ".plumbline-probe"},
    }
    return [
        f"{name}/{each.name}"
        for name, names in wanted.items()
        if (folder / name).exists()
        for each in (folder / name).iterdir()
        if each.name not in names
    ]


def _tree(pid: int) -> list[int]:
    return list(_descendants(pid))


def _descendants(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from _descendants(child)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 1 with the faults, if there are any."""
    parser = argparse.ArgumentParser(prog="make kill-storm ARGS=", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="plumbline-kills-") as folder:
        began = time.monotonic()
        seen = storm(Path(folder), kills=options.kills, seed=options.seed, fio=True)
    print(
        f"{seen.kills} kills in {time.monotonic() - began:.0f} s, {seen.with_children} with children at work, "
        f"{seen.while_fio_ran} of them fio; the slowest child was gone after {seen.longest_orphan_s * 1000:.0f} ms; "
        f"{seen.runs_remembered} runs remembered; faults: {len(seen.faults)}"
    )
    for each in seen.faults:
        print(each)
    return bool(seen.faults)


if __name__ == "__main__":
    sys.exit(main())
