"""Draw the committed dashboards from a Prometheus that has data: one PNG a page.

Usage: make preview ARGS='--prometheus http://127.0.0.1:9090 --out /tmp/pictures'
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from . import page
from .answers import PreviewError, Recorded, Recorder, Server, Source, Window, values
from .variables import opened

RENDERED = Path(__file__).parents[2] / "dashboards" / "out"


def main() -> int:
    """0, or 1 with one line on standard error."""
    options = _options()
    try:
        return _run(options)
    except PreviewError as error:
        print(f"preview: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    chosen = [_load(name) for name in options.pages] if options.pages else [_read(file) for file in _files()]
    source: Source = Recorded.load(options.recorded) if options.recorded else Server(options.prometheus)
    recorder = Recorder(source)
    options.out.mkdir(parents=True, exist_ok=True)
    end = options.end or time.time()
    step = float(max(1, math.ceil(options.minutes * 60 / options.points)))
    window = Window(end - options.minutes * 60, end, step)
    given = dict(each.split("=", 1) for each in options.var)
    for dashboard in chosen:
        mine = opened(dashboard, given, lambda selector, label: values(recorder, selector, label))
        out = options.out / f"{dashboard['uid']}.png"
        drawn = page.render(dashboard, recorder, mine, window, out, width_px=options.width, rows=options.rows)
        lacking = f"; no data: {', '.join(drawn.empty)}" if drawn.empty else ""
        print(f"{out}: {drawn.panels} panels{lacking}")
    if options.record:
        recorder.save(options.record)
    return 0


def _files() -> list[Path]:
    return sorted(file for file in RENDERED.glob("*.json") if file.name != "manifest.json")


def _load(name: str) -> dict[str, Any]:
    file = RENDERED / f"{name if name.startswith('plumbline-') else f'plumbline-{name}'}.json"
    if not file.exists():
        there = ", ".join(each.stem.removeprefix("plumbline-") for each in _files())
        raise PreviewError(f"no page is called {name}; there are: {there}")
    return _read(file)


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make preview", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", help="overview, node …; all without any")
    parser.add_argument("--prometheus", default="http://127.0.0.1:9090", help="who has the data (default %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path(".preview"), help="folder of the pictures (default %(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=30, help="up to now, or to --end (default %(default)g)")
    parser.add_argument("--end", type=float, help="Unix seconds")
    parser.add_argument(
        "--var", action="append", default=[], metavar="NAME=VALUE", help="a variable's value, as in the page's address"
    )
    parser.add_argument("--width", type=int, default=1600, help="pixels (default %(default)s)")
    parser.add_argument("--points", type=int, default=240, help="across the time shown (default %(default)s)")
    parser.add_argument("--rows", type=int, help="only the top of each page, in units of Grafana's grid")
    parser.add_argument("--record", type=Path, help="write what Prometheus answered to this file")
    parser.add_argument("--recorded", type=Path, help="draw from such a file instead")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
