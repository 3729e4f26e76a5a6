"""``plumbline report``: which period of which Prometheus, in which form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plumbline import __version__
from plumbline.reporting import HTML, MARKDOWN, check_output, form_of, write
from plumbline.review.asking import Server
from plumbline.review.gather import gather
from plumbline.review.period import Period
from plumbline.review.render_html import render_html
from plumbline.review.render_markdown import render_markdown
from plumbline.review.telling import tell
from plumbline.sources.prometheus_access import OPEN, Access

__all__ = ["Wanted", "check_output", "form_of", "review", "write"]

_RENDER = {HTML: render_html, MARKDOWN: render_markdown}


@dataclass(frozen=True, slots=True)
class Wanted:
    """``cluster`` None: all that are there."""

    url: str
    period: Period
    cluster: str | None
    timeout_s: float
    access: Access = OPEN


def review(wanted: Wanted, *, form: str, made_s: float, told: Callable[[int, int, str], None]) -> str:
    """The text; raises :class:`~plumbline.errors.PlumblineError` in one line."""
    server = Server(wanted.url, wanted.timeout_s, told, wanted.access)
    found = gather(server, wanted.period, cluster=wanted.cluster, made_s=made_s, version=__version__)
    return _RENDER[form](tell(found))
