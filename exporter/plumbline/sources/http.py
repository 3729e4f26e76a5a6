"""One question over HTTP or HTTPS, bounded in time and size. A status that is an error is an answer, too."""

import urllib.error
import urllib.request
from http.client import HTTPException
from urllib.parse import urlsplit

from msgspec import Struct

from plumbline.errors import Unavailable
from plumbline.sources.prometheus.access import OPEN, Access

MAX_BYTES = 64 << 20  # a large node's page of metrics has some MB
NO_ANSWER = (OSError, HTTPException, ValueError)


class Page(Struct, frozen=True):
    status: int
    body: bytes
    reason: str = ""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def read_page(url: str, *, timeout_s: float, access: Access = OPEN, proxies: bool = True) -> Page:
    """GET ``url``, following redirects. ``proxies``: those of the environment are used. :class:`Unavailable` without an
    answer."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise Unavailable(f"{url}: not the address of a page; it begins with http:// or https://")
    try:
        return exchange(url, None, timeout_s=timeout_s, access=access, max_bytes=MAX_BYTES, proxies=proxies)
    except NO_ANSWER as error:
        raise Unavailable(f"{url}: {why(error)}") from error


def exchange(
    url: str,
    body: bytes | None,
    *,
    timeout_s: float,
    access: Access,
    max_bytes: int,
    proxies: bool = True,
    method: str | None = None,
    content_type: str | None = None,
) -> Page:
    """The answer to a GET, or to a POST of ``body`` (of a form, without ``content_type``), or to another ``method``,
    cut at ``max_bytes``; raises one of :data:`NO_ANSWER`. The scheme of ``url`` is the caller's to check."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=access.context)]
    if not proxies:
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, data=body, method=method)  # noqa: S310
    if body is not None and content_type is not None:
        request.add_header("Content-Type", content_type)
    if access.authorization is not None:
        request.add_unredirected_header("Authorization", access.authorization)  # not for the target of a redirect
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as response:
            return Page(response.status, response.read(max_bytes), response.reason)
    except urllib.error.HTTPError as error:
        with error:
            return Page(error.code, error.read(max_bytes), error.reason)


def why(error: Exception) -> str:
    """The reason of one of :data:`NO_ANSWER` in words."""
    reason = getattr(error, "reason", None) or error
    return str(reason) or type(reason).__name__
