"""64 scrapers beside 2,000 connections, for half an hour: memory, threads and descriptors of the daemon stay flat.

Usage: python -m endurance.crowd [SECONDS] (from tests/)

The connections come from 20 addresses of the loopback: a third stay idle, a third send a head byte by byte, a third
scrape, each at its own pace, and whatever is closed is opened again. Each scraper has an address of its own and scrapes
over a kept connection, as Prometheus does: one that was closed between requests is opened again, once.
"""

from __future__ import annotations

import http.client
import random
import selectors
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from support.daemon import running

SCRAPERS, CONNECTIONS, ADDRESSES = 64, 2000, 20
INTERVAL_S = 15.0


@dataclass
class Tally:
    """What the scrapers got: statuses and seconds of each answer. ``opened``: connections of the crowd."""

    statuses: dict[str, int] = field(default_factory=dict)
    took_s: list[float] = field(default_factory=list)
    opened: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, status: str, took_s: float) -> None:
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.took_s.append(took_s)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.took_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def scrape(port: int, number: int, ended: threading.Event, tally: Tally) -> None:
    """One scraper: its connection is kept, and opened again where the daemon closed it."""
    source = (f"127.1.0.{number + 1}", 0)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=source)
    ended.wait(number * INTERVAL_S / SCRAPERS)
    while not ended.is_set():
        began = time.monotonic()
        status = get(connection)
        if status in ("RemoteDisconnected", "ConnectionResetError", "BrokenPipeError"):
            status = get(connection)
        tally.add(status, time.monotonic() - began)
        ended.wait(max(0.0, INTERVAL_S - (time.monotonic() - began)))


def get(connection: http.client.HTTPConnection) -> str:
    """The status, or the name of the error."""
    try:
        connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return type(error).__name__
    return str(response.status)


def crowd(port: int, ended: threading.Event, tally: Tally) -> None:
    """All other connections, in one thread."""
    chosen, chances = selectors.DefaultSelector(), random.Random(7)
    open_now: set[socket.socket] = set()
    while not ended.is_set():
        for _ in range(min(50, CONNECTIONS - len(open_now))):
            sock = socket.socket()
            sock.setblocking(False)
            sock.bind((f"127.2.0.{chances.randrange(1, ADDRESSES + 1)}", 0))
            sock.connect_ex(("127.0.0.1", port))
            open_now.add(sock)
            chosen.register(sock, selectors.EVENT_READ)
            tally.opened += 1
        for key, _ in chosen.select(0.1):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            try:
                gone = not sock.recv(65536)
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            if gone:
                chosen.unregister(sock)
                sock.close()
                open_now.discard(sock)
        for sock in chances.sample(sorted(open_now, key=id), min(40, len(open_now))):
            said = (b"", b"G", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")[sock.fileno() % 3]
            try:
                sock.send(said)
            except OSError:
                continue
    for sock in open_now:
        sock.close()


def resources(pid: int) -> tuple[float, int, int]:
    """PSS in MiB, threads and descriptors."""
    process = Path("/proc") / str(pid)
    pss = next(line for line in (process / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
    return int(pss.split()[1]) / 1024, len(list((process / "task").iterdir())), len(list((process / "fd").iterdir()))


def attend(folder: Path, seconds: float, *, every_s: float) -> tuple[Tally, list[tuple[float, int, int]]]:
    """Run it; what the scrapers got, and the daemon's resources: at rest, then each ``every_s``, then at rest again."""
    tally, ended, samples = Tally(), threading.Event(), []
    with running(folder, config={"probes": []}) as daemon:
        port = int(daemon.url.rpartition(":")[2])
        daemon.get("/metrics")
        samples.append(resources(daemon.pid))
        workers = [threading.Thread(target=crowd, args=(port, ended, tally))]
        workers += [threading.Thread(target=scrape, args=(port, each, ended, tally)) for each in range(SCRAPERS)]
        for worker in workers:
            worker.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ended.wait(min(every_s, max(0.0, until - time.monotonic())))
            samples.append(resources(daemon.pid))
        ended.set()
        for worker in workers:
            worker.join()
        time.sleep(3)
        samples.append(resources(daemon.pid))
        said = daemon.said()
        assert "Traceback" not in said, said[-2000:]
        assert len(said) < 20_000
    return tally, samples


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1800.0
    with tempfile.TemporaryDirectory() as folder:
        tally, samples = attend(Path(folder), seconds, every_s=max(10.0, seconds / 30))
    for pss, threads, descriptors in samples:
        print(f"{pss:.1f} MiB, {threads} threads, {descriptors} descriptors")
    print(f"{tally.opened} connections opened; scrapes: {tally.statuses}")
    print(f"p50 {tally.percentile(0.5):.3f} s, p99 {tally.percentile(0.99):.3f} s, max {max(tally.took_s):.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
