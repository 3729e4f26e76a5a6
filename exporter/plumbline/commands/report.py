"""``plumbline report``: the review of a period, from Prometheus, as one page.

Exit codes: 0 written, 1 failed (one line says what and what to do), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from plumbline.commands.shared import access, add_page, add_prometheus, duration, page_form, write_page
from plumbline.errors import ConfigError


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the parser of ``plumbline report``."""
    report = commands.add_parser(
        "report",
        help="review a quarter: one HTML page, or Markdown, from Prometheus",
        description="What a Prometheus server remembers of a period, for the quarterly review: how much of the time"
        " each layer was within its baseline, who was not, what changed and when, capacity, headroom, findings, alerts,"
        " wear-out, upgrades. Days are whole days of UTC. No daemon need run here.",
        epilog="docs/report.md says how each section is computed. Of baselines alone: plumbline baseline report.",
    )
    add_prometheus(report, required=True)
    report.add_argument("--from", dest="first", metavar="DAY", help="the first day, such as 2026-08-01")
    report.add_argument("--to", dest="last", metavar="DAY", help="the last day (yesterday)")
    report.add_argument("--days", type=int, metavar="N", help="so many days, where --from or --to is left out (90)")
    report.add_argument("--cluster", metavar="NAME", help="the label cluster there (all of them)")
    add_page(report)
    report.add_argument("--timeout", default="60s", metavar="TIME", help="of one query (60s)")
    report.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plumbline.commands import reviewing  # noqa: PLC0415  (rich and the rest: only who needs it)
    from plumbline.core.console import Step, make_console, progress  # noqa: PLC0415
    from plumbline.report.period import parse_period  # noqa: PLC0415

    form = page_form(options)
    timeout_s = duration(options.timeout, "--timeout") or 0.0
    if timeout_s <= 0:
        raise ConfigError("--timeout", "must be greater than 0", value=options.timeout)
    now_s = time.time()
    period = parse_period(first=options.first, last=options.last, days=options.days, now_s=now_s)
    wanted = reviewing.Wanted(options.prometheus, period, options.cluster, timeout_s, access(options))
    asking = "asking Prometheus"
    with progress(make_console(sys.stderr), asking, piped=False) as show:
        text = reviewing.review(
            wanted,
            form=form,
            made_s=now_s,
            told=lambda done, of, what: show(Step(asking, done / of if of else None, more=f"{done}/{of} {what}")),
        )
    return write_page(options, text)
