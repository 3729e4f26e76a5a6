"""A page drawn in a browser by Grafana's components: a PNG, and what came of each panel."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.browser import Page, browser

from .answers import Source, Window, answer
from .bundle import bundle
from .layout import layout
from .variables import ALL, substitute

NOTHING: Mapping[str, Any] = {"resultType": "vector", "result": []}
"""An answer without a series."""


@dataclass(frozen=True, slots=True)
class Made:
    """What Grafana makes of a panel; ``grafana/job.ts`` says what the fields are."""

    title: str
    unknown: list[str]
    unmatched: list[str]
    headings: list[str]
    rows: list[list[str | float | None]]
    texts: list[list[str]]
    tiles: list[list[str]]
    empty: bool


@dataclass(frozen=True, slots=True)
class Shown(Made):
    """A panel as it was drawn."""

    type: str
    by: str
    faults: list[str]
    text: str
    cut: list[str]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A page; ``complaints``: what the browser wrote to its console."""

    panels: tuple[Shown, ...]
    complaints: tuple[str, ...]


class Easel:
    """A browser with our script, for one page after the other."""

    def __init__(self, tab: Page, url: str) -> None:
        self._tab, self._url = tab, url

    def draw(
        self, dashboard: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window, out: Path,
        *, width_px: int = 1600, rows: int | None = None, opened: bool = False,
    ) -> Drawn:  # fmt: skip
        """Write the page to ``out``. ``rows``: the top only, so many units high; ``opened``: with all rows open."""
        places = layout(dashboard, width_px, opened=opened, rows=rows)
        chosen = "   ".join(f"{name}: {'All' if value == ALL else value or '–'}" for name, value in values.items())
        sheet = {
            "title": dashboard["title"],
            "description": dashboard["description"],
            "chosen": chosen,
            "width": width_px,
            "height": places.height,
            "from": window.start * 1000,
            "to": window.end * 1000,
            "headings": [{"title": substitute(row["title"], values), "box": box} for row, box in places.headings],
            "panels": [
                {
                    **_job(panel, [answer(source, target, values, window) for target in panel["targets"]], window.step),
                    "variables": dict(values),
                    "box": box,
                }
                for panel, box in places.panels
            ],
        }
        self._tab.complaints.clear()
        # as high as the page: what is out of view is not drawn
        self._tab.open(self._url, width=width_px, height=places.height)
        shown = self._tab.evaluate(f"draw({json.dumps(sheet)})")
        self._tab.screenshot(out, whole=False)
        shrink(out)
        return Drawn(tuple(Shown(**each) for each in shown), tuple(self._tab.complaints))

    def made(
        self, panels: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]], *, step_s: float = 60.0
    ) -> list[Made]:
        """Of each ``(panel, what Prometheus answered to each of its queries)``, without drawing it."""
        self._tab.open(self._url, width=800)
        jobs = [_job(panel, answers, step_s) for panel, answers in panels]
        return [Made(**each) for each in self._tab.evaluate(f"made({json.dumps(jobs)})")]


@contextlib.contextmanager
def easel() -> Iterator[Easel]:
    """For as long as the block lasts. :class:`.answers.PreviewError` says what is missing."""
    with _served(bundle()) as url, browser() as started:
        yield Easel(started.page(), url)


def shrink(file: Path) -> None:
    """A PNG in place: 256 colours, no metadata. An octree keeps also the colour of a thin line; median cut does not."""
    from PIL import Image

    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    small.save(file, optimize=True)


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the page's own complaints say what it could not load."""


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Over HTTP, because a page from a file may not load the icons."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Silent, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/index.html"
        finally:
            server.shutdown()
            thread.join()


def _job(panel: Mapping[str, Any], answers: Sequence[Mapping[str, Any]], step_s: float) -> dict[str, Any]:
    return {"panel": panel, "answers": list(answers), "variables": {}, "step": step_s * 1000}
