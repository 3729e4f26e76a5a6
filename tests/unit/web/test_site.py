"""What each URL answers, without sockets."""

import gzip
import logging
import re

import pytest

from plumbline.metrics.exposition import Exposition, SkipHook
from plumbline.metrics.spec import Kind, MetricSpec, Samples
from plumbline.web.routes import Request, Response, Route, Site
from support.fake_collectors import fake
from support.offenders import for_every

MTU = MetricSpec("plumbline_nic_mtu_bytes", Kind.GAUGE, "MTU.", ("device",))
UNREAD = MetricSpec("plumbline_nic_unread", Kind.GAUGE, "No rule, page or command reads it.", ("device",))


def collect(_skip: SkipHook) -> Samples:
    return [(MTU, ("eth0",), 1500), (UNREAD, ("eth0",), 1)]


LINK = fake("link", (MTU, UNREAD), collect)


def site(*, ready: str | None = None, page: str = "<p>fine</p>") -> Site:
    exposition = Exposition([LINK], None, clock=lambda: 0.0, logger=logging.getLogger("test"))
    return Site(exposition, status=lambda: page, ready=lambda: ready)


def get(target: str, method: str = "GET", ready: str | None = None, **headers: str) -> Response:
    named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return site(ready=ready).respond(Request(method, target, named))


