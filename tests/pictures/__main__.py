"""Draw the documentation's pictures into ``docs/pictures``. Usage: make pictures ARGS='slow-osd'; all without any.

Takes a quarter of an hour, mostly waiting. Needs root (loop devices, the kernel's throttle), Ceph, fio, Prometheus and
Chromium; what is missing is said in one line.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from preview.page import shrink
from support.browser import browser

from .capacity_history import capacity_history
from .notifications import draw
from .slow_osd import slow_osd

ROOT = Path(__file__).parents[2]
OUT = ROOT / "docs" / "pictures"
SETS = ("slow-osd", "capacity")
WIDTH = 1400


def main() -> int:
    """0, or 1 with one line of what this machine lacks."""
    parser = argparse.ArgumentParser(
        prog="make pictures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)}")
    sets = parser.parse_args().sets or SETS
    if unknown := set(sets) - set(SETS):
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    for number in (signal.SIGINT, signal.SIGTERM):  # clean up, then end; in the background SIGINT would be ignored
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        if "slow-osd" in sets:
            _slow_osd()
        if "capacity" in sets:
            with capacity_history() as (url, end):
                _page("capacity", 37, "--prometheus", url, "--end", end, "--minutes", 30 * 1440)
    except BaseException as error:
        if type(error).__name__ != "Skipped":  # pytest's, raised by what looks for programs and rights
            raise
        print(f"pictures: {error}", file=sys.stderr)
        return 1
    return 0


def _slow_osd() -> None:
    with slow_osd() as slow:
        for name, rows in {"overview": 33, "osds": 34, "disks": 28}.items():
            _page(name, rows, "--prometheus", slow.prometheus, "--minutes", slow.minutes)
        with browser() as started:
            page = started.page()
            page.open(f"{slow.status}/", width=1200, height=1100)
            page.screenshot(OUT / "status-page.png", whole=False)
            shrink(OUT / "status-page.png")
        for picture in draw(slow.inbox, OUT):
            shrink(picture)


def _page(name: str, rows: int, *more: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "preview", name, "--out", folder]
        argv += ["--width", str(WIDTH), "--rows", str(rows), *map(str, more)]
        subprocess.run(argv, cwd=ROOT, check=True)
        (OUT / f"{name}.png").write_bytes((Path(folder) / f"plumbline-{name}.png").read_bytes())


if __name__ == "__main__":
    sys.exit(main())
