"""Many scrape targets behind one address: an HTTP proxy that answers for hosts that exist only here.

Prometheus scrapes ``stor01:10047`` by its ``proxy_url``, so targets have the names, labels and hashes of a real fleet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

from . import page_server

Answer = Callable[[], bytes | None]
"""A target's page now; ``None``: it can't be reached."""


@contextlib.contextmanager
def serving(targets: Mapping[str, Answer]) -> Iterator[str]:
    """``targets``: host and port → its page. Gives the proxy's URL for as long as the block lasts."""

    def page(url: str) -> bytes | None:
        answer = targets.get(urlsplit(url).netloc)
        return answer() if answer is not None else None

    with page_server.serving(page) as address:
        yield f"http://{address}"
