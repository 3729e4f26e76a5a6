"""Whatever is known or not known about a host: the checks end with findings, each of which can be acted on."""

from __future__ import annotations

import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.checks.facts import (
    Bond,
    BondMember,
    Coalescing,
    Count,
    InfinibandPort,
    NetworkFacts,
    Nic,
    Ring,
    SoftnetCpu,
)
from plumbline.checks.network import judge

NAMES = st.text(
    st.characters(exclude_characters="/:\0 \t\n\v\f\r", exclude_categories=("Cs", "Zs", "Zl", "Zp")), min_size=1
)
NUMBERS = st.integers(0, 2**40)
MAYBE = st.none() | st.booleans()
COUNTS = st.none() | st.builds(Count, NUMBERS, st.none() | NUMBERS)
RINGS = st.none() | st.builds(Ring, NUMBERS, st.none() | NUMBERS)
RATES = st.none() | st.floats(0, 1e12)
COALESCING = st.none() | st.builds(Coalescing, st.none() | st.floats(0, 1e6), st.none() | NUMBERS, MAYBE)
NICS = st.builds(
    Nic,
    device=NAMES,
    driver=st.none() | st.just("ixgbe"),
    bus=st.sampled_from(("", "0000:3b:00.0", '";x')),
    physical=MAYBE,
    up=MAYBE,
    storage=MAYBE,
    roles=st.frozensets(st.sampled_from(("ceph_public", "ceph_cluster"))),
    mtu_bytes=st.none() | NUMBERS,
    speed_bits_per_second=RATES,
    max_speed_bits_per_second=RATES,
    full_duplex=MAYBE,
    rx_ring=RINGS,
    ring_drops=COUNTS,
    fifo_drops=COUNTS,
    pause_receive=MAYBE,
    pause_transmit=MAYBE,
    pause_frames_received=COUNTS,
    rx_coalescing=COALESCING,
    tx_coalescing=COALESCING,
    offloads=st.dictionaries(st.sampled_from(("scatter-gather", "rx-checksumming", "other")), st.booleans()),
    channels=st.none() | NUMBERS,
    irq_share_max_ratio=st.none() | st.floats(0, 1),
    irq_active_vectors=st.none() | NUMBERS,
)
SETTINGS = st.sampled_from(
    (
        "net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.rmem_max",
        "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps",
    )
)  # fmt: skip
MEMBERS = st.builds(BondMember, NAMES, MAYBE, st.none() | NUMBERS, MAYBE, MAYBE)
FACTS = st.builds(
    NetworkFacts,
    st.none() | st.floats(0, 3600),
    st.lists(NICS, max_size=3, unique_by=lambda nic: nic.device).map(tuple),
    st.lists(
        st.builds(SoftnetCpu, st.integers(0, 255), COUNTS, COUNTS, COUNTS, COUNTS, COUNTS),
        max_size=3,
        unique_by=lambda cpu: cpu.cpu,
    ).map(tuple),
    st.dictionaries(SETTINGS, st.lists(NUMBERS, max_size=3).map(tuple)),
    COUNTS,
    st.lists(
        st.builds(Bond, NAMES, st.sampled_from(("802.3ad", "")), MAYBE, st.lists(MEMBERS, max_size=3).map(tuple)),
        max_size=2,
        unique_by=lambda bond: bond.device,
    ).map(tuple),
    st.lists(
        st.builds(InfinibandPort, NAMES, st.just("1"), st.sampled_from(("InfiniBand", "Ethernet")), MAYBE, MAYBE),
        max_size=2,
        unique_by=lambda port: port.device,
    ).map(tuple),
    st.dictionaries(NAMES, st.booleans(), max_size=2),
)


def _lines(content: str) -> list[str]:
    """As a file's reader has them: Python's ``splitlines`` takes eight more characters for the end of a line."""
    return content.removesuffix("\n").split("\n")


@settings(deadline=None)
@given(FACTS)
def test_any_host_can_be_judged(facts: NetworkFacts) -> None:
    found = judge(facts)
    series = [(each.check, each.subject) for each in found]
    assert len(set(series)) == len(series)  # one sample each
    for each in found:
        assert each.met == (each.fix is None)
        assert each.is_
        assert each.should
        if each.fix is not None:
            assert shlex.split(each.fix.now)  # quotes are balanced, whatever the names
            for line in _lines(each.fix.keep.content) if each.fix.keep else ():
                assert line.strip()


@settings(deadline=None)
@given(NICS)
def test_what_is_not_a_real_port_gets_no_advice_on_hardware(nic: Nic) -> None:
    if nic.physical:
        return
    of_hardware = ("ring", "pause", "coalescing", "link", "half", "offloads")
    for each in judge(NetworkFacts(2.0, (nic,))):
        assert not each.check.partition(".")[2].startswith(of_hardware)