def test_metrics_as_text_by_default() -> None:
    response = get("/metrics")
    assert (response.status, response.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b'\nplumbline_nic_mtu_bytes{device="eth0"} 1500\n' in response.body
    assert "Content-Encoding" not in dict(response.headers)


def test_metrics_as_openmetrics_and_compressed() -> None:
    response = get("/metrics", accept="application/openmetrics-text;version=1.0.0", accept_encoding="gzip")
    assert response.content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert dict(response.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.body).endswith(b"# EOF\n")


@pytest.mark.parametrize("query", ["name[]=plumbline_nic_mtu_bytes", "name%5B%5D=plumbline_nic_mtu_bytes&name[]=x"])
def test_names(query: str) -> None:
    assert get(f"/metrics?{query}").body.splitlines()[2:] == [b'plumbline_nic_mtu_bytes{device="eth0"} 1500']


def test_a_name_that_does_not_exist_is_an_empty_page() -> None:
    assert get("/metrics?name[]=up").body == b""


def test_what_nothing_of_ours_reads_is_on_the_full_page_alone() -> None:
    for query, metrics in {
        "": [MTU],
        "?profile=full": [MTU, UNREAD],
        "?also[]=plumbline_nic_unread": [MTU, UNREAD],
        "?also[]=x": [MTU],
        "?name[]=plumbline_nic_unread": [UNREAD],
        "?profile=full&name[]=plumbline_nic_unread": [UNREAD],
        "?name[]=plumbline_nic_unread&also[]=plumbline_nic_mtu_bytes": [UNREAD],
    }.items():
        found = re.findall(r"^# HELP (plumbline_nic_\w+)", get(f"/metrics{query}").body.decode(), re.MULTILINE)
        assert found == [each.name for each in metrics], query
    unknown = get("/metrics?profile=tiny")
    assert (unknown.status, unknown.body) == (400, b"no profile 'tiny'; available: full\n")


def test_too_many_names() -> None:
    assert get("/metrics?" + "name[]=a&" * 2000).status == 400


def test_health_and_readiness() -> None:
    assert (get("/-/healthy").status, get("/-/healthy").body) == (200, b"healthy\n")
    assert (get("/-/ready").status, get("/-/ready").body) == (200, b"ready\n")
    waiting = get("/-/ready", ready="the first collection")
    assert (waiting.status, waiting.body) == (503, b"not ready: the first collection\n")
    assert get("/-/healthy", ready="the first collection").status == 200


def test_the_status_page_can_run_no_script_and_survives_any_text() -> None:
    response = site(page="<p>\udcff ü</p>").respond(Request("GET", "/", {}))
    assert response.body == "<p>\\udcff ü</p>".encode()
    assert response.content_type == "text/html; charset=utf-8"
    assert dict(response.headers)["Content-Security-Policy"].startswith("default-src 'none'; style-src")


@pytest.mark.parametrize("target", ["/runbooks/", "/runbooks/PlumblineDown", "/runbooks/PlumblineDown.md?from=mail"])
def test_a_runbook_is_a_page_without_script(target: str) -> None:
    response = get(target)
    assert (response.status, response.content_type) == (200, "text/html; charset=utf-8")
    assert b"PlumblineDown" in response.body
    assert dict(response.headers)["Content-Security-Policy"].startswith("default-src 'none'; style-src")


def test_their_list_is_found_without_the_slash() -> None:
    """Relative: a proxy may have put a path before it."""
    response = get("/runbooks")
    assert (response.status, dict(response.headers)["Location"]) == (308, "runbooks/")


def test_a_runbook_has_the_labels_of_its_link() -> None:
    response = get("/runbooks/PlumblineDiskHung?instance=stor07%3A10047&device=sdq&device_class=hdd")
    assert b"INSTANCE=stor07:10047" in response.body
    assert b"DEVICE=sdq" in response.body
    too_many = get("/runbooks/PlumblineDiskHung?" + "&".join(f"a{number}=1" for number in range(2000)))
    assert b"DEVICE=sdg" in too_many.body


@pytest.mark.parametrize(
    ("method", "target", "status", "text"),
    [
        ("GET", "/favicon.ico", 404, b"not found; available: /, /metrics, /-/healthy, /-/ready, /why, /runbooks/\n"),
        ("GET", "/metrics/", 404, b"not found"),
        ("GET", "/runbooks/PlumblineNothing", 404, b"no such runbook; /runbooks/ has them all\n"),
        ("POST", "/runbooks/PlumblineDown", 405, b"use GET or HEAD\n"),
        ("GET", "http://[::1/metrics", 400, b"malformed URL\n"),
        ("POST", "/metrics", 405, b"use GET or HEAD\n"),
        ("DELETE", "/", 405, b"use GET or HEAD\n"),
        ("POST", "/x", 404, b"not found"),
    ],
)
def test_errors(method: str, target: str, status: int, text: bytes) -> None:
    response = get(target, method)
    assert response.status == status
    assert response.body.startswith(text)
    assert (dict(response.headers).get("Allow") == "GET, HEAD") == (status == 405)


def test_absolute_targets_are_understood() -> None:
    assert get("http://proxy:1/-/healthy").body == b"healthy\n"


def test_until_the_host_has_been_read_there_are_no_metrics() -> None:
    for target in ("/metrics", "/metrics?name[]=plumbline_nic_mtu_bytes", "/-/ready"):
        response = get(target, ready="the first page")
        assert (response.status, response.body) == (503, b"not ready: the first page\n")
        assert ("Retry-After", "1") in response.headers
    assert get("/-/healthy", ready="the first page").status == 200
    assert get("/", ready="the first page").status == 200


HOSTILE = (
    "/runbooks/Plumbline" + "a" * 250,
    "/runbooks/Plumbline" + "a" * 15_000,
    "/runbooks/Plumbline%00",
    "/runbooks/..%2f..%2fetc%2fpasswd",
    "/runbooks/../PlumblineDown",
    "/runbooks/PlumblineDown/",
    "/runbooks/PlumblineDown%0a",
    "/runbooks/PlumblineDown.md.md",
    "/runbooks/layers",
    "/runbooks/Plumbline\udcff",
    "/runbooks/Plumbline\u00fc",
    "/runbooks/.md",
    "/runbooks//",
    "/" + "a" * 15_000,
    "/metrics/",
    "/%2e%2e/metrics",
    "//metrics",
    "http://[",
    "/-/healthy%00",
)


@for_every("target", HOSTILE)
def test_what_nobody_offers_is_not_found_and_touches_no_file(target: str) -> None:
    assert get(target).status in (400, 404)


@pytest.mark.parametrize("path", ["/metrics", "/", "/runbooks/", "/runbooks/PlumblineDown"])
@pytest.mark.parametrize(
    "query",
    ["&" * 15_000, "a=1&" * 3000, "%" * 15_000, "name[]=" + "%00" * 5000, "device=" + "a" * 15_000, "a[" * 7000,
     "%ff=%fe", "layer=../../etc/passwd", "layer=" + "x" * 300, "device=%0a%00"],
)  # fmt: skip
def test_no_query_is_a_mistake(path: str, query: str) -> None:
    assert get(f"{path}?{query}").status in (200, 400)


@pytest.mark.parametrize(
    ("target", "route"),
    [("/", Route.PAGE), ("/?x", Route.PAGE), ("/metrics?a", Route.METRICS), ("http://x/metrics", Route.METRICS),
     ("/runbooks/x/y", Route.RUNBOOK), ("/-/ready", Route.READY), ("/-/healthy", Route.HEALTHY),
     ("/-/x", Route.UNKNOWN), ("http://[", Route.UNKNOWN), ("*", Route.UNKNOWN), ("", Route.UNKNOWN)],
)  # fmt: skip
def test_the_route_of_a_target(target: str, route: Route) -> None:
    assert Route.of(target) is route


def test_why_is_asked_about_a_name() -> None:
    asked: list[str] = []

    def why(what: str) -> bytes | None:
        asked.append(what)
        return b"{}" if what != "nothing" else None

    exposition = Exposition([LINK], None, clock=lambda: 0.0, logger=logging.getLogger("test"))
    pages = Site(exposition, status=str, ready=lambda: None, why=why)
    answers = [pages.respond(Request("GET", f"/why{query}", {})) for query in ("", "?of=osd.3", "?of=nothing")]
    assert [(answer.status, answer.content_type) for answer in answers] == [
        (200, "application/json"), (200, "application/json"), (404, "text/plain; charset=utf-8"),
    ]  # fmt: skip
    assert asked == ["", "osd.3", "nothing"]
    assert pages.respond(Request("GET", "/why?" + "&" * 2000, {})).status == 400


def test_a_fault_of_ours_is_not_the_clients() -> None:
    def why(_: str) -> bytes:
        raise ValueError("a mistake in the page")

    exposition = Exposition([LINK], None, clock=lambda: 0.0, logger=logging.getLogger("test"))
    pages = Site(exposition, status=str, ready=lambda: None, why=why)
    with pytest.raises(ValueError, match="a mistake"):  # the server answers 500 and logs it
        pages.respond(Request("GET", "/why", {}))
