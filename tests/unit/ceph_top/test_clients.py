"""Who loads the OSDs: shares of what was in flight, and who stands out."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from plumbline.ceph_top.clients import ENOUGH, Clients, summary, watch_clients
from plumbline.errors import Unavailable
from plumbline.sources.ceph.adminsocket import Answer, Question
from plumbline.sources.ceph.osd_clients import InFlight, Owner

IMAGES = [Owner(1, "image", f"a{number}") for number in range(20)]


def operations(owner: Owner, count: int, *, looks: int = 1, host: str = "10.0.0.1") -> list[InFlight]:
    """So many, each seen at so many looks."""
    return [InFlight(f"client.{owner.name}", number, host, owner, True) for number in range(count)] * looks


def summed(seen: Sequence[InFlight]) -> Clients:
    return summary(seen, osds=("osd.0",), interval_s=5.0, notes=())


def test_a_share_is_of_time_not_of_operations() -> None:
    found = summed([*operations(IMAGES[0], 10, looks=8), *operations(IMAGES[1], 20)])
    assert [(each.owner, each.share, each.operations) for each in found.loads] == [
        (IMAGES[0], 0.8, 10), (IMAGES[1], 0.2, 20),
    ]  # fmt: skip


def test_one_operation_on_two_osds_is_one_and_has_its_clients_address() -> None:
    """A replica is not told the address."""
    primary = InFlight("client.7", 1, "10.0.0.9", IMAGES[0], True)
    replica = InFlight("client.7", 1, "", IMAGES[0], True)
    (load,) = summed([primary, replica, InFlight("client.8", 1, "", IMAGES[0], False)]).loads
    assert (load.operations, load.writes, load.hosts) == (2, 0.5, ("10.0.0.9", "client.8"))


def drawn(shares: Sequence[float], count: int, seed: int) -> Clients:
    chosen = random.Random(seed).choices(IMAGES[: len(shares)], shares, k=count)
    return summed([InFlight("client.1", number, "", owner, True) for number, owner in enumerate(chosen)])


@pytest.mark.parametrize("count", [30, 100, 1000])
@pytest.mark.parametrize("seed", range(10))
def test_who_makes_four_fifths_is_named_and_nobody_when_all_are_even(count: int, seed: int) -> None:
    found = drawn([0.8] + [0.2 / 19] * 19, count, seed)
    assert found.culprit is not None
    assert found.culprit.owner == IMAGES[0]
    assert found.at_least < found.culprit.share
    for even in (2, 5, 20):
        assert drawn([1 / even] * even, count, seed).culprit is None
        assert drawn([1 / even] * even, ENOUGH, seed).culprit is None


def test_too_few_tell_nothing() -> None:
    assert summed(operations(IMAGES[0], ENOUGH - 1, looks=9)).culprit is None
    assert summed(operations(IMAGES[0], ENOUGH)).culprit is not None
    nothing = summed([])
    assert (nothing.loads, nothing.culprit, nothing.operations) == ((), None, 0)


class Osds:
    """Answers as given, at each look the next; time passes only by waiting."""

    def __init__(self, *looks: Sequence[Answer]) -> None:
        self.looks, self.now, self.asked = list(looks), 0.0, []

    def ask(self, questions: Sequence[Question], *, timeout_s: float) -> list[Answer]:
        self.asked.append([question.path.name for question in questions])
        return list(self.looks.pop(0))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def watched(osds: Osds, interval_s: float) -> Clients:
    sockets = {"osd.0": Path("/run/a"), "osd.1": Path("/run/b")}
    return watch_clients(sockets, interval_s=interval_s, clock=lambda: osds.now, sleep=osds.sleep, ask_all=osds.ask)


def test_an_osd_that_does_not_answer_is_asked_no_more() -> None:
    text = "osd_op(client.4.0:%d 1.3 1:c2:::rbd_data.a1.0000000000000000:head [write 0~4096] ondisk+write+x e3)"
    answers = [json.dumps({"ops": [{"description": text % number}]}).encode() for number in range(3)]
    osds = Osds([answers[0], Unavailable("osd.1: no answer")], [answers[1]], [answers[2]])
    found = watched(osds, 0.25)
    assert osds.asked == [["a", "b"], ["a"], ["a"]]
    assert (found.osds, found.operations, found.notes) == (("osd.0",), 3, ("osd.1: no answer",))


def test_no_osd_that_answers() -> None:
    with pytest.raises(Unavailable, match="no answer"):
        watched(Osds([Unavailable("osd.0: no answer"), b"{"]), 1.0)
