"""A report: which rows make a plot, what is drawn and said, and that no name can become markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from plumbline.baseline.site import parse_site
from plumbline.commands import reporting
from plumbline.config.workloads import load_catalogue
from plumbline.errors import ConfigError
from plumbline.pages.charts import BarChart, LineChart, linear, logarithmic
from plumbline.pages.document import Plot
from plumbline.pages.markdown import escaped
from plumbline.report.baseline import words
from plumbline.report.baseline.report import Report, build, render_html, render_markdown
from support.documented import PROFILES

CATALOGUE = load_catalogue()
UNNOBA = reporting.subject(PROFILES["unnoba-2020"])
HEAD = "schema_version: 1\nsource: measured\nname: ours\nhost: storage7\nrecorded: 2026-10-02T09:15:00Z\nentries:\n"


def site(*entries: str, head: str = HEAD):
    text = head + "".join(f"- {{{entry}}}\n" for entry in entries)
    return reporting.subject(parse_site(text, where="ours.yaml", host=None))


def report(*subjects) -> Report:
    return build(subjects, title="A site", made="2026-10-03 10:00 UTC", version="1")


def plots(found: Report, layer: str) -> dict[str, Plot]:
    (section,) = [each for each in found.sections if each.layer == layer]
    return {f"{plot.title}, {plot.about}": plot for plot in section.plots}


def headings(plot: Plot) -> list[str]:
    return [heading for heading, _ in plot.panels]


def ticks(plot: Plot) -> list[str]:
    return [row[0] for row in plot.rows]


def lines(plot: Plot, panel: int = 0) -> list[list[str | None]]:
    """What each point says."""
    chart = plot.panels[panel][1]
    assert isinstance(chart, LineChart)
    return [[point and point.tooltip.rpartition(": ")[2] for point in curve.points] for curve in chart.curves]


def drawn(plot: Plot) -> ElementTree.Element:
    return ElementTree.fromstring(plot.panels[0][1].svg("x"))


def depths(pattern: str, *values: tuple[int, str], cls: str = "ssd") -> list[str]:
    return [f"workload: {pattern}-4k-qd{depth}-j1, device_class: {cls}, {figures}" for depth, figures in values]


# --- the model


def test_the_seeds_plots_follow_from_the_workloads():
    found = report(UNNOBA)
    assert set(plots(found, "disk")) >= {
        *(f"{what} over queue depth, 4 KiB, one process" for what in (
            "Sequential writes", "Sequential reads", "Random writes", "Random reads")),
        *(f"{what} over block size, 4 in flight in each of 4 processes" for what in (
            "Sequential writes", "Sequential reads", "Random writes", "Random reads")),
        "Sequential writes, through the page cache, 1 GiB, 1 in flight",
        "Sequential writes, 1 GiB, 1 in flight",
    }  # fmt: skip
    plot = plots(found, "disk")["Sequential writes over queue depth, 4 KiB, one process"]
    assert ticks(plot) == ["1", "2", "4", "8", "16", "32", "64", "128"]
    assert plot.series == ("hdd", "ssd")
    assert headings(plot) == ["Operations per second", "Mean latency"]
    hdd, _ = lines(plot)
    assert hdd == [
        "120 IOPS", "239 IOPS", "479 IOPS", None, "3047 IOPS", "11K IOPS", "28K IOPS", None,
    ]  # fmt: skip
    assert plot.panels[0][1].marks[-1].value == 92000


def test_over_block_size_there_are_iops_throughput_and_latency():
    plot = plots(report(UNNOBA), "disk")["Random writes over block size, 4 in flight in each of 4 processes"]
    assert headings(plot) == ["Operations per second", "Throughput", "Mean latency"]
    assert ticks(plot)[:3] == ["4 KiB", "16 KiB", "64 KiB"]
    assert all(mark.doubt for mark in plot.panels[0][1].marks)


def test_pools_are_bars_by_operation_and_large_blocks_have_their_throughput():
    plot = plots(report(UNNOBA), "rados")["rados bench, 4 MiB, 16 in flight"]
    assert headings(plot) == ["Throughput", "Mean latency"]
    chart = plot.panels[0][1]
    assert isinstance(chart, BarChart)
    bars = [(group, bar.label, bar.tooltip.rpartition(": ")[2]) for group, found in chart.groups for bar in found]
    assert {("Sequential writes", "hdd", "395.705 MiB/s"), ("Sequential writes", "ssd", "1083 MiB/s")} <= set(bars)
    assert {label for _, label, _ in bars} >= {"hdd", "ssd", "testec", "testhdd-tiered"}
    assert {group for group, _, _ in bars} == {"Sequential writes", "Sequential reads", "Random reads"}


def test_two_points_are_no_curve_and_one_row_is_no_plot():
    two = site(*depths("randread", (1, "iops: 9000"), (2, "iops: 17000")))
    assert plots(report(two), "disk") == {}
    three = site(*depths("randread", (1, "iops: 9000"), (2, "iops: 17000"), (64, "iops: 80000")))
    (plot,) = plots(report(three), "disk").values()
    assert (ticks(plot), plot.series) == (["1", "2", "64"], ("ssd",))


def test_the_same_experiment_of_two_baselines_shares_a_plot_with_a_line_for_each():
    ours = site(*depths("write", (1, "iops: 9000"), (2, "iops: 17000"), (4, "iops: 20000")))
    plot = plots(report(UNNOBA, ours), "disk")["Sequential writes over queue depth, 4 KiB, one process"]
    assert plot.series == ("hdd, unnoba-2020", "ssd, unnoba-2020", "ssd, ours")


def test_more_lines_than_a_reader_tells_apart_are_a_plot_for_each_class():
    rows = [
        row for n in range(9) for row in depths("randread", *((d, f"iops: {d}000") for d in (1, 2, 4)), cls=f"class{n}")
    ]
    found = plots(report(site(*rows)), "disk")
    assert [plot.about for plot in found.values()] == [f"4 KiB, one process, class{n}" for n in range(9)]


def test_what_was_capped_stands_in_the_table_and_in_no_plot():
    rows = [f"{row}, rate_iops: 50" for row in depths("randread", *((d, f"iops: {d}0") for d in (1, 2, 4)))]
    found = report(site(*rows))
    assert plots(found, "disk") == {}
    (section,) = found.sections
    assert all(row.config_hash for row in section.rows)


def test_a_row_has_a_cell_for_each_baseline_that_knows_the_layer():
    ours = site("workload: write-4k-qd1-j1, device_class: ssd, iops: 9000")
    found = {section.layer: section for section in report(UNNOBA, ours).sections}
    assert found["disk"].columns == ("unnoba-2020", "ours")
    assert found["rados"].columns == ("unnoba-2020",)
    (row,) = [row for row in found["disk"].rows if row.workload == "write-4k-qd1-j1" and row.device_class == "ssd"]
    assert [cell and [figure.printed for figure in cell.row.figures] for cell in row.cells] == [
        ["35 us", "28K IOPS"], ["9000 IOPS"],
    ]  # fmt: skip


# --- scales and words


def test_a_linear_scale_begins_at_zero_and_ends_at_a_round_number():
    scale = linear([5.0, 116_000.0])
    assert (scale.ticks, scale.at(75_000.0)) == ((0, 50_000, 100_000, 150_000), 0.5)


@pytest.mark.parametrize(
    ("values", "low", "high", "ticks"),
    [
        ((87.0, 92_000.0), 50, 100_000, (100, 1000, 10_000, 100_000)),
        ((36e-6, 1.1e-3), 20e-6, 2e-3, (20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3)),
    ],
)
def test_a_logarithmic_scale_ends_at_round_numbers(values, low, high, ticks):
    scale = logarithmic(values)
    assert (scale.low, scale.high) == (pytest.approx(low), pytest.approx(high))
    assert scale.ticks == pytest.approx(ticks)


def test_every_workload_is_told_in_words():
    for workload in CATALOGUE.by_id.values():
        for operation in workload.operations:
            assert words.described(workload, operation)
    told = words.described(CATALOGUE.by_id["randwrite-4k-qd1-j1-dsync"], "write")
    assert told == "Random writes, on stable media, 4 KiB, 1 in flight"


# --- the page


class Page(HTMLParser):
    """Elements that are open, all that were, all text, and ids."""

    VOID = frozenset({"meta", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def every(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def test_the_page_is_whole_and_brings_everything_with_it():
    text = render_html(report(UNNOBA, site("workload: write-4k-qd1-j1, device_class: ssd, iops: 9000")))
    page = Page(text)
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"] for attributes in page.every("a")}
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    assert not page.every("script")
    assert not page.every("img")
    assert [attributes["href"] for attributes in page.every("link")] == ["data:,"]
    assert not re.search(r"(src|href)=\"(?!#|data:,)|url\(|@import", text)
    assert "default-src 'none'" in next(a["content"] for a in page.every("meta") if "http-equiv" in a)


def test_every_plot_has_a_title_a_description_and_its_data():
    page = Page(render_html(report(UNNOBA)))
    pictures = [svg for svg in page.every("svg") if svg.get("role") == "img"]
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert len(pictures) > 20
    assert all(set(svg["aria-labelledby"].split()) <= ids for svg in pictures)
    assert all(svg.get("aria-hidden") == "true" for svg in page.every("svg") if svg not in pictures)
    assert (
        len(page.every("figure"))
        == len(page.every("figcaption"))
        == len([d for d in page.every("details") if d.get("class") == "plot-data"])
    )


def test_figures_stand_as_printed_and_in_base_units_and_doubt_is_marked():
    text = " ".join(Page(render_html(report(UNNOBA))).texts)
    assert "28.20 MiB/s = 29,569,843 B/s" in text
    assert "9.40 Gb/s = 1,175,000,000 B/s" in text
    assert "398.16 ms = 0.3982 s †" in text
    assert "hollow: in doubt" in text
    assert "Disks: all figures (" in text
    assert "† and hollow marks: in doubt" in text
    assert "a digit was lost in the scan" in text


def test_a_line_stops_where_nothing_was_measured():
    ours = site(*depths("read", (1, "iops: 9000"), (2, "iops: 17000"), (4, "latency: {mean: 1ms}"), (8, "iops: 30000")))
    (plot,) = plots(report(ours), "disk").values()
    svg = drawn(plot)
    (piece,) = svg.findall("g/polyline")
    assert len(piece.attrib["points"].split()) == 2
    assert len(svg.findall("g/circle")) == 3
    assert [each.text for each in svg.findall("g/title")] == [
        "ssd", "ssd, 1: 9000 IOPS", "ssd, 2: 17000 IOPS", "ssd, 8: 30000 IOPS",
    ]  # fmt: skip
    assert svg.findtext("desc") == (
        "Lines over operations in flight, linear axis. ssd: 9000 IOPS at 1, 30000 IOPS at 8."
    )


def test_bars_are_as_long_as_their_figures_and_doubt_is_hollow():
    rows = ("workload: rados-write-4m-t16, device_class: a, throughput: 100 MB/s",
            "workload: rados-write-4m-t16, device_class: b, throughput: 25 MB/s")  # fmt: skip
    (plot,) = plots(report(site(*rows)), "rados").values()
    svg = drawn(plot)
    assert [rect.attrib["width"] for rect in svg.findall("g/rect")] == ["360", "90"]
    assert [text.text for text in svg.findall("text")] == ["Sequential writes", "a", "100 MB/s", "b", "25 MB/s"]
    (osd,) = plots(report(UNNOBA), "osd").values()
    texts = [text.text for text in drawn(osd).findall("text")]
    assert {"485 MB/s", "155 MB/s"} <= set(texts)  # printed with 17 digits
    doubtful = plots(report(UNNOBA), "disk")["Random writes over block size, 4 in flight in each of 4 processes"]
    marks = drawn(doubtful).findall("g/circle")
    assert marks
    assert all(mark.attrib["class"].startswith("hollow") for mark in marks)


# --- names that would be markup

HOSTILE = "<script>alert(1)</script>\"'&|`*_[x](javascript:y)"
BAD = (
    "schema_version: 1\nsource: measured\nname: {n}\nhost: {n}\nrecorded: 2026-10-02T09:15:00Z\nkernel: {n}\n"
    "tools: {{fio: {n}}}\nfingerprint: {{kernel: {n}, disks: {{{n}: {n}}}}}\n"
    "devices: [{{name: {n}, device_class: {n}, model: {n}, serial: {n}}}]\nentries:\n"
)


def hostile() -> Report:
    quoted = "'" + HOSTILE.replace("'", "''") + "'"
    rows = [f"{row}, note: {quoted}" for row in depths("read", *((d, "iops: 9") for d in (1, 2, 4)), cls=quoted)]
    rows += [f"workload: rados-{mode}-4m-t16, device_class: {quoted}, iops: 9" for mode in ("write", "seq")]
    return build([site(*rows, head=BAD.format(n=quoted)), UNNOBA], title=HOSTILE, made="now", version="1")


def test_no_name_becomes_html():
    text = render_html(hostile())
    page = Page(text)
    assert page.open == []
    assert not page.every("script")
    assert "javascript:" not in "".join(str(a.get("href")) for a in page.every("a"))
    assert not [a for _, a in page.elements if any(key.startswith("on") for key in a)]
    assert HOSTILE in page.texts
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        assert ElementTree.fromstring(svg).tag == "svg"


def test_no_name_becomes_markdown():
    text = render_markdown(hostile())
    assert "<" not in text
    assert not re.search(r"(?<!\\)\[|(?<!\\)`|(?<!\\)\*", text)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        columns = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(columns) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a|b", "a\\|b"),
        ("a\nb", "a b"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("\\|", "\\\\\\|"),
        ("http://x/", "http:&#8203;//x/"),
        ('"it\'s"', '"it\'s"'),
    ],
)
def test_text_is_escaped_for_markdown(text, said):
    assert escaped(text) == said


# --- the form


def test_the_form_is_asked_for_or_the_files_ending(tmp_path):
    assert reporting.form_of(tmp_path / "a.html", None) == "html"
    assert reporting.form_of(tmp_path / "a.MD", None) == "markdown"
    assert reporting.form_of(tmp_path / "a.html", "markdown") == "markdown"
    assert reporting.form_of(None, "html") == "html"
    with pytest.raises(ConfigError, match=r"name an output: --output FILE\.html, or --format markdown"):
        reporting.form_of(None, None)
