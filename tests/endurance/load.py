"""A real disk under a load that changes every few minutes: is anybody woken, and who is told when it gets slow?

``make load-storm ARGS='--minutes 120'``. The baseline is recorded at rest, on the disk of ``--directory``: a real one,
because a loop device has no load of its own, and one that nothing else uses. Then fio works on that disk beside the
canary, each time at another rate, size and kind. Daemon, rules and Alertmanager's routes are the shipped ones, with the
shipped windows. At the end the kernel's own throttle (blkio of cgroup v1) slows the disk for the canary and for a load
like those before.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from support.daemon import COMMAND, running, write_config
from support.filesystems import run
from support.pager import Pager, pager
from support.programs import need
from support.prometheus import Prometheus, prometheus
from support.throttling import below, throttled

SCRAPE_S = 15
"""As the shipped scrape job has it."""
PHASE_S = (120.0, 360.0)
KINDS = {"randread": "4k", "randwrite": "4k", "randrw": "16k", "write": "128k", "read": "128k"}
OPERATIONS = {"4k": (500, 20_000), "16k": (200, 5_000), "128k": (20, 800)}
"""Operations a second, from a little to what is near to the most that a small virtual disk does."""
DEPTHS = (1, 4, 16, 32)
IDLE_SHARE = 0.2
SLOWED_PER_S = 40
"""Operations a second that the slowed disk does for canary and load together."""
CLASS = "here"


@dataclass(frozen=True, slots=True)
class Phase:
    """What the disk served for some minutes, and how it was judged at their end; ratios are to the baseline."""

    load: str
    seconds: float
    slower: float | None
    """Of the canary's two operations the one that is further from its baseline, in the last minute."""
    busier: float | None
    busy: bool


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody was told, minutes after the load or the fault began."""

    minute: float
    receiver: str
    alert: str
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """Phases, and what Alertmanager sent during the load and after the disk was slowed."""

    phases: tuple[Phase, ...]
    under_load: tuple[Message, ...]
    slowed: tuple[Message, ...]


def storm(folder: Path, *, minutes: float, slowed_minutes: float, seed: int) -> Result:
    """Run it with everything in ``folder``, a directory on a disk."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        directory = folder / "disk"
        directory.mkdir()
        config = _configuration(directory)
        _record(folder, config)
        daemon = stack.enter_context(running(folder, config=config))
        told = stack.enter_context(pager(folder, group_wait_s=45))
        server = stack.enter_context(
            prometheus(
                folder, target=daemon.url.removeprefix("http://"), interval_s=SCRAPE_S, alertmanager=told.address
            )
        )
        quiet = _Told(told)
        phases: list[Phase] = []
        while quiet.minute < minutes:
            seconds = chance.uniform(*PHASE_S)
            options = [] if chance.random() < IDLE_SHARE else _load(chance)
            with _fio(directory, options):
                quiet.listen(seconds)
                phases.append(_judged(server, " ".join(options) or "idle", seconds))
            print(json.dumps(asdict(phases[-1])), flush=True)
        slowed = _Told(told)
        with _fio(directory, _load(chance)) as job, _slow(directory, [daemon.worker(), job]):
            slowed.listen(60 * slowed_minutes)
    return Result(tuple(phases), tuple(quiet.messages), tuple(slowed.messages))


class _Told:
    """What Alertmanager sends from now on."""

    def __init__(self, told: Pager) -> None:
        self._pager = told
        self._began = time.monotonic()
        self.messages: list[Message] = []

    @property
    def minute(self) -> float:
        """Minutes since the beginning."""
        return (time.monotonic() - self._began) / 60

    def listen(self, seconds: float) -> None:
        """For so long; each message is printed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(1)
            for each in self._pager.webhook.drain():
                if each.status == "firing" and each.name != "PlumblineWatchdog":
                    text = each.annotations.get("description", "")
                    self.messages.append(Message(round(self.minute, 1), each.receiver, each.name, text))
                    print(json.dumps(asdict(self.messages[-1])), flush=True)


def _configuration(directory: Path) -> dict[str, object]:
    """The canary, and two heavy probes that only the recording runs: they say what the disk can do."""
    common = {"directory": str(directory / "plumbline"), "device_class": CLASS}
    seldom = {"file_size": "256MiB", "interval": "30d", "timeout": "10m"}
    seldom |= {"max_load_per_cpu": 1000, "max_device_busy": 1.0}
    return {
        "probes": [
            {"type": "canary", "name": "canary", **common},
            {"type": "fio", "name": "random", "workload": "randread-4k-qd16-j1", **common, **seldom},
            {"type": "fio", "name": "sequential", "workload": "read-128k-qd4-j4", **common, **seldom},
        ]
    }


def _record(folder: Path, config: dict[str, object]) -> None:
    file = write_config(folder, config)
    words = ("baseline", "record", "--config.file", file, "--storage.path", folder / "state", "--force")
    run(*COMMAND, *words)
    print((folder / "state" / "baseline.yaml").read_text("utf-8"), flush=True)


def _load(chance: random.Random) -> list[str]:
    kind = chance.choice(list(KINDS))
    least, most = OPERATIONS[KINDS[kind]]
    rate = round(least * (most / least) ** chance.random())
    return [f"--rw={kind}", f"--bs={KINDS[kind]}", f"--iodepth={chance.choice(DEPTHS)}", f"--rate_iops={rate}"]


@contextmanager
def _fio(directory: Path, options: Sequence[str]) -> Iterator[int]:
    """Works on the disk until the end of the block; its process id, 0 without ``options``."""
    if not options:
        yield 0
        return
    argv = [need("fio"), "--name=load", f"--filename={directory}/load", "--size=1G", "--direct=1", "--ioengine=libaio"]
    argv += ["--time_based", "--runtime=86400", "--thread", "--output=/dev/null", *options]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process.pid
            if process.poll() is not None:
                raise RuntimeError(f"fio ended: {process.stderr.read() if process.stderr else ''}")
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def _slow(directory: Path, pids: Sequence[int]) -> Iterator[None]:
    limits = {"read_iops_device": SLOWED_PER_S, "write_iops_device": SLOWED_PER_S}
    with throttled(below(directory), pids, **limits):
        yield


def _judged(server: Prometheus, load: str, seconds: float) -> Phase:
    def most(expression: str) -> float | None:
        return max((value for _, value in server.query(expression)), default=None)

    return Phase(
        load,
        round(seconds),
        most('plumbline:degradation_fast:ratio{statistic="p50"}'),
        most("plumbline:canary_load:ratio"),
        bool(server.query("plumbline:canary_busy:info")),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 1 when somebody was woken, or when nobody was told of the slow disk."""
    parser = argparse.ArgumentParser(prog="make load-storm ARGS=", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--slowed-minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", default="/var/tmp", help="on the disk to work on (default: /var/tmp)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="plumbline-load-") as folder:
        result = storm(Path(folder), minutes=options.minutes, slowed_minutes=options.slowed_minutes, seed=options.seed)
    pages = [each for each in result.under_load if each.receiver == "pager"]
    tickets = [each for each in result.under_load if each.receiver.startswith("tickets")]
    found = [each for each in result.slowed if each.receiver.startswith(("pager", "tickets"))]
    print(f"{len(result.phases)} phases, in {sum(each.busy for each in result.phases)} of them busy at the end")
    print(f"under load: {len(pages)} pages, {len(tickets)} tickets")
    print(f"slowed: {found[0].alert} after {found[0].minute} min" if found else "slowed: nobody was told")
    return bool(pages or not found)


if __name__ == "__main__":
    sys.exit(main())
