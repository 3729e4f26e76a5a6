"""Hours of scrapes compressed: does the daemon grow?

``make soak ARGS='--scrapes 50000'``. Scrapes come over kept and over new connections, in each format, packed and not,
now and then the status page. Between them the configuration is reloaded, network ports come and go (in a network
namespace of our own), a canary and a fio probe work at short intervals. At rest after each stretch: memory, open
descriptors, threads, children.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from support.daemon import Daemon, eventually, running, write_config

from .kills import config

STRETCHES = 20
"""Samples; the first quarter warms up: allocator, caches, each code path's first time."""
FORMATS = (
    {},
    {"Accept-Encoding": "gzip"},
    {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"},
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The daemon at rest."""

    scrapes: int
    rss_kib: int
    pss_kib: int
    descriptors: int
    threads: int
    children: int


@dataclass(frozen=True, slots=True)
class Soak:
    """Figures of the whole run; slopes are least squares over what comes after the warm-up."""

    scrapes: int
    failed: int
    seconds: float
    samples: tuple[Sample, ...]

    @property
    def after_warm_up(self) -> tuple[Sample, ...]:
        return self.samples[len(self.samples) // 4 :]

    @property
    def kib_per_1000_scrapes(self) -> float:
        after = self.after_warm_up
        return statistics.linear_regression([s.scrapes for s in after], [s.pss_kib for s in after]).slope * 1000

    @property
    def descriptors(self) -> set[int]:
        return {sample.descriptors for sample in self.after_warm_up}

    @property
    def threads(self) -> set[int]:
        return {sample.threads for sample in self.after_warm_up}

    @property
    def grew(self) -> bool:
        """Descriptors or threads: the fewest at the end are more than the fewest after the warm-up. A fio run that
        is under way has some of both, so single samples may differ."""
        after = self.after_warm_up
        last = after[-(len(after) // 3) :]
        return min(s.descriptors for s in last) > min(s.descriptors for s in after[: len(last)]) or min(
            s.threads for s in last
        ) > min(s.threads for s in after[: len(last)])


def soak(folder: Path, scrapes: int, *, fio: bool) -> Soak:
    """Run it with the state in ``folder``, a directory on a disk."""
    ports = own_network()
    samples, failed, began = [], 0, time.monotonic()
    with running(folder, config=config(folder, fio=fio)) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1, within_s=120)
        each = max(1, scrapes // STRETCHES)
        for stretch in range(STRETCHES):
            failed += _scrapes(daemon, each)
            if ports:
                ip("link", "add", f"soak{stretch}", "type", "veth", "peer", "name", f"peer{stretch}")
                ip("link", "set", f"soak{stretch}", "up")
            daemon.get("/")
            failed += not _reloaded(daemon, folder, fio=fio, odd=bool(stretch % 2))
            failed += _scrapes(daemon, 2)
            if ports:
                ip("link", "del", f"soak{stretch}")
            samples.append(_at_rest(daemon, each * (stretch + 1), samples[-1] if samples else None))
        wrong = [line for line in daemon.said().splitlines() if _is_wrong(line)]
        failed += bool(wrong)
        for line in wrong[:20]:
            print(line, file=sys.stderr)
    return Soak(scrapes, failed, time.monotonic() - began, tuple(samples))


def _is_wrong(line: str) -> bool:
    """What the log should not say; that a fio did not end in time is the machine's load."""
    return "Traceback" in line or (" ERROR " in line and not re.search(r"probe fio-\d+: timeout: ", line))


def _scrapes(daemon: Daemon, count: int) -> int:
    """How many did not give a whole page. One in four comes over a new connection."""
    failed = 0
    kept = http.client.HTTPConnection(urlsplit(daemon.url).netloc, timeout=30)
    with contextlib.closing(kept):
        for number in range(count):
            headers = FORMATS[number % len(FORMATS)]
            if number % 4 == 3:
                failed += daemon.get("/metrics", headers).status != 200
                continue
            kept.request("GET", "/metrics", headers=headers)
            answer = kept.getresponse()
            body = answer.read()
            failed += answer.status != 200 or len(body) != int(answer.headers["Content-Length"])
    return failed


def _reloaded(daemon: Daemon, folder: Path, *, fio: bool, odd: bool) -> bool:
    content = config(folder, fio=fio) | ({"devices": {"nic_exclude": "veth.*"}} if odd else {})
    before = daemon.said().count("configuration reloaded")
    write_config(folder, content)
    daemon.send(signal.SIGHUP)
    eventually(lambda: daemon.said().count("configuration reloaded") > before)
    return daemon.metrics().get("plumbline_config_reload_success") != 0


def _at_rest(daemon: Daemon, scrapes: int, before: Sample | None) -> Sample:
    """When nobody asks and no probe runs; what is under way by itself gets some seconds to be over."""
    deadline = time.monotonic() + 15
    while True:
        now = _sample(daemon.pid, scrapes)
        same = before is None or (now.descriptors, now.threads) == (before.descriptors, before.threads)
        if (same and now.children <= 1) or time.monotonic() > deadline:
            return now
        time.sleep(0.05)


def _sample(pid: int, scrapes: int) -> Sample:
    proc = Path(f"/proc/{pid}")
    rollup = dict(line.split(":", 1) for line in (proc / "smaps_rollup").read_text().splitlines()[1:])
    return Sample(
        scrapes,
        int(rollup["Rss"].split()[0]),
        int(rollup["Pss"].split()[0]),
        len(os.listdir(proc / "fd")),  # noqa: PTH208
        len(os.listdir(proc / "task")),  # noqa: PTH208
        sum(len(file.read_text().split()) for file in proc.glob("task/*/children")),
    )


def own_network() -> bool:
    """A network namespace of our own, where we may have one: ports must not come and go on the machine itself."""
    names = {line.partition(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
    if os.geteuid() == 0 and names == {"lo"}:  # as `unshare --net` makes it; no host is like that
        ip("link", "set", "lo", "up")
        return True
    return False


def ip(*words: str) -> None:
    """``ip …``; raises when it fails."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 1 when a page failed or something grew."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scrapes", type=int, default=50_000)
    parser.add_argument("--without-fio", action="store_true")
    parser.add_argument("--json", action="store_true", help="every sample, for programs")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="plumbline-soak-") as folder:
        result = soak(Path(folder), options.scrapes, fio=not options.without_fio)
    if options.json:
        print(json.dumps(asdict(result)))
        return 0
    for each in result.samples:
        print(
            f"{each.scrapes:>8} scrapes  RSS {each.rss_kib / 1024:6.1f} MiB  PSS {each.pss_kib / 1024:6.1f} MiB  "
            f"{each.descriptors} descriptors  {each.threads} threads  {each.children} children"
        )
    print(
        f"{result.scrapes} scrapes in {result.seconds:.0f} s, {result.failed} failed; PSS grows by "
        f"{result.kib_per_1000_scrapes:.1f} KiB per 1,000 scrapes; descriptors {sorted(result.descriptors)}, "
        f"threads {sorted(result.threads)}"
    )
    return bool(result.failed or result.grew)


if __name__ == "__main__":
    sys.exit(main())
