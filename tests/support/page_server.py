"""A small HTTP server whose pages a test makes as they are asked for; also a proxy that answers for hosts by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from .answering import Request, answering

Page = Callable[[str], bytes | None]
"""What is asked for (a path; a proxy is asked for a whole URL) → the body now; ``None``: it can't be had, 502."""


@contextlib.contextmanager
def serving(page: Page) -> Iterator[str]:
    """Serve on loopback for as long as the block lasts; gives ``127.0.0.1:port``."""

    def handle(request: Request) -> None:
        body = page(request.path)
        if body is None:
            request.send_error(502)
        else:
            request.answer(body, kind="text/plain; version=0.0.4")

    with answering(handle, protocol="HTTP/1.1") as url:
        yield url.removeprefix("http://")
