"""The first page of metrics is of the whole host: until there is one, ``/metrics`` says to come again."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from pathlib import Path

import pytest

from plumbline.config.model import Config
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.daemon import daemon as app
from plumbline.daemon.running import HostContext
from plumbline.probes.run.state import StateStore
from support.admin_sockets import AdminSocket
from support.daemon import Answer, Daemon, eventually, running
from support.scraped import Scrape


def test_what_takes_a_second_is_on_the_first_page(folder: Path) -> None:
    """An OSD that does not answer: the job that asks it ends a second or two after all others."""
    with tempfile.TemporaryDirectory(prefix="plumbline-first-") as short:  # a socket's path has 108 bytes
        silent = AdminSocket(Path(short) / "ceph-osd.1.asok", {}, silent=True)
        try:
            config = {"probes": [], "ceph": {"admin_sockets": [f"{short}/*.asok"]}}
            with running(folder, config=config, whole=False) as daemon:
                answers = answers_until_there_is_a_page(daemon)
        finally:
            silent.close()
    refused, page = answers[:-1], Scrape.of_text(answers[-1].text)
    assert refused, "the host was not read yet"
    for answer in refused:
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.text == "not ready: the host is being read for the first time\n"
    assert page.get("plumbline_osd_socket_up", ceph_daemon="osd.1") == 0
    assert page.get("plumbline_collector_available", collector="finding") == 1


def answers_until_there_is_a_page(daemon: Daemon) -> list[Answer]:
    """Of ``/metrics``, one after the other; meanwhile all else works."""
    answers = [daemon.get("/metrics?profile=full")]
    assert daemon.get("/-/healthy").status == 200
    assert "Still starting" in daemon.page()
    assert daemon.get("/-/ready").status == 503

    def ready() -> bool:
        answers.append(daemon.get("/metrics?profile=full"))
        return answers[-1].status == 200

    eventually(ready)
    assert daemon.get("/-/ready").status == 200
    return answers


def made(folder: Path) -> app.Daemon:
    store = StateStore(folder / "state")
    world = HostContext(None, store.directory, Roots.under(folder), {}, "node")
    return app.Daemon(Config(), world, store, reread=Config)


def test_what_hangs_is_named_and_the_first_page_comes_without_it(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(app, "FIRST_READINGS_WITHIN_S", 0.3)
    daemon, over = made(folder), threading.Event()
    daemon._began_s = time.monotonic()
    daemon._housekeeping.replace([Job("stuck disk", 60.0, 0.0, lambda _: over.wait(60)), Job("b", 60.0, 0.0, print)])
    assert daemon._not_ready_because() == "the host is being read for the first time"
    try:
        daemon._look(threading.Event())
    finally:
        over.set()
        daemon._housekeeping.stop(10.0)
    assert daemon._not_ready_because() is None
    named, there = (record.getMessage() for record in caplog.records if "first page" in record.getMessage())
    assert named == "the first page comes without: stuck disk; no answer for 0.3 s, see dmesg"
    assert there.startswith("the first page of metrics is available after ")
    caplog.clear()
    daemon._look(threading.Event())
    assert "first page" not in caplog.text, "said once"


def test_there_is_a_page_in_any_case_after_a_while(folder: Path) -> None:
    """Even where the very thread that looks hangs."""
    daemon = made(folder)
    daemon._page_from_s = time.monotonic() + app.FIRST_PAGE_WITHIN_S
    assert daemon._not_ready_because() is not None
    daemon._page_from_s -= app.FIRST_PAGE_WITHIN_S
    assert daemon._not_ready_because() is None
