"""One page over HTTP or HTTPS, bounded in time and size. A status that is an error is an answer, too."""

import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlsplit

from plumbline.errors import Unavailable
from plumbline.sources.prometheus.access import OPEN, Access

MAX_BYTES = 64 << 20  # a large node's page of metrics has some MB


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def read_page(url: str, *, timeout_s: float, access: Access = OPEN, proxies: bool = True) -> Page:
    """GET ``url``, following redirects. ``proxies``: those of the environment are used. :class:`Unavailable` without an
    answer."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise Unavailable(f"{url}: not the address of a page; it begins with http:// or https://")
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=access.context)]
    if not proxies:
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url)  # noqa: S310  (its scheme is looked at above)
    if access.authorization is not None:
        request.add_unredirected_header("Authorization", access.authorization)  # not for the target of a redirect
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as response:
            return Page(response.status, response.read(MAX_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            return Page(error.code, error.read(MAX_BYTES))
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise Unavailable(f"{url}: {str(reason) or type(reason).__name__}") from error
