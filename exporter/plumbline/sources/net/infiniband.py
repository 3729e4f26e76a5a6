"""InfiniBand and RoCE ports, from sysfs.

Documentation/ABI/stable/sysfs-class-infiniband (the meaning of each counter)
https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/core/sysfs.c (the file formats)
https://enterprise-support.nvidia.com/s/article/understanding-mlx5-linux-counters-and-status-parameters (hw_counters)
https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/sw/rxe/rxe_hw_counters.c (Soft-RoCE's)

::

    /sys/class/infiniband/mlx4_0/ports/1/state                      4: ACTIVE
    /sys/class/infiniband/mlx4_0/ports/1/phys_state                 5: LinkUp
    /sys/class/infiniband/mlx4_0/ports/1/rate                       56 Gb/sec (4X FDR)
    /sys/class/infiniband/mlx4_0/ports/1/link_layer                 InfiniBand
    /sys/class/infiniband/mlx4_0/ports/1/counters/port_xmit_data    octets ÷ 4
    /sys/class/infiniband/mlx4_0/ports/1/hw_counters/…              the driver's own
    /sys/class/infiniband/mlx4_0/device/net/ib0/mode                connected
    /sys/class/infiniband/rxe0/parent                               eth1 (Soft-RoCE)
    /sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0            eth1 (RoCE; an error for an unused entry)

Each counter queries the adapter's firmware, which may be slow, so a scrape does not read them. Drivers without a
performance agent report ``N/A (no PMA)`` or an error; those counters are absent. Some have no ``counters`` folder and
count their traffic in ``hw_counters``; Soft-RoCE counts packets only. Error counters are 4 to 16 bits wide
by the InfiniBand specification (PortCounters) and stay at their maximum until someone resets them.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs
from plumbline.sources.plausible import ALL_ONES

_OCTETS = 4
_WORDS = {"rx": "rcv", "tx": "xmit"}
TRAFFIC = ("port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets")
ERRORS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors", "port_rcv_constraint_errors", "port_xmit_constraint_errors", "port_xmit_discards",
    "local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped",
)  # fmt: skip
WAIT = "port_xmit_wait"
EVENTS = (
    "out_of_buffer", "out_of_sequence", "packet_seq_err", "duplicate_request", "implied_nak_seq_err",
    "local_ack_timeout_err", "rnr_nak_retry_err", "req_cqe_error", "resp_cqe_error", "req_remote_access_errors",
    "resp_local_length_error", "rx_icrc_encapsulated", "np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled",
    "rp_cnp_ignored", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_trans",
    # Soft-RoCE
    "out_of_seq_request", "rcvd_seq_err", "rcvd_rnr_err", "send_rnr_err", "retry_exceeded_err",
    "retry_rnr_exceeded_err", "completer_retry_err", "send_err",
)  # fmt: skip
"""The drivers' own counters that show loss, retransmission or congestion; a driver may have thousands of others."""
_LINK_DOWNED = "link_downed"
_HW_TRAFFIC = {
    "rx_bytes": "rx_bytes", "tx_bytes": "tx_bytes", "rx_pkts": "rx_pkts", "tx_pkts": "tx_pkts",
    "rcvd_pkts": "rx_pkts", "sent_pkts": "tx_pkts",
}  # fmt: skip
"""Traffic in hw_counters: the driver's name → ours."""
_GIDS = 8  # how many entries of the GID table to look at for the port's interface; the first is the port's own

_STATE = re.compile(r"([0-9]{1,2}): .*")
_RATE = re.compile(r"([0-9]{1,5})(\.5)? Gb/sec \([0-9]{1,3}X ?\w*\)")
_NO_AGENT = "N/A"


class InfinibandPort(Struct, frozen=True):
    """One port. ``None`` and ``""``: reported by neither driver nor adapter."""

    device: str
    port: str
    link_layer: str  # InfiniBand or Ethernet (RoCE)
    firmware: str
    board: str
    netdev: str  # The network interface on this port
    state: int | None  # ib_port_state: 0 no state change, 1 down, 2 initialize, 3 armed, 4 active, 5 active deferred
    physical_state: int | None
    """1 sleep, 2 polling, 3 disabled, 4 port configuration training, 5 link up, 6 link error recovery, 7 phy test."""
    rate_mbps: int | None
    counters: Mapping[str, int]  # counters/; *_data in units of four octets
    events: Mapping[str, int]  # hw_counters/, only those in EVENTS
    traffic: Mapping[str, int] = field(default_factory=dict)  # hw_counters/: rx_bytes, tx_bytes, rx_pkts, tx_pkts

    def octets(self, direction: str) -> int | None:
        """Octets received (``rx``) or transmitted (``tx``): ``*_data`` has them divided by four, for any number of
        lanes."""
        value = self.counters.get(f"port_{_WORDS[direction]}_data")
        return self.traffic.get(f"{direction}_bytes") if value is None else value * _OCTETS

    def packets(self, direction: str) -> int | None:
        """Packets received (``rx``) or transmitted (``tx``)."""
        return self.counters.get(f"port_{_WORDS[direction]}_packets", self.traffic.get(f"{direction}_pkts"))


