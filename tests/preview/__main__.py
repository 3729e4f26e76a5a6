"""Draw the committed dashboards from a Prometheus that has data, by Grafana's own components: one PNG a page.

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

from .answers import PreviewError, Recorded, Recorder, Server, Window, values
from .page import Drawn, easel
from .variables import opened

RENDERED = Path(__file__).parents[2] / "dashboards" / "out"


def main() -> int:
    """0, or 1 with one line on standard error."""
    options = _options()
    try:
        return _run(options)
    except BaseException as error:
        # pytest's, raised by what looks for programs
        if not isinstance(error, PreviewError) and type(error).__name__ != "Skipped":
            raise
        print(f"preview: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    chosen = [_load(name) for name in options.pages] if options.pages else [_read(file) for file in _files()]
    recorded = Recorded.load(options.recorded) if options.recorded else None
    window = recorded.window if recorded else _window(options)
    recorder = Recorder(recorded or Server(options.prometheus), window)
    options.out.mkdir(parents=True, exist_ok=True)
    given = dict(each.split("=", 1) for each in options.var)
    with easel() as drawing:
        for dashboard in chosen:
            uid = dashboard["uid"]
            was = recorded.pages.get(uid, {}) if recorded else {}
            mine = opened(dashboard, {**was, **given}, lambda selector, label: values(recorder, selector, label))
            recorder.pages[uid] = mine
            out = options.out / f"{uid}.png"
            drawn = drawing.draw(
                dashboard, recorder, mine, window, out, width_px=options.width, rows=options.rows, opened=options.opened
            )
            print("\n".join([f"{out}: {_counted(drawn)}", *_complaints(drawn)]), flush=True)
    if options.record:
        recorder.save(options.record)
    return 0


def _window(options: argparse.Namespace) -> Window:
    end = options.end or time.time()
    step = float(max(1, math.ceil(options.minutes * 60 / options.points)))
    return Window(end - options.minutes * 60, end, step)


def _counted(drawn: Drawn) -> str:
    by_grafana = sum(panel.by == "Grafana" for panel in drawn.panels)
    empty = [panel.title for panel in drawn.panels if panel.empty]
    lacking = f"; no data: {', '.join(empty)}" if empty else ""
    return f"{len(drawn.panels)} panels, {by_grafana} by Grafana's components{lacking}"


def _complaints(drawn: Drawn) -> list[str]:
    found = [f"  {panel.title}: {fault}" for panel in drawn.panels for fault in panel.faults]
    return found + [f"  {complaint}" for complaint in drawn.complaints]


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
    parser.add_argument("--opened", action="store_true", help="with the rows that are closed at first")
    parser.add_argument("--record", type=Path, help="write what Prometheus answered to this file")
    parser.add_argument("--recorded", type=Path, help="draw from such a file instead")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
