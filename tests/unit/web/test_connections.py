"""Who has to go when too many are connected, and who gets a place."""

from __future__ import annotations

import contextlib
import socket

import pytest

from plumbline.web.connections import Connection, ConnectionPool, RequestSlots, counted_as
from plumbline.web.guard import Guard

GUARD = Guard()


def connection(peer: str, since: float, *, authenticated: bool = False, computing: bool = False) -> Connection:
    made = Connection(socket.socket(), peer, GUARD)
    made.since, made.authenticated, made.computing = since, authenticated, computing
    return made


def gone(*connections: Connection) -> Connection:
    """Which of them goes for another one."""
    crowd = ConnectionPool(len(connections))
    assert all(crowd.admit(each) for each in connections)
    newcomer = connection("new", 99.0)
    assert crowd.admit(newcomer)
    (went,) = [each for each in connections if each.evicted]
    assert newcomer in crowd._connections
    assert crowd.rejected == 1
    for each in (*connections, newcomer):
        each.sock.close()
    return went


def test_the_one_that_waits_longest_goes() -> None:
    first, second = connection("a", 1.0), connection("a", 2.0)
    assert gone(second, first) is first


def test_a_crowd_pushes_itself_out() -> None:
    alone = connection("prometheus", 1.0)
    crowd = [connection("attacker", 10.0 + n) for n in range(5)]
    assert gone(alone, *crowd) is crowd[0]


def test_who_has_shown_who_it_is_stays() -> None:
    known, strange = connection("a", 1.0, authenticated=True), connection("b", 50.0)
    assert gone(known, strange) is strange


def test_whom_something_is_computed_for_stays() -> None:
    computed, waiting = connection("a", 1.0, computing=True), connection("b", 50.0, authenticated=True)
    assert gone(computed, waiting) is waiting


def test_when_all_are_computed_for_nobody_comes() -> None:
    crowd = ConnectionPool(1)
    assert crowd.admit(connection("a", 1.0, computing=True))
    assert not crowd.admit(connection("b", 2.0))
    assert crowd.rejected == 1


def test_one_that_had_to_go_gets_no_other_socket() -> None:
    crowd = ConnectionPool(1)
    one = connection("a", 1.0)
    crowd.admit(one)
    crowd.admit(connection("b", 2.0))
    assert not crowd.swap(one, socket.socket)


def test_an_address_that_has_nothing_under_way_gets_a_place_beyond_the_limit() -> None:
    slots = RequestSlots(2)
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(slots.slot("attacker")) for _ in range(3)]
        assert taken == [True, True, False]
        assert stack.enter_context(slots.slot("prometheus"))
        assert not stack.enter_context(slots.slot("prometheus"))
        others = [stack.enter_context(slots.slot(f"other {n}")) for n in range(20)]
        assert others.count(True) == 7
    with slots.slot("attacker") as free:
        assert free


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        (("192.0.2.1", 5), "192.0.2.1"),
        (("2001:db8:1:2:3:4:5:6", 5, 0, 0), "2001:db8:1:2::/64"),
        (("::ffff:192.0.2.1", 5, 0, 0), "192.0.2.1"),
        (("fe80::1%eth0", 5, 0, 2), "fe80::/64"),
        ("", ""),
    ],
)
def test_what_counts_as_one_address(address: object, counted: str) -> None:
    assert counted_as(address) == counted
