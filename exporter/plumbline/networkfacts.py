"""From series to what the network checks ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plumbline.checks.facts import Bond, BondMember, Coalescing, InfinibandPort, NetworkFacts, Nic, Ring, SoftnetCpu
from plumbline.seriesview import SeriesView

PARAVIRTUAL = frozenset({"virtio_net", "vmxnet3", "hv_netvsc", "netvsc", "xen_netfront", "vif", "ena", "gve", "mana"})
"""Drivers of ports that a hypervisor makes up: their rings, speed and moderation are the other side's business."""

_SYSCTL_FIELDS = ("", "min", "default", "pressure", "max")  # in the order of the kernel's vectors


def network_facts(view: SeriesView, window_s: float | None) -> NetworkFacts:
    """All that is known after ``window_s`` seconds of looking (``None``: one look)."""
    return NetworkFacts(
        window_s=window_s,
        nics=tuple(_nics(view)),
        softnet=tuple(_softnet(view)),
        sysctls=_sysctls(view),
        tcp_receive_drops=view.count("plumbline_tcp_receive_drops_total", "receive_queue"),
        bonds=tuple(_bonds(view)),
        infiniband=tuple(_infiniband(view)),
        ipoib_connected={device: bool(on) for (device,), on in view.series("plumbline_nic_ipoib_connected").items()},
    )


@dataclass(frozen=True, slots=True)
class _Carriers:
    """Which interfaces carry which of Ceph's networks."""

    known: bool
    own: Mapping[str, frozenset[str]]
    below: frozenset[str]

    def storage(self, device: str) -> bool | None:
        return device in self.own or device in self.below if self.known else None


def _carriers(view: SeriesView, masters: Mapping[str, str]) -> _Carriers:
    own: dict[str, set[str]] = defaultdict(set)
    for row, value in view.rows("plumbline_nic_role_info"):
        if value and row["role"].startswith("ceph_"):
            own[row["device"]].add(row["role"])
    lowers: dict[str, set[str]] = defaultdict(set)
    for row, _ in view.rows("plumbline_nic_relation_info"):
        lowers[row["device"]].add(row["lower"])
    for device, master in masters.items():
        lowers[master].add(device)
    below: set[str] = set()
    ahead = list(own)
    while ahead:
        for lower in lowers.get(ahead.pop(), ()):
            if lower not in below:
                below.add(lower)
                ahead.append(lower)
    return _Carriers(bool(own), {device: frozenset(roles) for device, roles in own.items()}, frozenset(below))


def _nics(view: SeriesView) -> Iterator[Nic]:
    info = {row["device"]: row for row, _ in view.rows("plumbline_nic_info")}
    carriers = _carriers(view, {device: row["master"] for device, row in info.items() if row["master"]})
    up = view.series("plumbline_nic_up")
    mtu = view.series("plumbline_nic_mtu_bytes")
    speed, most = (view.series(f"plumbline_nic_{which}speed_bits_per_second") for which in ("", "max_"))
    duplex = view.series("plumbline_nic_full_duplex")
    pause = view.series("plumbline_nic_pause_enabled")
    negotiated = view.series("plumbline_nic_pause_autonegotiate")
    share = view.series("plumbline_nic_irq_share_max_ratio")
    vectors = view.series("plumbline_nic_irq_active_vectors")
    offloads: dict[str, dict[str, bool]] = defaultdict(dict)
    for (device, feature), value in view.series("plumbline_nic_offload_enabled").items():
        offloads[device][feature] = bool(value)
    for device in sorted({name for (name,) in up} | info.keys()):
        facts = info.get(device)
        bus = facts["bus"] if facts else ""
        yield Nic(
            device=device,
            driver=facts["driver"] if facts else None,
            bus=bus,
            physical=bool(bus) and facts["driver"] not in PARAVIRTUAL if facts else None,
            up=_truth(up.get((device,))),
            storage=carriers.storage(device),
            roles=carriers.own.get(device, frozenset()),
            mtu_bytes=_whole(mtu.get((device,))),
            speed_bits_per_second=speed.get((device,)),
            max_speed_bits_per_second=most.get((device,)),
            full_duplex=_truth(duplex.get((device,))),
            rx_ring=_ring(view, device, "rx"),
            tx_ring=_ring(view, device, "tx"),
            ring_drops=view.count("plumbline_nic_drops_total", device, "receive", "ring"),
            fifo_drops=view.count("plumbline_nic_drops_total", device, "receive", "fifo"),
            pause_receive=_truth(pause.get((device, "receive"))),
            pause_transmit=_truth(pause.get((device, "transmit"))),
            pause_autonegotiated=_truth(negotiated.get((device,))),
            pause_frames_received=view.count("plumbline_nic_pause_frames_total", device, "receive"),
            pause_frames_transmitted=view.count("plumbline_nic_pause_frames_total", device, "transmit"),
            rx_coalescing=_coalescing(view, device, "receive"),
            tx_coalescing=_coalescing(view, device, "transmit"),
            offloads=offloads.get(device, {}),
            channels=_channels(view, device),
            irq_share_max_ratio=share.get((device,)),
            irq_active_vectors=_whole(vectors.get((device,))),
        )