class InfinibandReading(Struct, frozen=True):
    """All ports, and whether IPoIB runs in connected mode, by interface name (``False``: datagram)."""

    ports: tuple[InfinibandPort, ...] = ()
    ipoib_connected: Mapping[str, bool] = field(default_factory=dict)
    skipped: tuple[tuple[str, str], ...] = ()  # Ports that were skipped, and why


def parse_state(text: str, *, source: str) -> int:
    """``4: ACTIVE`` → 4."""
    return int(sysfs.matched(_STATE, text, "a state", source)[1])


def parse_rate(text: str, *, source: str) -> int:
    """``56 Gb/sec (4X FDR)`` → 56,000 Mb/s."""
    match = sysfs.matched(_RATE, text, "a rate", source)
    return int(match[1]) * 1000 + (500 if match[2] else 0)


def parse_counter(text: str, *, source: str) -> int | None:
    """A counter; ``None`` for ``N/A (no PMA)``, and for one that does not count."""
    number = None if text.startswith(_NO_AGENT) else sysfs.parse_number(text, source=source)
    return None if number in ALL_ONES else number


def read_infiniband(roots: Roots) -> InfinibandReading:
    """Every port of every adapter; ``Unavailable`` when there is none. A dead or malformed port is skipped."""
    root = roots.sys / "class" / "infiniband"
    ports: list[InfinibandPort] = []
    skipped: list[tuple[str, str]] = []
    modes: dict[str, bool] = {}
    devices = sysfs.entries(root)
    for device in devices:
        path = root / device
        netdevs = _netdevs(path)
        for name in netdevs:
            mode = sysfs.read_text(path / "device" / "net" / name / "mode")
            if mode in ("connected", "datagram"):
                modes[name] = mode == "connected"
        for port in sysfs.entries(path / "ports"):
            try:
                port_reading = _read_port(path, device, port, netdevs)
            except ParseError:
                skipped.append((f"{device}/{port}", "malformed"))
                continue
            if port_reading is None:
                skipped.append((f"{device}/{port}", "unreadable"))
            else:
                ports.append(port_reading)
    if not devices:
        raise Unavailable(f"{root}: no InfiniBand or RoCE adapter")
    return InfinibandReading(tuple(ports), modes, tuple(skipped))


def _read_port(device_path: Path, device: str, port: str, netdevs: Mapping[str, int]) -> InfinibandPort | None:
    path = device_path / "ports" / port
    state = sysfs.read_parsed(path / "state", parse_state)
    physical_state = sysfs.read_parsed(path / "phys_state", parse_state)
    if state is None and physical_state is None:
        return None  # the adapter is gone or its firmware is dead: every file returns an error
    hw_counters = _counters(path / "hw_counters", (*EVENTS, *_HW_TRAFFIC, _LINK_DOWNED))
    counters = _counters(path / "counters", (*TRAFFIC, *ERRORS, WAIT))
    if _LINK_DOWNED in hw_counters:
        counters.setdefault(_LINK_DOWNED, hw_counters[_LINK_DOWNED])
    return InfinibandPort(
        device,
        port,
        sysfs.read_text(path / "link_layer") or "",
        sysfs.read_text(device_path / "fw_ver") or "",
        sysfs.read_text(device_path / "board_id") or "",
        next((name for name, number in netdevs.items() if str(number + 1) == port), "") or _netdev(device_path, path),
        state,
        physical_state,
        sysfs.read_parsed(path / "rate", parse_rate),
        counters,
        {name: count for name, count in hw_counters.items() if name in EVENTS},
        {ours: hw_counters[name] for name, ours in _HW_TRAFFIC.items() if name in hw_counters},
    )


def _counters(directory: Path, names: tuple[str, ...]) -> dict[str, int]:
    present = set(sysfs.entries(directory))
    counters = {name: sysfs.read_parsed(directory / name, parse_counter) for name in names if name in present}
    return {name: value for name, value in counters.items() if value is not None}


def _netdev(device_path: Path, port_path: Path) -> str:
    """The interface of a port whose adapter lists none: RoCE on an interface of another device."""
    ndevs = port_path / "gid_attrs" / "ndevs"
    files = (device_path / "parent", *(ndevs / str(number) for number in range(_GIDS)))
    return next(filter(None, map(sysfs.read_text, files)), "")


def _netdevs(device_path: Path) -> dict[str, int]:
    """The adapter's interfaces → the port of each, from 0; IPoIB children follow their parents."""
    root = device_path / "device" / "net"
    names = {}
    for name in sorted(sysfs.entries(root), key=len):
        text = sysfs.read_text(root / name / "dev_port") or ""
        names[name] = int(text) if re.fullmatch(r"[0-9]{1,4}", text) else 0
    return names
