import pytest

from plumbline.metrics.negotiation import accepts_gzip, choose_format
from plumbline.metrics.rendering import Format
from support.offenders import for_every

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OM = "application/openmetrics-text; version=1.0.0; charset=utf-8"

# scrape/scrape.go of each release
PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_2_42_PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
    "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3_TEXT_FIRST = "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.2"
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@for_every(
    ("accept", "form", "content_type"),
    [
        (PROMETHEUS_2_42, Format.OPENMETRICS, OM),
        (PROMETHEUS_2_42_PROTOBUF, Format.OPENMETRICS, OM),
        (PROMETHEUS_3, Format.OPENMETRICS, OM + "; escaping=allow-utf-8"),
        (PROMETHEUS_3_TEXT_FIRST, Format.TEXT, "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8"),
        (FIREFOX, Format.TEXT, TEXT),
        ("", Format.TEXT, TEXT),
        ("*/*", Format.TEXT, TEXT),
        ("application/json", Format.TEXT, TEXT),
        ("application/openmetrics-text", Format.OPENMETRICS, OM),
        ("Application/OpenMetrics-Text; Version=1.0.0", Format.OPENMETRICS, OM),
        ('application/openmetrics-text; version="1.0.0"', Format.OPENMETRICS, OM),
        ("application/openmetrics-text; version=0.0.1", Format.TEXT, TEXT),
        ("application/openmetrics-text; version=2.0.0, text/plain;q=0.1", Format.TEXT, TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.3, text/plain;version=0.0.4;q=0.4", Format.TEXT, TEXT),
        ("application/openmetrics-text;q=0, */*;q=0.1", Format.TEXT, TEXT),
        ("application/openmetrics-text;q=2", Format.TEXT, TEXT),
        ("text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0", Format.TEXT, TEXT),
        ("text/plain;q=0", Format.TEXT, TEXT),
        (
            "application/openmetrics-text;version=1.0.0;escaping=dots",
            Format.OPENMETRICS,
            OM + "; escaping=underscores",
        ),
        ("application/openmetrics-text;version=1.0.0;escaping=values", Format.OPENMETRICS, OM + "; escaping=values"),
        ('application/openmetrics-text;escaping="a\r\nb"', Format.OPENMETRICS, OM + "; escaping=underscores"),
        ("application/openmetrics-text," * 1000, Format.TEXT, TEXT),
    ],
)
def test_accept(accept: str, form: Format, content_type: str) -> None:
    answer = choose_format(accept)
    assert (answer.form, answer.content_type) == (form, content_type)


@pytest.mark.parametrize(
    ("accept_encoding", "gzip"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("gzip, deflate, br", True),
        ("deflate;q=0.5, gzip;q=0.1", True),
        ("x-gzip", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("*;q=0, gzip", True),
        ("deflate", False),
        ("gzip;q=nan", False),
    ],
)
def test_accept_encoding(accept_encoding: str, gzip: bool) -> None:
    assert accepts_gzip(accept_encoding) is gzip
