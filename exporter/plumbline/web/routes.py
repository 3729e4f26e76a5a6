"""What each URL answers. No sockets: a request in, a response out; :mod:`plumbline.web.server` transports them."""

import gzip
from collections.abc import Callable, Mapping
from enum import Enum
from urllib.parse import SplitResult, parse_qs, parse_qsl, urlsplit

from msgspec import Struct

from plumbline.metrics.default_page import DefaultPage
from plumbline.metrics.exposition import Exposition, ScrapeTimeout
from plumbline.metrics.negotiation import accepts_gzip, choose_format
from plumbline.metrics.rendering import Renderer
from plumbline.metrics.snapshot import Snapshot

PLAIN = "text/plain; charset=utf-8"
_HTML = "text/html; charset=utf-8"
_JSON = "application/json"
_MAX_NAMES, _FULL = 1000, "full"

# the page contains its own style and needs nothing else; a device name can never become a script
_PAGE_HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
)


class Request(Struct, frozen=True):
    """``target`` is verbatim from the request line; ``headers`` by name in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]


class Response(Struct, frozen=True):
    """``headers`` come besides Content-Type and Content-Length."""

    status: int
    body: bytes
    content_type: str = PLAIN
    headers: tuple[tuple[str, str], ...] = ()


class Route(Enum):
    """What a URL asks for. Whatever is remembered of requests is kept by route: clients choose the URLs."""

    PAGE = "/"
    METRICS = "/metrics"
    HEALTHY = "/-/healthy"
    READY = "/-/ready"
    WHY = "/why"
    RUNBOOK = "/runbooks/"  # and what follows it
    UNKNOWN = "an unknown path"

    @classmethod
    def of(cls, target: str) -> "Route":
        """The route of a request's target, whatever it contains."""
        try:
            return _route(urlsplit(target).path)
        except ValueError:
            return cls.UNKNOWN


def _route(path: str) -> Route:
    if path.startswith(Route.RUNBOOK.value):
        return Route.RUNBOOK
    return next((route for route in Route if route.value == path), Route.UNKNOWN)


class Site:
    """``/metrics`` (``profile=full``: all of it; ``name[]``: those alone; ``also[]``: those beside the default page),
    ``/-/healthy``, ``/-/ready``, ``/runbooks/<Alert>`` and, from ``status``, the HTML page at ``/``.
    ``why`` explains one part of the node, or all of it, as JSON; ``None``: it does not know that name.
    ``ready`` returns what the daemon waits for, or ``None``: no metrics until then, as half a host would be stored as
    the whole."""

    def __init__(
        self,
        exposition: Exposition,
        *,
        status: Callable[[], str],
        ready: Callable[[], str | None],
        why: Callable[[str], bytes | None] = lambda _: None,
        scraped: Callable[[Snapshot], object] = lambda _: None,
    ) -> None:
        """``scraped`` is called with what a page of metrics shows, unless the client chose single metrics."""
        self._exposition, self._scraped = exposition, scraped
        self._status, self._why = status, why
        self._ready = ready
        self._renderer, self._full_renderer = Renderer(), Renderer()
        self._default = DefaultPage()
        self._routes: dict[Route, Callable[[Request, SplitResult], Response]] = {
            Route.PAGE: self._page,
            Route.METRICS: self._metrics,
            Route.HEALTHY: lambda _request, _url: text_response(200, "healthy"),
            Route.READY: self._readiness,
            Route.WHY: self._explanation,
            Route.RUNBOOK: self._runbook,
        }

    def respond(self, request: Request) -> Response:
        """The answer to any request; HEAD gets the same as GET, and the server omits the body."""
        try:
            parts = urlsplit(request.target)
        except ValueError:
            return text_response(400, "malformed URL")
        if f"{parts.path}/" == Route.RUNBOOK.value:
            return text_response(308, f"see {Route.RUNBOOK.value}", ("Location", Route.RUNBOOK.value.lstrip("/")))
        answer = self._routes.get(_route(parts.path))
        if answer is None:
            return text_response(404, f"not found; available: {', '.join(route.value for route in self._routes)}")
        if request.method not in ("GET", "HEAD"):
            return text_response(405, "use GET or HEAD", ("Allow", "GET, HEAD"))
        return answer(request, parts)

    def _metrics(self, request: Request, url: SplitResult) -> Response:
        if (waiting := self._ready()) is not None:
            return _not_ready(waiting)
        try:
            parameters = parse_qs(url.query, max_num_fields=_MAX_NAMES)
        except ValueError:
            return text_response(400, f"more than {_MAX_NAMES} parameters")
        names, also = (frozenset(parameters.get(name, ())) for name in ("name[]", "also[]"))
        profile = parameters.get("profile", [""])[-1]
        if profile not in ("", _FULL):
            return text_response(400, f"no profile {profile!r}; available: {_FULL}")
        try:
            snapshot = self._exposition.scrape()
        except ScrapeTimeout as error:
            return text_response(503, str(error))
        if request.method == "GET" and not names:
            self._scraped(snapshot)
        answer = choose_format(request.headers.get("accept", ""))
        if not profile and not names:
            body = self._renderer.render(self._default.of(snapshot, also), answer.form)
        else:
            body = self._full_renderer.render(snapshot, answer.form, names or None)
        headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"),)
        if accepts_gzip(request.headers.get("accept-encoding", "")):
            # level 1 takes a seventh of level 9's time for a tenth more bytes on text like this; a fixed mtime makes
            # CPython use zlib's own, faster, gzip framing
            body = gzip.compress(body, compresslevel=1, mtime=0)
            headers += (("Content-Encoding", "gzip"),)
        return Response(200, body, answer.content_type, headers)

    def _readiness(self, _request: Request, _url: SplitResult) -> Response:
        waiting = self._ready()
        return text_response(200, "ready") if waiting is None else _not_ready(waiting)

    def _page(self, _request: Request, _url: SplitResult) -> Response:
        try:
            page = self._status()
        except ScrapeTimeout as error:
            return text_response(503, str(error))
        return _html(page)

    def _explanation(self, _request: Request, url: SplitResult) -> Response:
        try:
            what = parse_qs(url.query, max_num_fields=_MAX_NAMES).get("of", [""])[-1]
        except ValueError:
            return text_response(400, f"more than {_MAX_NAMES} parameters")
        try:
            answer = self._why(what)
        except ScrapeTimeout as error:
            return text_response(503, str(error))
        if answer is None:
            return text_response(404, "nothing of that name is known here")
        return Response(200, answer, _JSON, (("Cache-Control", "no-store"),))

    def _runbook(self, _request: Request, url: SplitResult) -> Response:
        from plumbline.pages import runbooks  # noqa: PLC0415  (a daemon that is only scraped needs no page)

        try:
            labels = dict(parse_qsl(url.query, max_num_fields=_MAX_NAMES))
        except ValueError:
            labels = {}
        page = runbooks.page(url.path.removeprefix(Route.RUNBOOK.value), labels)
        return (
            text_response(404, f"no such runbook; {Route.RUNBOOK.value} has them all") if page is None else _html(page)
        )


def _html(page: str) -> Response:
    return Response(200, page.encode("utf-8", "backslashreplace"), _HTML, _PAGE_HEADERS)


def _not_ready(waiting: str) -> Response:
    return text_response(503, f"not ready: {waiting}", ("Retry-After", "1"))


def text_response(status: int, text: str, *headers: tuple[str, str]) -> Response:
    """A response with one line of plain text."""
    return Response(status, f"{text}\n".encode("utf-8", "backslashreplace"), PLAIN, headers)
