"""Whatever is known or not known about a host: the checks end with findings, each of which can be acted on."""

from __future__ import annotations

import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.checks.growth import Count
from plumbline.checks.model import judge
from plumbline.checks.network import CHECKS
from plumbline.checks.network.facts import NetworkFacts, Nic, SoftnetCpu
from plumbline.sources.kernel.sysctl import SysctlReading
from plumbline.sources.net.bonding import Aggregator, Bond, Churn, LacpState, Slave
from plumbline.sources.net.infiniband import InfinibandPort, InfinibandReading
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.nic_interrupts import IrqBalance
from plumbline.sources.net.port_settings import Coalescing, Moderation, PauseConfig, RingSizes

NAMES = st.text(
    st.characters(exclude_characters="/:\0 \t\n\v\f\r", exclude_categories=("Cs", "Zs", "Zl", "Zp")), min_size=1
)
NUMBERS = st.integers(0, 2**40)
MAYBE = st.none() | st.booleans()
COUNTS = st.none() | st.builds(Count, NUMBERS, st.none() | NUMBERS)
PERHAPS = st.none() | NUMBERS
MODERATION = st.builds(Moderation, PERHAPS, PERHAPS, MAYBE)
NICS = st.builds(
    Nic,
    device=NAMES,
    driver=st.none() | st.sampled_from(("ixgbe", "virtio_net", "bond")),
    bus=st.sampled_from(("", "0000:3b:00.0", '";x')),
    up=MAYBE,
    storage=MAYBE,
    roles=st.frozensets(st.sampled_from(("ceph_public", "ceph_cluster"))),
    mtu_bytes=st.none() | NUMBERS,
    speed_mbps=PERHAPS,
    modes=st.builds(LinkModes, full_duplex=MAYBE, max_speed_mbps=PERHAPS),
    rings=st.builds(RingSizes, rx=PERHAPS, rx_max=PERHAPS),
    ring_drops=COUNTS,
    fifo_drops=COUNTS,
    pause=st.none() | st.builds(PauseConfig, MAYBE, MAYBE, MAYBE),
    pause_frames_received=COUNTS,
    coalescing=st.none() | st.builds(Coalescing, MODERATION, MODERATION),
    offloads=st.dictionaries(st.sampled_from(("scatter-gather", "rx-checksumming", "other")), st.booleans()),
    interrupts=st.none()
    | st.builds(
        IrqBalance,
        st.just(""),
        st.just(1.0),
        active_vectors=NUMBERS,
        share_max=st.floats(0, 1),
        effective_cpus=st.just(1.0),
    ),
)
SETTINGS = st.sampled_from(
    (
        "net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.rmem_max",
        "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps",
    )
)  # fmt: skip
AGGREGATORS = st.integers(0, 2)
STATES = st.none() | st.sampled_from((LacpState(0), LacpState.DEFAULTED))
CHURNS = st.none() | st.sampled_from(Churn)
SLAVES = st.builds(
    Slave,
    NAMES,
    MAYBE,
    st.none() | st.booleans(),
    st.none(),
    st.none() | AGGREGATORS,
    STATES,
    STATES,
    CHURNS,
    CHURNS,
)
FACTS = st.builds(
    NetworkFacts,
    st.none() | st.floats(0, 3600),
    st.lists(NICS, max_size=3, unique_by=lambda nic: nic.device).map(tuple),
    st.lists(
        st.builds(SoftnetCpu, st.integers(0, 255), COUNTS, COUNTS, COUNTS, COUNTS, COUNTS),
        max_size=3,
        unique_by=lambda cpu: cpu.cpu,
    ).map(tuple),
    st.builds(SysctlReading, st.dictionaries(SETTINGS, st.lists(NUMBERS, max_size=3).map(tuple)), st.just({})),
    COUNTS,
    st.lists(
        st.builds(
            Bond,
            device=NAMES,
            mode=st.sampled_from(("802.3ad", "")),
            xmit_hash_policy=st.just(""),
            lacp_rate=st.just(""),
            ad_select=st.just(""),
            miimon_ms=PERHAPS,
            arp_interval_ms=PERHAPS,
            min_links=st.none(),
            aggregator=st.none() | st.builds(Aggregator, AGGREGATORS, st.none(), st.just("00:00:00:00:00:00")),
            slaves=st.lists(SLAVES, max_size=3).map(tuple),
        ),
        max_size=2,
        unique_by=lambda bond: bond.device,
    ).map(tuple),
    st.builds(
        InfinibandReading,
        st.lists(
            st.builds(
                InfinibandPort,
                device=NAMES,
                port=st.just("1"),
                link_layer=st.sampled_from(("InfiniBand", "Ethernet")),
                state=st.none() | st.integers(0, 5),
                physical_state=st.none() | st.integers(0, 7),
                counters=st.just({}),
                events=st.just({}),
            ),
            max_size=2,
            unique_by=lambda port: port.device,
        ).map(tuple),
        st.dictionaries(NAMES, st.booleans(), max_size=2),
    ),
)


def _lines(content: str) -> list[str]:
    """As a file's reader has them: Python's ``splitlines`` takes eight more characters for the end of a line."""
    return content.removesuffix("\n").split("\n")


@settings(deadline=None)
@given(FACTS)
def test_any_host_can_be_judged(facts: NetworkFacts) -> None:
    found = judge(CHECKS, facts)
    series = [(each.check, each.subject) for each in found]
    assert len(set(series)) == len(series)  # one sample each
    for each in found:
        assert each.met == (each.fix is None)
        assert each.actual
        assert each.expected
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
    for each in judge(CHECKS, NetworkFacts(2.0, (nic,))):
        assert not each.check.partition(".")[2].startswith(of_hardware)
