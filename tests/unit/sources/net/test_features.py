"""Offloads: the kernel's feature bits as the names that ethtool -k prints."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.sources.net import ethnl
from plumbline.sources.net.features import (
    Offload,
    features_request,
    names_request,
    offload_masks,
    offloads,
    parse_features,
    parse_features_structure,
    parse_names,
)
from plumbline.sources.net.netlink import Netlink
from support.ethnl_replies import FAMILY, bits, only, reply, strings, u32
from support.replay_network import ReplayNetlink

FIXTURES = Path(__file__).parents[3] / "fixtures"
LINUX_4_9 = (
    *("tx-scatter-gather", "tx-checksum-ipv4", "", "tx-checksum-ip-generic", "tx-checksum-ipv6", "highdma"),
    *("tx-scatter-gather-fraglist", "tx-vlan-hw-insert", "rx-vlan-hw-parse", "rx-vlan-filter", "vlan-challenged"),
    *("tx-generic-segmentation", "tx-lockless", "netns-local", "rx-gro", "rx-lro", "tx-tcp-segmentation"),
    *("tx-udp-fragmentation", "tx-gso-robust", "tx-tcp-ecn-segmentation", "tx-tcp6-segmentation"),
    *("rx-ntuple-filter", "rx-hashing", "rx-checksum"),
)
"""A part of ``netdev_features_strings``, in its order; the real one has some 50 between."""
FIGURE_39_ON = {
    *("rx-checksum", "tx-checksum-ip-generic", "tx-scatter-gather", "tx-tcp-segmentation", "tx-generic-segmentation"),
    *("rx-gro", "rx-vlan-hw-parse", "tx-vlan-hw-insert", "rx-hashing", "highdma", "netns-local"),
}
FIGURE_39 = {
    "rx-checksumming": True,
    "tx-checksumming": True,
    "scatter-gather": True,
    "tcp-segmentation-offload": True,
    "tx-tcp-segmentation": True,
    "udp-fragmentation-offload": False,
    "generic-segmentation-offload": True,
    "generic-receive-offload": True,
    "large-receive-offload": False,
    "rx-vlan-offload": True,
    "tx-vlan-offload": True,
    "ntuple-filters": False,
    "receive-hashing": True,
}
"""``ethtool -k`` of a storage node's port as a thesis of 2020 prints it, line by line (UNNOBA's Ceph cluster)."""


def numbers(names: set[str]) -> set[int]:
    return {bit for bit, name in enumerate(LINUX_4_9) if name in names}


def test_figure_39() -> None:
    names = parse_names(only(strings(4, LINUX_4_9)))
    assert names == LINUX_4_9
    ifindex, found = parse_features(
        only(reply(2, bits(2, range(24)), bits(3, ()), bits(4, numbers(FIGURE_39_ON)), bits(5, ())))
    )
    assert ifindex == 2
    assert {each.name: each.enabled for each in offloads(found, offload_masks(names))} == FIGURE_39


def test_a_group_is_on_when_one_of_it_is() -> None:
    masks = {"tx-checksumming": 0b0111, "large-receive-offload": 0b1000}
    assert offloads(0b0100, masks) == (
        Offload("tx-checksumming", enabled=True),
        Offload("large-receive-offload", enabled=False),
    )


def test_only_the_active_features_count() -> None:
    data = reply(2, bits(2, {0, 1}), bits(4, {0}), bits(5, {1}))
    assert parse_features(only(data)) == (2, 0b01)


def test_an_offload_that_this_kernel_does_not_know_is_absent() -> None:
    assert set(offload_masks(("rx-gro", "tx-udp-segmentation"))) == {"generic-receive-offload"}
    assert offload_masks(()) == {}


def test_by_ioctl() -> None:
    data = struct.pack("=II8I", 0x3A, 2, 0b11, 0, 0b01, 0b10, 0b1, 0, 0b1, 0)
    assert parse_features_structure(data) == 1 << 32 | 0b01
    with pytest.raises(ParseError, match="GFEATURES: 39 bytes, 40 expected"):
        parse_features_structure(data[:39])


def test_a_kernel_with_more_features_than_were_asked_for() -> None:
    _request, size = features_request(0x3A)
    data = struct.pack("=II", 0x3A, 9) + struct.pack("=4I", 1, 0, 1, 0) * 9
    assert parse_features_structure(data[:size]) == 1 | 1 << 32 | 1 << 64 | 1 << 96


def test_the_request_for_names_is_the_documented_bytes() -> None:
    assert names_request() == bytes.fromhex("0101000004000180" + "10000280" + "0c000180" + "0800010004000000")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (strings(4, ()), "no feature has a name"),
        (reply(2), "no feature has a name"),
    ],
)
def test_names_that_are_missing(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_names(only(data))


def test_a_reply_without_active_features() -> None:
    with pytest.raises(ParseError, match="FEATURES_GET: reply lacks the active features"):
        parse_features(only(reply(2, bits(2, {1}), u32(9, 0))))


def test_a_virtual_machines_offloads_from_the_recording() -> None:
    """What ``ethtool -k`` printed on that machine."""
    generic = Netlink(ReplayNetlink.load(FIXTURES / "net-virtio-guest"), source="replay")
    message = generic.get(FAMILY, names_request())
    assert message
    masks = offload_masks(parse_names(message))
    found = ethnl.read_all(
        generic, FAMILY, ethnl.FEATURES_GET, parse_features, on_skip=lambda item, why: pytest.fail(f"{item}: {why}")
    )
    said = {index: [(each.name, each.enabled) for each in offloads(found[index], masks)] for index in found}
    assert said[4] == [
        ("rx-checksumming", True),
        ("tx-checksumming", True),
        ("scatter-gather", True),
        ("tcp-segmentation-offload", True),
        ("tx-tcp-segmentation", True),
        ("generic-segmentation-offload", True),
        ("generic-receive-offload", True),
        ("large-receive-offload", False),
        ("rx-vlan-offload", False),
        ("tx-vlan-offload", False),
        ("ntuple-filters", False),
        ("receive-hashing", False),
    ]
