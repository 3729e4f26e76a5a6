"""The panels of a report on baselines as charts: axes in base units with SI prefixes, figures as printed."""

from __future__ import annotations

from plumbline.baseline import report_words as words
from plumbline.baseline.report_model import Bar, Line, Panel, Plot, Value
from plumbline.htmltext import Html
from plumbline.pages import charts
from plumbline.pages.figures import si


def panel_svg(plot: Plot, panel: Panel, ident: str) -> Html:
    """One panel. ``ident`` is unique on the page."""
    title = f"{plot.title}: {words.FIGURE_TITLES[panel.figure].lower()}"
    unit = words.base_unit(panel.figure)
    if not panel.lines:
        groups: dict[str, list[charts.Bar]] = {}
        for bar in panel.bars:
            groups.setdefault(bar.group, []).append(_bar(bar, unit))
        described = "; ".join(f"{bar.group}, {bar.label}: {bar.value.printed}" for bar in panel.bars)
        return charts.bar_chart(title, described, groups, ident)
    chart = charts.LineChart(
        title=title,
        description=_described(plot, panel),
        unit=unit,
        curves=tuple(_curve(plot, line) for line in panel.lines),
        # a unit goes below its number, so that eight sizes stand side by side
        ticks=tuple((_part(plot, index), tick.replace(" ", "\n", 1)) for index, tick in enumerate(plot.ticks)),
        axis=plot.axis,
        logarithmic=panel.logarithmic,
    )
    return charts.line_chart(chart, ident)


def _part(plot: Plot, index: int) -> float:
    """Ticks stand at equal distances: queue depths and block sizes double, so the axis is logarithmic to the base 2."""
    return 0.5 if len(plot.ticks) == 1 else 0.04 + 0.92 * index / (len(plot.ticks) - 1)


def _curve(plot: Plot, line: Line) -> charts.Curve:
    name = plot.series[line.series]
    points = (
        None
        if value is None
        else charts.Point(_part(plot, index), value.base, f"{name}, {tick}: {_said(value)}", value.doubt)
        for index, (tick, value) in enumerate(zip(plot.ticks, line.values, strict=True))
    )
    return charts.Curve(name, line.series, tuple(points))


def _bar(bar: Bar, unit: str) -> charts.Bar:
    value = bar.value
    text = value.printed
    if len(text) > words.READABLE:
        text = si(value.base, unit) + (" IOPS" if unit == "1/s" else "")
    said = f"{bar.group}, {bar.label}: {_said(value)}"
    return charts.Bar(bar.label, bar.subject, value.base, text + " (in doubt)" * value.doubt, said, value.doubt)


def _described(plot: Plot, panel: Panel) -> str:
    """For who does not see it: what is drawn, and of each line its ends. The table below has all figures."""
    parts = []
    for line in panel.lines:
        known = [(tick, value) for tick, value in zip(plot.ticks, line.values, strict=True) if value is not None]
        ends = [known[0]] if len(known) == 1 else [known[0], known[-1]]
        parts.append(f"{plot.series[line.series]}: " + ", ".join(f"{value.printed} at {tick}" for tick, value in ends))
    scale = "logarithmic" if panel.logarithmic else "linear"
    return f"Lines over {plot.axis}, {scale} axis. {'; '.join(parts)}."


def _said(value: Value) -> str:
    return value.printed + (", in doubt" if value.doubt else "")
