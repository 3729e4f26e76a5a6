"""The plots of a report on baselines: which rows belong to a plot, and what it shows.

Plots follow from the workloads' typed parameters. Rows that differ only in queue depth, or only in block size, are
points of curves, one line for each baseline and device class; a line needs at least three points. Rows that are on no
curve and differ only in operation, device class and baseline are bars of one plot. Rows measured with other parameters
than the workload's (a limited rate) are only in the tables.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from plumbline.baseline.arithmetic import depth_of, size_of
from plumbline.baseline.shown import Figure, ShownRow
from plumbline.config.workloads import BlockWorkload, TcpThroughput, Workload
from plumbline.core.grouping import grouped
from plumbline.core.units import si
from plumbline.pages.charts import Bar, BarChart, Curve, LineChart, Point
from plumbline.pages.document import Plot
from plumbline.report.baseline import words

CURVE_POINTS = 3
# a reader can tell this many lines apart; with more there is one plot for each device class
LINES = 8
# beyond this ratio of highest to lowest an axis is logarithmic
LOG_FACTOR = 20.0
# from this operation size on, throughput matters more than IOPS
LARGE_BYTES = 65536
_NAMES = {
    "depth": {"iodepth", "concurrent", "threads"},
    "size": {"block_size", "object_size", "io_size"},
    "action": {"pattern", "mode", "operation", "random", "sync", "rwmix_read"},
}


class Row(msgspec.Struct, frozen=True):
    """A row with its workload; ``subject`` is the index of its baseline."""

    subject: int
    row: ShownRow
    workload: Workload

    @property
    def plain(self) -> bool:
        """Whether it was measured with the workload's own parameters, so that it may be drawn with others."""
        return self.row.config_hash == self.workload.config_hash()

    def figure(self, name: str) -> Figure | None:
        """``iops``, ``throughput``, ``latency.mean`` …"""
        return next((figure for figure in self.row.figures if figure.figure == name), None)

    def table_text(self, name: str) -> str:
        """As printed and in base units; † marks doubtful figures."""
        figure = self.figure(name)
        return f"{words.figure_text(figure)}{'' if self.row.judges else ' †'}" if figure else ""

    def tooltip(self, figure: Figure) -> str:
        return figure.printed + ("" if self.row.judges else " (in doubt)")


def plots(rows: Iterable[Row], names: Sequence[str]) -> tuple[Plot, ...]:
    return tuple(_plots([row for row in rows if row.plain], names))


def _plots(rows: Sequence[Row], names: Sequence[str]) -> Iterator[Plot]:
    drawn: set[int] = set()
    for over_depth in (True, False):
        for family in _families(rows, over_depth):
            lines = grouped(family, _line)
            if any(len(line) >= CURVE_POINTS for line in lines.values()):
                drawn |= {id(row) for row in family}
                if len(lines) <= LINES:
                    yield _curves(family, names, over_depth, "")
                    continue
                for device_class, group in grouped(family, lambda row: row.row.device_class).items():
                    yield _curves(group, names, over_depth, device_class)
    rest = [row for row in rows if id(row) not in drawn]
    for family in grouped(rest, lambda row: _parameters(row, "action")).values():
        if len(family) > 1:
            yield _bars(family, names)


def _line(row: Row) -> tuple[int, str]:
    return row.subject, row.row.device_class


def _families(rows: Sequence[Row], over_depth: bool) -> Iterable[list[Row]]:
    """Rows that differ only in the queue depth, or only in the operation size."""
    varied = depth_of if over_depth else size_of
    fit = [row for row in rows if varied(row.workload) is not None]
    return grouped(fit, lambda row: _parameters(row, "depth" if over_depth else "size")).values()


def _parameters(row: Row, without: str) -> tuple[object, ...]:
    """All parameters of a row's experiment except those named by ``without``; the operations of a mix stay separate."""
    left_out = {"id", "description"} | _NAMES[without]
    facts = msgspec.to_builtins(row.workload)
    operation = "" if without == "action" else row.row.operation
    return operation, *sorted((key, value) for key, value in facts.items() if key not in left_out)


def _figures(family: Sequence[Row], *, rates: int) -> Iterator[str]:
    """The figures to draw: ``rates`` of IOPS and throughput, the more important one first; then the mean latency, and
    the median if a row has no mean."""
    have = {figure.figure for row in family for figure in row.row.figures}
    workload = family[0].workload
    large = isinstance(workload, TcpThroughput) or (size_of(workload) or 0) >= LARGE_BYTES
    order = ("throughput", "iops") if large and rates == 1 else ("iops", "throughput")
    yield from [figure for figure in order if figure in have][:rates]
    if "latency.mean" in have:
        yield "latency.mean"
    if any(row.figure("latency.p50") and not row.figure("latency.mean") for row in family):
        yield "latency.p50"


def _label(row: Row, names: Sequence[str]) -> str:
    return f"{row.row.device_class}, {names[row.subject]}" if len(names) > 1 else row.row.device_class