def _ring(view: SeriesView, device: str, ring: str) -> Ring | None:
    entries = view.series("plumbline_nic_ring_entries").get((device, ring))
    most = view.series("plumbline_nic_ring_max_entries").get((device, ring))
    return None if entries is None else Ring(int(entries), _whole(most))


def _coalescing(view: SeriesView, device: str, direction: str) -> Coalescing | None:
    seconds, frames, adaptive = (
        view.series(f"plumbline_nic_coalesce_{what}").get((device, direction))
        for what in ("seconds", "frames", "adaptive")
    )
    if seconds is None and frames is None and adaptive is None:
        return None
    delay_us = None if seconds is None else round(seconds * 1e6, 3)
    return Coalescing(delay_us, _whole(frames), _truth(adaptive))


def _channels(view: SeriesView, device: str) -> int | None:
    """Queues that receive: the combined ones and those for receiving alone."""
    channels = view.series("plumbline_nic_channels")
    found = [channels[device, kind] for kind in ("combined", "rx") if (device, kind) in channels]
    return int(sum(found)) if found else None


def _softnet(view: SeriesView) -> Iterator[SoftnetCpu]:
    squeezed_by = "plumbline_softnet_time_squeeze_attributed_total"
    for (cpu,) in view.series("plumbline_softnet_processed_total"):
        processed, dropped, squeezed = (
            view.count(f"plumbline_softnet_{what}_total", cpu) for what in ("processed", "dropped", "time_squeeze")
        )
        yield SoftnetCpu(
            int(cpu),
            processed,
            dropped,
            squeezed,
            squeezed_by_budget=view.count(squeezed_by, cpu, "budget"),
            squeezed_by_time=view.count(squeezed_by, cpu, "time"),
        )


def _sysctls(view: SeriesView) -> dict[str, tuple[int, ...]]:
    fields: dict[str, dict[str, int]] = defaultdict(dict)
    for row, value in view.rows("plumbline_sysctl_value"):
        fields[row["name"]][row["field"]] = int(value)
    return {
        name: tuple(values[field] for field in _SYSCTL_FIELDS if field in values) for name, values in fields.items()
    }


def _bonds(view: SeriesView) -> Iterator[Bond]:
    members: dict[str, dict[str, BondMember]] = defaultdict(dict)
    aggregators = view.series("plumbline_bond_slave_aggregator")
    partners = view.series("plumbline_bond_slave_partner_mac_valid")
    churned = {(row["device"], row["slave"]) for row, value in view.rows("plumbline_bond_slave_churned") if value}
    for (bond, slave), up in view.series("plumbline_bond_slave_up").items():
        labels = (bond, slave)
        members[bond][slave] = BondMember(
            slave,
            bool(up),
            _whole(aggregators.get(labels)),
            _truth(partners.get(labels)),
            labels in churned,
        )
    modes = {row["device"]: row["mode"] for row, _ in view.rows("plumbline_bond_info")}
    monitored = view.series("plumbline_bond_monitored")
    for bond in sorted(modes.keys() | members.keys()):
        yield Bond(bond, modes.get(bond, ""), _truth(monitored.get((bond,))), tuple(members[bond].values()))


def _infiniband(view: SeriesView) -> Iterator[InfinibandPort]:
    """States are the numbers that ``ibstatus`` prints: 4 is ACTIVE, 5 is LinkUp."""
    layers = {(row["device"], row["port"]): row["link_layer"] for row, _ in view.rows("plumbline_infiniband_info")}
    links = view.series("plumbline_infiniband_physical_state")
    for labels, state in view.series("plumbline_infiniband_port_state").items():
        device, port = labels
        link = links.get(labels)
        yield InfinibandPort(
            device, port, layers.get((device, port), ""), state == 4, None if link is None else link == 5
        )


def _truth(value: float | None) -> bool | None:
    return None if value is None else bool(value)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
