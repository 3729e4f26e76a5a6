"""Ports that change places between two scrapes: names, indices and namespaces that mean something else now."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import running
from support.inside import Inside
from support.losses import send_frames
from support.netns import Namespace, namespace
from support.programs import need
from support.scraped import Scrape

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="not root: can't make network namespaces"),
    pytest.mark.timeout(120),
]


@pytest.fixture
def ns() -> Iterator[Namespace]:
    need("ip")
    with namespace() as made:
        yield made


@pytest.fixture
def inside(ns: Namespace, folder: Path) -> Iterator[Inside]:
    with running(folder, config={"probes": []}, prefix=["ip", "netns", "exec", ns.name]) as daemon:
        yield Inside(ns, daemon)
        assert "Traceback" not in daemon.said()


def quiet(*devices: str) -> str:
    """``ip`` commands that put links up without the frames IPv6 would send by itself."""
    return "".join(f"link set {device} addrgenmode none up\n" for device in devices)


def mtu(scrape: Scrape) -> dict[str, float]:
    return {each.labels["device"]: each.value for each in scrape.series("plumbline_nic_mtu_bytes")}


def dropped(scrape: Scrape, device: str) -> float | None:
    return scrape.get("plumbline_nic_drops_total", device=device, direction="receive", cause="other")


def test_two_ports_that_swap_names_take_their_counters_along(ns: Namespace, inside: Inside) -> None:
    ns.batch(
        "link add left type veth peer name far\nlink add right type veth peer name other\n"
        "link set right mtu 1400\n" + quiet("left", "right", "far", "other")
    )
    ns.run(lambda: send_frames("far", 30, 100))
    before = inside.metrics()
    assert (dropped(before, "left"), dropped(before, "right")) == (30, 0)
    ns.batch("link set left name spare\nlink set right name left\nlink set spare name right\n")
    after = inside.metrics()
    assert (dropped(after, "left"), dropped(after, "right")) == (0, 30)
    assert (mtu(after)["left"], mtu(after)["right"]) == (1400, 1500)
    assert inside.devices() == {"lo", "left", "right", "far", "other"}


def test_another_port_under_the_index_of_one_that_is_gone_starts_anew(ns: Namespace, inside: Inside) -> None:
    ns.batch("link add one index 50 type veth peer name far index 51\n" + quiet("one", "far"))
    ns.run(lambda: send_frames("far", 30, 100))
    assert dropped(inside.metrics(), "one") == 30
    ns.batch("link del one\nlink add br0 index 50 type bridge\nlink add one index 51 type ifb\n")
    now = inside.metrics()
    assert (dropped(now, "br0"), dropped(now, "one")) == (0, 0)
    drivers = {each.labels["device"]: each.labels["driver"] for each in now.series("plumbline_nic_info")}
    assert (drivers["br0"], drivers["one"]) == ("bridge", "ifb")
    assert inside.devices() == {"lo", "br0", "one"}


def test_a_port_that_comes_from_another_namespace_and_goes_back(ns: Namespace, inside: Inside) -> None:
    """Its index may be taken here, so that the kernel gives it another; its other end stays behind."""
    with namespace() as other:
        other.batch("link add guest index 70 type veth peer name home\n" + quiet("guest", "home"))
        ns.batch("link add here index 70 type bridge\n")
        assert inside.devices() == {"lo", "here"}
        for _ in range(3):
            other.ip("link", "set", "guest", "netns", ns.name)
            ns.batch(quiet("guest"))
            assert inside.devices() == {"lo", "here", "guest"}
            assert inside.metrics().series("plumbline_nic_relation_info", device="guest") == []
            ns.ip("link", "set", "guest", "netns", other.name)
            assert inside.devices() == {"lo", "here"}
    # with the namespace goes the other end of a pair, and with that the one that is here
    with namespace() as other:
        other.batch("link add guest type veth peer name home\n")
        other.ip("link", "set", "guest", "netns", ns.name)
        assert inside.devices() == {"lo", "here", "guest"}
        other.ip("link", "del", "home")
        assert inside.devices() == {"lo", "here"}


def test_scrapes_while_ports_wander_between_namespaces(ns: Namespace, inside: Inside) -> None:
    answers: list[Scrape] = []
    ended = threading.Event()

    def scrape() -> None:
        while not ended.is_set():
            answers.append(inside.metrics())

    thread = threading.Thread(target=scrape)
    with namespace() as other:
        thread.start()
        try:
            for number in range(15):
                name = f"w{number}"
                other.batch(f"link add {name} type veth peer name p{number}\nlink set {name} netns {ns.name}\n")
                ns.batch(f"link set {name} up\nlink set {name} down\nlink set {name} name x{number}\n")
                ns.batch(f"link set x{number} netns {other.name}\n")
                other.batch(f"link del x{number}\n")
        finally:
            ended.set()
            thread.join()
    assert len(answers) > 10
    for metrics in answers:
        assert {each.value for each in metrics.series("plumbline_collector_success")} == {1}
        assert metrics.labels("plumbline_nic_info", "device") == metrics.labels("plumbline_nic_up", "device")
    assert len({name for each in answers for name in each.labels("plumbline_nic_up", "device")}) > 3
    assert inside.devices() == {"lo"}