def _curves(family: Sequence[Row], names: Sequence[str], over_depth: bool, device_class: str) -> Plot:
    varied = depth_of if over_depth else size_of
    sizes = sorted({x for row in family if (x := varied(row.workload)) is not None})
    ticks = [str(size) if over_depth else words.bytes_text(size) for size in sizes]
    first = family[0].workload
    title = f"{words.action(first, family[0].row.operation)} over {'queue depth' if over_depth else 'block size'}"
    axis = _axis(first, over_depth)
    groups = grouped(family, _line).values()
    series = tuple(_label(group[0], names) for group in groups)
    lines = [[next((row for row in group if varied(row.workload) == size), None) for size in sizes] for group in groups]
    panels, heads, columns = [], [axis.capitalize()], [ticks]
    for figure in _figures(family, rates=1 if over_depth else 2):
        heading = words.FIGURE_TITLES[figure]
        curves = []
        for index, line in enumerate(lines):
            curve = _curve(series[index], index, ticks, line, figure)
            if any(curve.points):
                curves.append(curve)
                heads.append(f"{series[index]}: {heading.lower()}")
                columns.append([row.table_text(figure) if row else "" for row in line])
        panels.append((heading, _line_chart(f"{title}: {heading.lower()}", figure, axis, ticks, curves)))
    shape = words.shape(first, size=over_depth, depth=not over_depth)
    about = ", ".join(filter(None, (words.tool(first), shape, device_class)))
    return Plot(title, about, tuple(panels), series, tuple(heads), tuple(zip(*columns, strict=True)))


def _axis(workload: Workload, over_depth: bool) -> str:
    if not over_depth:
        return "block size" if isinstance(workload, BlockWorkload) else "size of one operation"
    jobs = workload.jobs if isinstance(workload, BlockWorkload) else 1
    return "operations in flight" + (" in each process" if jobs > 1 else "")


def _curve(name: str, index: int, ticks: Sequence[str], line: Sequence[Row | None], figure: str) -> Curve:
    def point(x: float, tick: str, row: Row | None) -> Point | None:
        value = row and row.figure(figure)
        if not (row and value):
            return None
        return Point(x, value.base, f"{name}, {tick}: {row.tooltip(value)}", doubt=not row.row.judges)

    return Curve(name, index, tuple(map(point, _places(len(ticks)), ticks, line)))


def _line_chart(title: str, figure: str, axis: str, ticks: Sequence[str], curves: Sequence[Curve]) -> LineChart:
    """The axis is logarithmic if values are far apart, as IOPS of disks and SSDs are."""
    values = [point.value for curve in curves for point in curve.points if point]
    logarithmic = max(values) > LOG_FACTOR * min(values)
    parts = []
    for curve in curves:
        # text alternative: the two ends of each line; the table has all figures
        known = [(tick, point.tooltip) for tick, point in zip(ticks, curve.points, strict=True) if point]
        ends = dict.fromkeys((known[0], known[-1]))
        parts.append(f"{curve.name}: " + ", ".join(f"{text.rpartition(': ')[2]} at {tick}" for tick, text in ends))
    return LineChart(
        title=title,
        description=f"Lines over {axis}, {'logarithmic' if logarithmic else 'linear'} axis. {'; '.join(parts)}.",
        unit=words.base_unit(figure),
        curves=tuple(curves),
        # the unit goes below its number, so that eight sizes fit side by side
        ticks=tuple(zip(_places(len(ticks)), (tick.replace(" ", "\n", 1) for tick in ticks), strict=True)),
        axis=axis,
        logarithmic=logarithmic,
    )


def _places(count: int) -> list[float]:
    """Ticks are equidistant: queue depths and block sizes double, so the axis is logarithmic to base 2."""
    return [0.5] if count == 1 else [0.04 + 0.92 * index / (count - 1) for index in range(count)]


def _bars(family: Sequence[Row], names: Sequence[str]) -> Plot:
    first = family[0].workload
    used = list(dict.fromkeys(row.subject for row in family))
    groups = grouped(family, lambda row: words.action(row.workload, row.row.operation))
    title = words.tool(first) or ("Reads and writes" if len(groups) > 1 else next(iter(groups)))
    figures = list(_figures(family, rates=1))
    labels = {id(row): _label(row, names if len(used) > 1 else ()) for row in family}

    def bar(group: str, row: Row, figure: Figure) -> Bar:
        text = figure.printed
        if len(text) > words.READABLE:
            unit = words.base_unit(figure.figure)
            text = si(figure.base, unit) + (" IOPS" if unit == "1/s" else "")
        doubt = not row.row.judges
        label = labels[id(row)]
        caption = f"{group}, {label}: {row.tooltip(figure)}"
        return Bar(label, used.index(row.subject), figure.base, text + " (in doubt)" * doubt, caption, doubt)

    panels = []
    for name in figures:
        heading = words.FIGURE_TITLES[name]
        bars = {
            group: tuple(bar(group, row, figure) for row in rows if (figure := row.figure(name)))
            for group, rows in groups.items()
        }
        drawn = tuple((group, of_group) for group, of_group in bars.items() if of_group)
        described = "; ".join(bar.tooltip for _, of_group in drawn for bar in of_group)
        panels.append((heading, BarChart(f"{title}: {heading.lower()}", described, drawn)))
    cells = [(group, labels[id(row)], *map(row.table_text, figures)) for group, rows in groups.items() for row in rows]
    heads = ("Operation", "Of", *(heading for heading, _ in panels))
    series = tuple(names[index] for index in used)
    return Plot(title, words.shape(first), tuple(panels), series, heads, tuple(row for row in cells if any(row[2:])))
