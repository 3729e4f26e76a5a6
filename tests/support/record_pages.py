"""Record what Prometheus answers to every panel of every page, for ``tests/dashboards/test_grafanas_code.py``.

Beside a running ``support.whole_stack``, some minutes after it started, with the Prometheus that it names::

    PYTHONPATH=tests:. python -m support.record_pages http://127.0.0.1:PORT

Each page is recorded with the choice of its variables that has most data: a recorded host may have no disk at all.
"""

from __future__ import annotations

import itertools
import sys
import time
from functools import cache
from pathlib import Path

from preview.answers import Recorder, Server, Window, answer, instant, values

from .dashboards import DASHBOARDS, Dashboard, data_panels, load, substitute
from .paneldata import offered, queries

FILE = Path(__file__).parents[1] / "dashboards" / "preview" / "pages.json.gz"
MINUTES, STEP_S = 5, 30.0
MOST_OFFERS = 2000


def fullest(page: Dashboard, server: Server, now: float) -> dict[str, str]:
    """The choice for which most queries have data; of equals the one that comes first."""
    has = cache(lambda expr: bool(instant(server, expr, Window(now, now, STEP_S))))
    asked = [query.expr for query in queries(page)]
    offers = itertools.islice(offered(page, lambda *about: values(server, *about)), MOST_OFFERS)
    return max(offers, key=lambda chosen: sum(has(substitute(expr, **chosen)) for expr in asked))


def main() -> None:
    """Ask the Prometheus that the command line names."""
    server = Server(sys.argv[1])
    now = time.time() // STEP_S * STEP_S
    recorder = Recorder(server, Window(now - MINUTES * 60, now, STEP_S))
    for page in map(load, DASHBOARDS):
        chosen = recorder.pages[page["uid"]] = fullest(page, server, now)
        for target in (target for panel in data_panels(page) for target in panel["targets"]):
            answer(recorder, target, chosen, recorder.window)
        print(page["uid"], chosen, flush=True)
    recorder.save(FILE)


if __name__ == "__main__":
    main()
