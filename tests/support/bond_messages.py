"""Bonds in netlink, built from the numbers of ``if_link.h`` (the kernel these tests run on may have no bonding)."""

from __future__ import annotations

import struct

from plumbline.sources.net.links import RTM_NEWLINK
from plumbline.sources.net.netlink import attribute

from .replay_network import done, message

NO_MAC = bytes(6)
SWITCH = bytes.fromhex("00005e000101")


def u8(kind: int, value: int) -> bytes:
    return attribute(kind, bytes((value,)))


def u16(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=H", value))


def u32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def aggregator(number: int, ports: int, partner: bytes) -> bytes:
    """``IFLA_BOND_AD_INFO``: AGGREGATOR, NUM_PORTS, ACTOR_KEY, PARTNER_KEY, PARTNER_MAC."""
    return attribute(23, u16(1, number) + u16(2, ports) + u16(3, 23) + u16(4, 1) + attribute(5, partner))


def bond_info(mode: int, *more: bytes, miimon_ms: int = 100) -> bytes:
    """``IFLA_LINKINFO``: MODE, MIIMON, ARP_INTERVAL, XMIT_HASH_POLICY, MIN_LINKS, AD_LACP_RATE, AD_SELECT, ``more``."""
    data = u8(1, mode) + u32(3, miimon_ms) + u32(7, 0) + u8(14, 0) + u32(18, 0) + u8(21, 0) + u8(22, 0)
    return attribute(1, b"bond\0") + attribute(2, data + b"".join(more))


def slave_info(state: int, mii_status: int, failures: int, *more: bytes) -> bytes:
    """``IFLA_LINKINFO``: STATE, MII_STATUS, LINK_FAILURE_COUNT, PERM_HWADDR, QUEUE_ID, ``more``."""
    data = u8(1, state) + u8(2, mii_status) + u32(3, failures) + attribute(4, bytes(6)) + u16(5, 0)
    return attribute(4, b"bond\0") + attribute(5, data + b"".join(more))


def lacp(aggregator_id: int, actor: int, partner: int) -> bytes:
    """AD_AGGREGATOR_ID, AD_ACTOR_OPER_PORT_STATE, AD_PARTNER_OPER_PORT_STATE."""
    return u16(6, aggregator_id) + u8(7, actor) + u16(8, partner)


def churn(actor: int, partner: int) -> bytes:
    """AD_CHURN_ACTOR_STATE and AD_CHURN_PARTNER_STATE: 0 monitoring, 1 churned, 2 none."""
    return u8(11, actor) + u8(12, partner)


def link(index: int, name: str, *attributes: bytes, info: bytes = b"", master: int = 0) -> bytes:
    """One ``RTM_NEWLINK`` message."""
    body = attribute(3, name.encode() + b"\0")
    if master:
        body += u32(10, master)
    if info:
        body += attribute(18 | 0x8000, info)
    return message(RTM_NEWLINK, struct.pack("=BxHiII", 0, 1, index, 0x1043, 0) + body + b"".join(attributes))


NO_PARTNER = b"".join(
    (
        link(2, "enp145s0f0", info=slave_info(0, 0, 1, lacp(1, 69, 1)), master=4),
        link(3, "enp145s0f1", info=slave_info(0, 0, 0, lacp(2, 77, 1)), master=4),
        link(4, "bond0", info=bond_info(4, aggregator(2, 1, NO_MAC))),
        done(),
    )
)
"""The bond of ``fixtures/bond-lacp-no-partner``, as a kernel without churn in netlink says it."""
