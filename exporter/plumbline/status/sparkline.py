"""A trend of the status page as a sparkline, and in words."""

from __future__ import annotations

from plumbline.core.units import figure_text
from plumbline.pages import charts
from plumbline.pages.htmltext import Html
from plumbline.status.model import Trend


def sparkline(trend: Trend) -> Html:
    """The picture; empty if nothing was measured."""
    return charts.sparkline(trend.values, trend.baseline, in_words(trend))


def in_words(trend: Trend) -> str:
    """The text alternative: ``p50, last 60 min: last 1.05 ms, least 300 µs, most 1.2 ms; baseline 331 µs``."""
    known = [value for value in trend.values if value is not None]
    if not known:
        return f"{trend.of}: nothing measured"
    last, least, most = (figure_text(trend.measure, value) for value in (known[-1], min(known), max(known)))
    baseline = f"baseline {figure_text(trend.measure, trend.baseline)}" if trend.baseline else "no baseline"
    return f"{trend.of}: last {last}, least {least}, most {most}; {baseline}"
