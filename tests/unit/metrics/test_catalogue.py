import math

import pytest

from plumbline.metrics.spec import Kind, MetricSpec, le_text


@pytest.mark.parametrize(
    ("edge", "text"),
    [
        (0.005, "0.005"),
        (1.0, "1.0"),
        (1, "1.0"),
        (0.00025, "0.00025"),
        (0.00001, "1e-05"),
        (100000.0, "100000.0"),
        (1e6, "1e+06"),
        (2500000.0, "2.5e+06"),
        (1234567.5, "1.2345675e+06"),
        (10000000.0, "1e+07"),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.inf, "+Inf"),
    ],
)
def test_bucket_edges_are_openmetrics_canonical_floats(edge: float, text: str) -> None:
    assert le_text(edge) == text


@pytest.mark.parametrize(
    ("name", "kind", "labels", "reason"),
    [
        ("plumbline_x", Kind.COUNTER, (), "end in _total"),
        ("plumbline_x_total", Kind.GAUGE, (), "end in _total"),
        ("node_x", Kind.GAUGE, (), "must be plumbline_"),
        ("plumbline_x", Kind.GAUGE, ("a", "a"), "repeated label"),
        ("plumbline_x", Kind.HISTOGRAM, ("le",), "bad or repeated"),
    ],
)
def test_a_wrong_spec_is_refused(name: str, kind: Kind, labels: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        MetricSpec(name, kind, "Help.", labels)
