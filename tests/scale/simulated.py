"""So many storage hosts of one cluster as scrape targets, in a process of its own; ``python -m scale.simulated 50``,
or ``… 50 full`` with the daemons' full pages.

Each host has two: the daemon's page (``support/storage_host.py``, with OSDs and serial numbers of its own) and a
ceph-exporter's, ten times what a real OSD counted. One manager has the state of all OSDs. Counters go on with time.
Prints the proxy's URL and serves until standard input ends.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from support import ceph_pages
from support.ceph_pages import Page
from support.fleet_server import Answer, serving
from support.moving_page import Change, MovingPage, fault, of_exposition, renamed
from support.storage_host import OSDS, storage_host

RELEASE = 18
"""The first whose counters come from the ceph-exporter, as every large cluster has it."""
FRESH_S = 5.0
"""A page is made anew after so long; scrapes in between get the same."""
_COUNTER = re.compile(r"_(total|bucket|sum|count)$|^ceph_(osd_op|bluestore)")


def name(number: int) -> str:
    """A host."""
    return f"stor{number:04}"


def nodes(hosts: int) -> list[str]:
    """Addresses of the daemons."""
    return [f"{name(number)}:10047" for number in range(hosts)]


def exporters(hosts: int) -> list[str]:
    """Addresses of the ceph-exporters, and of the manager."""
    return [*(f"{name(number)}:9926" for number in range(hosts)), "mgr0:9283"]


def targets(hosts: int, folder: Path, *, full: bool = False) -> dict[str, Answer]:
    """Address → its page."""
    began = time.monotonic()
    node = _shared(of_exposition(storage_host(folder, full=full), _identity()), began)
    exporter = _shared(of_exposition(_text(_exporter())), began)
    manager = _shared(of_exposition(_text(_manager(hosts))), began)
    found: dict[str, Answer] = {"mgr0:9283": manager}
    for number in range(hosts):
        found[f"{name(number)}:10047"] = _of_host(node, number)
        found[f"{name(number)}:9926"] = _of_host(exporter, number)
    return found


@contextlib.contextmanager
def simulated(hosts: int, *, full: bool = False) -> Iterator[str]:
    """The proxy's URL while the process runs."""
    argv = [sys.executable, "-m", __name__, str(hosts), *(["full"] if full else [])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"no fleet of {hosts} hosts: its process has ended, see above")
            yield url
        finally:
            process.communicate()


def _identity() -> tuple[Change, ...]:
    """Where a host's own numbers come: ``@3@`` for its fourth OSD, ``@s@`` behind a serial number."""
    return (
        *(renamed(rf'"osd\.{osd}"', f'"osd.@{osd}@"') for osd in range(OSDS)),
        renamed('serial="([^"]+)"', r'serial="\1@s@"'),
        # a port of years beside counters of an hour
        fault("plumbline_nic_(packets|bytes)_total", per_s=1e5),
    )


def _shared(page: MovingPage, began: float) -> Callable[[], bytes]:
    made: list[tuple[float, bytes]] = [(float("-inf"), b"")]

    def text() -> bytes:
        now = time.monotonic()
        at, body = made[0]
        if now - at > FRESH_S:
            body = page.text(now - began, time.time()).encode()
            made[0] = (now, body)
        return body

    return text


def _of_host(text: Callable[[], bytes], number: int) -> Answer:
    own = [(f"@{osd}@".encode(), str(number * OSDS + osd).encode()) for osd in range(OSDS)]
    own += [(b"@s@", f"-{number}".encode()), (b"@host@", name(number).encode())]

    def answer() -> bytes:
        body = text()
        for mark, value in own:
            body = body.replace(mark, value)
        return body

    return answer


def _exporter() -> Page:
    """Of a host: what osd.0 counted, for each of its OSDs."""
    page = ceph_pages.as_exporter(ceph_pages.captured("load-2"), RELEASE, "@host@")
    return {
        (metric, tuple({**dict(labels), "ceph_daemon": f"osd.@{osd}@"}.items())): value
        for (metric, labels), value in page.items()
        if dict(labels).get("ceph_daemon") == "osd.0"
        for osd in range(OSDS)
    }


def _manager(hosts: int) -> Page:
    page = ceph_pages.as_manager(ceph_pages.captured("load-2"), RELEASE, counters=False)
    found: Page = {}
    for (metric, labels), value in page.items():
        said = dict(labels)
        if not said.get("ceph_daemon", "").startswith("osd."):
            found[metric, labels] = value
        elif said["ceph_daemon"] == "osd.0":
            for osd in range(hosts * OSDS):
                own = {"ceph_daemon": f"osd.{osd}"}
                if "hostname" in said:
                    own["hostname"] = name(osd // OSDS)
                if "instance" in said:
                    own |= {"instance": name(osd // OSDS), "device": f"/dev/dm-{osd % OSDS}"}
                found[metric, tuple({**said, **own}.items())] = value
    return found


def _text(page: Page) -> str:
    """With types, so that counters go on."""
    kinds = {metric: "counter" if _COUNTER.search(metric) else "gauge" for metric, _ in page}
    types = "".join(f"# TYPE {metric} {kind}\n" for metric, kind in kinds.items())
    return types + ceph_pages.text_of(page, "simulated")


def main() -> None:
    """Until standard input ends."""
    with (
        tempfile.TemporaryDirectory(prefix="pl-") as folder,
        serving(targets(int(sys.argv[1]), Path(folder), full="full" in sys.argv[2:])) as url,
    ):
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
