"""Both formats, byte by byte."""

import math
from pathlib import Path

import pytest
from prometheus_client import ProcessCollector

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.rendering import Format, Renderer, label_text, number_text
from plumbline.metrics.snapshot import Family, Snapshot
from plumbline.metrics.spec import Kind, MetricSpec

DROPS = MetricSpec("plumbline_nic_drops_total", Kind.COUNTER, r'Drops "by" cause, C:\path.', ("device", "cause"))
LOAD = MetricSpec("plumbline_load", Kind.GAUGE, "Load.")
LATENCY = MetricSpec("plumbline_latency_seconds", Kind.HISTOGRAM, "Latency.", ("operation",))
COUNTS = MetricSpec("plumbline_size_bytes", Kind.HISTOGRAM, "Without labels.")

EDGES = (0.005, 1.0)


def page(*families: Family, form: Format = Format.TEXT, names: set[str] | None = None) -> str:
    wanted = None if names is None else frozenset(names)
    return Renderer().render(Snapshot(families, ()), form, wanted).decode()


def test_a_counter_in_both_formats() -> None:
    family = Family(DROPS, (("eth0", "ring"), ("eth1", "ring")), [3, 0])
    assert page(family) == (
        '# HELP plumbline_nic_drops_total Drops "by" cause, C:\\\\path.\n'
        "# TYPE plumbline_nic_drops_total counter\n"
        'plumbline_nic_drops_total{device="eth0",cause="ring"} 3\n'
        'plumbline_nic_drops_total{device="eth1",cause="ring"} 0\n'
    )
    assert page(family, form=Format.OPENMETRICS) == (
        '# HELP plumbline_nic_drops Drops \\"by\\" cause, C:\\\\path.\n'
        "# TYPE plumbline_nic_drops counter\n"
        'plumbline_nic_drops_total{device="eth0",cause="ring"} 3\n'
        'plumbline_nic_drops_total{device="eth1",cause="ring"} 0\n'
        "# EOF\n"
    )


def test_a_histogram_has_the_same_lines_in_both_formats() -> None:
    lines = (
        'plumbline_latency_seconds_bucket{operation="read",le="0.005"} 7\n'
        'plumbline_latency_seconds_bucket{operation="read",le="1.0"} 9\n'
        'plumbline_latency_seconds_bucket{operation="read",le="+Inf"} 10\n'
        'plumbline_latency_seconds_sum{operation="read"} 3.5\n'
        'plumbline_latency_seconds_count{operation="read"} 10\n'
    )
    head = "# HELP plumbline_latency_seconds Latency.\n# TYPE plumbline_latency_seconds histogram\n"
    family = Family(LATENCY, (("read",),), [HistogramValue(EDGES, (7, 9), 10, 3.5)])
    assert page(family) == head + lines
    assert page(family, form=Format.OPENMETRICS) == head + lines + "# EOF\n"


def test_a_histogram_without_labels() -> None:
    assert page(Family(COUNTS, ((),), [HistogramValue((4096.0,), (1,), 1, 512)])).splitlines()[2:] == [
        'plumbline_size_bytes_bucket{le="4096.0"} 1',
        'plumbline_size_bytes_bucket{le="+Inf"} 1',
        "plumbline_size_bytes_sum 512",
        "plumbline_size_bytes_count 1",
    ]


