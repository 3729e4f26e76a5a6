"""``plumbline report``: which period of which Prometheus, in which form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plumbline import __version__
from plumbline.commands.reporting import HTML, check_output, form_of, write
from plumbline.pages.document import Document
from plumbline.pages.markdown import markdown
from plumbline.pages.templates import render
from plumbline.report.asking import Server
from plumbline.report.gather import gather
from plumbline.report.period import Period
from plumbline.report.telling import tell
from plumbline.sources.prometheus.access import OPEN, Access

__all__ = ["Wanted", "check_output", "form_of", "review", "write"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """``cluster`` None: all clusters."""

    url: str
    period: Period
    cluster: str | None
    timeout_s: float
    access: Access = OPEN


def review(wanted: Wanted, *, form: str, made_s: float, told: Callable[[int, int, str], None]) -> str:
    """The review's text; raises :class:`~plumbline.errors.PlumblineError` with a one-line message."""
    server = Server(wanted.url, wanted.timeout_s, told, wanted.access)
    found = gather(server, wanted.period, cluster=wanted.cluster, made_s=made_s, version=__version__)
    return written(tell(found), form)


def written(document: Document, form: str) -> str:
    """The whole text, in this form."""
    return render("review.html", document=document) if form == HTML else markdown(document)
