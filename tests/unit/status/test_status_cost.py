"""What the status page may cost: bounded in size, and never anything of a scrape's."""

from __future__ import annotations

import http.client
import logging
import threading

from plumbline.core.single_flight import Shared
from plumbline.metrics.exposition import Exposition
from plumbline.status.page import render_status
from plumbline.web.routes import Site
from plumbline.web.server import Server
from support.status_models import large_model


def test_the_page_of_60_disks_and_200_findings_is_bounded() -> None:
    page = render_status(large_model()).encode()
    assert 100_000 < len(page) < 400_000


def test_a_page_that_hangs_and_a_crowd_that_waits_for_it_keep_no_scrape_waiting() -> None:
    entered, go_on = threading.Semaphore(0), threading.Event()
    made: list[str] = []

    def status() -> str:
        entered.release()
        assert go_on.wait(60)
        made.append("page")
        return "page"

    nothing = Exposition((), None, clock=lambda: 0.0, logger=logging.getLogger("test.cost"))
    site = Site(nothing, status=Shared(status), ready=lambda: None)
    server = Server("127.0.0.1", 0, site.respond, logger=logging.getLogger("test.cost"))
    server.start()
    try:
        answers: list[int] = []
        crowd = [threading.Thread(target=lambda: answers.append(_get(server, "/")), daemon=True) for _ in range(20)]
        for each in crowd:
            each.start()
        assert entered.acquire(timeout=60)
        assert [_get(server, "/metrics") for _ in range(5)] == [200] * 5
        assert made == []
        go_on.set()
        for each in crowd:
            each.join(60)
        assert answers == [200] * 20
        assert len(made) < 20
    finally:
        go_on.set()
        server.stop()


def _get(server: Server, path: str) -> int:
    connection = http.client.HTTPConnection(server.address, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()
