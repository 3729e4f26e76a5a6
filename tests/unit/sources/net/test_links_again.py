"""Links that are read again: what is kept of the last answer is never older than the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import PlumblineError
from plumbline.sources.net import links
from plumbline.sources.net.links import RTM_GETLINK, Link, LinksReader
from plumbline.sources.net.netlink import Netlink
from support.replay_network import ReplayNetlink

FIXTURES = Path(__file__).parents[3] / "fixtures"
SCENARIOS = ("net-software-links", "net-virtio-guest")


def outcome(reader: LinksReader) -> dict[int, Link] | str:
    try:
        return reader.links()
    except PlumblineError as error:
        return str(error)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_any_byte_that_changes_is_seen(scenario: str) -> None:
    replay = ReplayNetlink.load(FIXTURES / scenario)
    answer = replay.answers[RTM_GETLINK]
    datagrams = [answer] if isinstance(answer, bytes) else answer
    reader, seen = LinksReader(Netlink(replay, source="replay")), 0
    for number, datagram in enumerate(datagrams):
        for position in range(len(datagram)):
            replay.answers[RTM_GETLINK] = datagrams
            before = reader.links()
            changed = datagram[:position] + bytes([datagram[position] ^ 1]) + datagram[position + 1 :]
            replay.answers[RTM_GETLINK] = [*datagrams[:number], changed, *datagrams[number + 1 :]]
            now = outcome(reader)
            assert now == outcome(LinksReader(Netlink(replay, source="replay"))), (number, position)
            seen += now != before
    assert seen > 100


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_link_with_new_counters_is_not_parsed_again(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = LinksReader(Netlink(ReplayNetlink.load(FIXTURES / scenario), source="replay"))
    before = reader.links()
    monkeypatch.setattr(links, "parse_link", None)
    assert reader.links() == before
