"""Many scrapes at once, and ports that come, are renamed and go while they run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from support import attackers
from support.daemon import Answer, eventually, running
from support.inside import Inside
from support.netns import namespace
from support.programs import need
from support.scraped import Scrape

T = TypeVar("T")
AT_ONCE = 50


def at_once(count: int, do: Callable[[], T]) -> list[T]:
    """``do()`` in ``count`` threads that start together."""
    together = threading.Barrier(count)

    def one(_: int) -> T:
        together.wait(30)
        return do()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_fifty_scrapes_at_once_are_all_served_and_agree(folder: Path) -> None:
    with running(folder, config={"probes": [], "web": {"max_requests": 64}}) as daemon:
        for _ in range(3):
            answers = at_once(AT_ONCE, lambda: daemon.get("/metrics"))

            assert [answer.status for answer in answers] == [200] * AT_ONCE
            scrapes = [Scrape.of_text(answer.text) for answer in answers]
            # the kernel's devices may change meanwhile; what the daemon says of itself does not
            own = {frozenset(name for name in each.names() if "collector" in name) for each in scrapes}
            assert len(own) == 1
            assert {health.value for each in scrapes for health in each.series("plumbline_collector_success")} == {1}


def test_more_than_allowed_are_turned_away_and_nobody_waits(folder: Path) -> None:
    with running(folder, config={"probes": [], "web": {"max_requests": 1}}) as daemon:
        answers = [answer for _ in range(5) for answer in at_once(AT_ONCE, lambda: daemon.get("/metrics"))]
        healthy = at_once(AT_ONCE, lambda: daemon.get("/-/healthy"))

        assert {answer.status for answer in answers} == {200, 503}
        assert all("raise web.max_requests" in answer.text for answer in answers if answer.status == 503)
        assert [answer.status for answer in healthy] == [200] * AT_ONCE
        assert daemon.get("/metrics").status == 200


def test_slow_idle_and_greedy_clients_do_not_keep_a_scrape_out(folder: Path) -> None:
    with running(folder, config={"probes": []}) as daemon:
        address = ("127.0.0.1", int(daemon.url.rpartition(":")[2]))
        before = threads_of(daemon.pid)
        attacks = (attackers.idle, attackers.slow_heads, attackers.slow_readers, attackers.huge_heads)
        with attackers.attacked(address, *attacks):
            eventually(lambda: daemon.metrics().get("plumbline_web_requests_refused_total", reason="crowded"))
            for path in ("/metrics", "/", "/-/healthy") * 3:
                assert daemon.get(path).status == 200
            assert threads_of(daemon.pid) < before + 150
        metrics = daemon.metrics()
        assert (metrics.get("plumbline_web_requests_refused_total", reason="malformed") or 0) > 0
        eventually(lambda: threads_of(daemon.pid) < before + 10)  # nobody is kept for longer than the deadlines
        assert "Traceback" not in daemon.said()


def threads_of(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/task").iterdir()])


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="not root: can't make network namespaces")
def test_ports_that_come_are_renamed_and_go(folder: Path) -> None:
    need("ip")
    with namespace() as ns, running(folder, config={"probes": []}, prefix=["ip", "netns", "exec", ns.name]) as daemon:
        inside = Inside(ns, daemon)
        answers: list[Answer] = []
        ended = threading.Event()

        def scrape() -> None:
            while not ended.is_set():
                answers.extend((inside.get("/metrics"), inside.get("/")))

        thread = threading.Thread(target=scrape)
        thread.start()
        try:
            for number in range(40):
                ns.batch(
                    f"link add a{number} type veth peer name b{number}\n"
                    f"link set a{number} up\nlink set b{number} up\nlink set a{number} down\n"
                    f"link set a{number} name c{number}\nlink set c{number} mtu 9000\n"
                )
                ns.batch(f"link del c{number}\n")
        finally:
            ended.set()
            thread.join()

        assert len(answers) > 20
        assert {answer.status for answer in answers} == {200}
        seen = set()
        for answer in answers[::2]:
            metrics = Scrape.of_text(answer.text)
            seen |= metrics.labels("plumbline_nic_up", "device")
            assert {each.value for each in metrics.series("plumbline_collector_success")} == {1}
            # one look at the links for all collectors of one scrape
            assert metrics.labels("plumbline_nic_info", "device") == metrics.labels("plumbline_nic_up", "device")
        assert len(seen) > 3
        assert inside.devices() == {"lo"}
        assert "Traceback" not in daemon.said()

        # what is there now is shown at once, under its present name and with its present facts
        ns.batch("link add old type veth peer name other\n")
        assert inside.devices() == {"lo", "old", "other"}
        ns.batch("link set old name new\nlink set new mtu 9000\n")
        assert inside.devices() == {"lo", "new", "other"}
        assert inside.metrics().get("plumbline_nic_mtu_bytes", device="new") == 9000
        ns.batch("link add bridge type bridge\nlink set new master bridge\n")
        eventually(lambda: inside.metrics().get("plumbline_nic_info", device="new", master="bridge"))
        ns.batch("link del new\n")
        assert inside.devices() == {"lo", "bridge"}