def test_no_families_are_an_empty_page() -> None:
    assert page() == ""
    assert page(form=Format.OPENMETRICS) == "# EOF\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "-0.0"),
        (1.5, "1.5"),
        (2**63, "9223372036854775808"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (10**400, "+Inf"),
        (-(10**400), "-Inf"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number_text(value) == text
    assert page(Family(LOAD, ((),), [value])).splitlines()[2] == f"plumbline_load {text}"


def test_special_values_among_others_that_hide_them_in_a_sum() -> None:
    labels = tuple((str(i), "") for i in range(4))
    lines = page(Family(DROPS, labels, [math.inf, -math.inf, 1, 1e308])).splitlines()[2:]
    assert [line.rpartition(" ")[2] for line in lines] == ["+Inf", "-Inf", "1", "1e+308"]


def test_a_nan_sum_of_a_histogram() -> None:
    assert 'sum{operation="r"} NaN\n' in page(Family(LATENCY, (("r",),), [HistogramValue(EDGES, (0, 0), 0, math.nan)]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ('say "x"', r"say \"x\""),
        ("C:\\", r"C:\\"),
        ("two\nlines", r"two\nlines"),
        (r"\n", r"\\n"),
        ("tab\tand\rreturn stay", "tab\tand\rreturn stay"),
        ("größe 漢", "größe 漢"),
    ],
)
def test_label_escaping(value: str, text: str) -> None:
    assert label_text(value) == text


def three_families() -> tuple[Family, ...]:
    return (
        Family(LATENCY, (("read",),), [HistogramValue((0.1,), (1,), 2, 0.5)]),
        Family(LOAD, ((),), [0.5]),
        Family(DROPS, (("eth0 \n", 'plumbline_load{a="b"} 1'),), [1]),
    )


@pytest.mark.parametrize(
    ("names", "samples"),
    [
        ({"plumbline_load"}, ["plumbline_load 0.5"]),
        (
            {"plumbline_nic_drops_total"},
            [r'plumbline_nic_drops_total{device="eth0 \n",cause="plumbline_load{a=\"b\"} 1"} 1'],
        ),
        (
            {"plumbline_nic_drops"},
            [r'plumbline_nic_drops_total{device="eth0 \n",cause="plumbline_load{a=\"b\"} 1"} 1'],
        ),
        (
            {"plumbline_latency_seconds_sum", "plumbline_latency_seconds_count"},
            [
                'plumbline_latency_seconds_sum{operation="read"} 0.5',
                'plumbline_latency_seconds_count{operation="read"} 2',
            ],
        ),
        (
            {"plumbline_latency_seconds"},
            [
                'plumbline_latency_seconds_bucket{operation="read",le="0.1"} 1',
                'plumbline_latency_seconds_bucket{operation="read",le="+Inf"} 2',
                'plumbline_latency_seconds_sum{operation="read"} 0.5',
                'plumbline_latency_seconds_count{operation="read"} 2',
            ],
        ),
        ({"up"}, []),
    ],
)
def test_name_filter(names: set[str], samples: list[str]) -> None:
    lines = page(*three_families(), names=names).splitlines()
    assert [line for line in lines if not line.startswith("#")] == samples
    assert len(lines) == len(samples) + (2 if samples else 0)


def test_repeated_rendering_follows_values_labels_and_edges() -> None:
    renderer = Renderer()

    def lines(*families: Family) -> list[str]:
        got = renderer.render(Snapshot(families, ()), Format.TEXT).decode()
        assert got == page(*families)  # a renderer with memory says what one without says
        return got.splitlines()

    one, two = (("a", "x"),), (("a", "x"), ("b", "x"))
    lines(Family(DROPS, one, [1]))
    assert lines(Family(DROPS, one, [2]))[2:] == ['plumbline_nic_drops_total{device="a",cause="x"} 2']
    assert len(lines(Family(DROPS, two, [2, math.nan]))) == 4
    assert len(lines(Family(DROPS, one, [3]))) == 3
    for edges in ((0.1,), (0.2,), (0.1, 0.2)):
        counts = (1,) * len(edges)
        family = Family(LATENCY, (("r",),), [HistogramValue(edges, counts, 1, 0.1)])
        assert f'le="{edges[-1]}"' in lines(family)[-4]


def test_the_cache_holds_the_last_page_only_and_a_filtered_page_leaves_it_alone() -> None:
    renderer = Renderer()
    everything = Snapshot(three_families(), ())
    renderer.render(everything, Format.TEXT)
    assert set(renderer._cache) == {"plumbline_latency_seconds", "plumbline_load", "plumbline_nic_drops_total"}
    renderer.render(everything, Format.TEXT, frozenset({"plumbline_load"}))
    assert len(renderer._cache) == 3
    renderer.render(Snapshot(three_families()[1:2], ()), Format.TEXT)
    assert set(renderer._cache) == {"plumbline_load"}
    for i in range(100):  # a device that is another one at every scrape
        renderer.render(Snapshot((Family(DROPS, ((f"veth{i}", "x"),), [1]),), ()), Format.TEXT)
    assert sum(len(block._parts) for block in renderer._cache.values()) == 3


@pytest.mark.parametrize("form", Format)
def test_process_metrics_come_along(form: Format) -> None:
    process = tuple(ProcessCollector(registry=None).collect())
    snapshot = Snapshot((Family(LOAD, ((),), [1]),), (), process)
    got = Renderer().render(snapshot, form).decode()
    assert "\nprocess_resident_memory_bytes " in got
    assert got.count("# EOF\n") == (1 if form is Format.OPENMETRICS else 0)
    assert got.endswith("# EOF\n") or form is Format.TEXT
    only = Renderer().render(snapshot, form, frozenset({"process_cpu_seconds_total"})).decode()
    assert [line.partition(" ")[0] for line in only.splitlines() if line[0] != "#"] == ["process_cpu_seconds_total"]


def test_process_metrics_of_another_proc(tmp_path: Path) -> None:
    assert list(ProcessCollector(proc=str(tmp_path), registry=None).collect()) == []
