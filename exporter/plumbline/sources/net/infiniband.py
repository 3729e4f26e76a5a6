"""InfiniBand and RoCE ports, from sysfs.

Documentation/ABI/stable/sysfs-class-infiniband (the meaning of each counter)
https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/core/sysfs.c (the file formats)
https://enterprise-support.nvidia.com/s/article/understanding-mlx5-linux-counters-and-status-parameters (hw_counters)

::

    /sys/class/infiniband/mlx4_0/ports/1/state                      4: ACTIVE
    /sys/class/infiniband/mlx4_0/ports/1/phys_state                 5: LinkUp
    /sys/class/infiniband/mlx4_0/ports/1/rate                       56 Gb/sec (4X FDR)
    /sys/class/infiniband/mlx4_0/ports/1/link_layer                 InfiniBand
    /sys/class/infiniband/mlx4_0/ports/1/counters/port_xmit_data    octets ÷ 4
    /sys/class/infiniband/mlx4_0/ports/1/hw_counters/…              the driver's own
    /sys/class/infiniband/mlx4_0/device/net/ib0/mode                connected

Each counter queries the adapter's firmware, which may be slow, so a scrape does not read them. Drivers without a
performance agent report ``N/A (no PMA)`` or an error; those counters are absent. Error counters are 4 to 16 bits wide
by the InfiniBand specification (PortCounters) and stay at their maximum until someone resets them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel import sysfs

_OCTETS = 4
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
)  # fmt: skip
"""The drivers' own counters that show loss, retransmission or congestion; a driver may have thousands of others."""

_STATE = re.compile(r"([0-9]{1,2}): .*")
_RATE = re.compile(r"([0-9]{1,5})(\.5)? Gb/sec \([0-9]{1,3}X ?\w*\)")
_NO_AGENT = "N/A"


@dataclass(frozen=True, slots=True)
class InfinibandPort:
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

    def octets(self, counter: str) -> int | None:
        """A ``*_data`` counter in octets: the kernel reports it divided by four, whatever the number of lanes."""
        value = self.counters.get(counter)
        return None if value is None else value * _OCTETS


@dataclass(frozen=True, slots=True)
class InfinibandReading:
    """All ports, and whether IPoIB runs in connected mode, by interface name (``False``: datagram)."""

    ports: tuple[InfinibandPort, ...]
    ipoib_connected: Mapping[str, bool]
    skipped: tuple[tuple[str, str], ...] = ()  # Ports that were skipped, and why


def parse_state(text: str, *, source: str) -> int:
    """``4: ACTIVE`` → 4."""
    return int(sysfs.matched(_STATE, text, "a state", source)[1])


def parse_rate(text: str, *, source: str) -> int:
    """``56 Gb/sec (4X FDR)`` → 56,000 Mb/s."""
    match = sysfs.matched(_RATE, text, "a rate", source)
    return int(match[1]) * 1000 + (500 if match[2] else 0)


def parse_counter(text: str, *, source: str) -> int | None:
    """A counter; ``None`` for ``N/A (no PMA)``."""
    return None if text.startswith(_NO_AGENT) else sysfs.parse_number(text, source=source)


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
                found = _read_port(path, device, port, netdevs)
            except ParseError:
                skipped.append((f"{device}/{port}", "malformed"))
                continue
            if found is None:
                skipped.append((f"{device}/{port}", "unreadable"))
            else:
                ports.append(found)
    if not devices:
        raise Unavailable(f"{root}: no InfiniBand or RoCE adapter")
    return InfinibandReading(tuple(ports), modes, tuple(skipped))


def _read_port(device_path: Path, device: str, port: str, netdevs: Mapping[str, int]) -> InfinibandPort | None:
    path = device_path / "ports" / port
    state = sysfs.read_parsed(path / "state", parse_state)
    physical_state = sysfs.read_parsed(path / "phys_state", parse_state)
    if state is None and physical_state is None:
        return None  # the adapter is gone or its firmware is dead: every file returns an error
    return InfinibandPort(
        device,
        port,
        sysfs.read_text(path / "link_layer") or "",
        sysfs.read_text(device_path / "fw_ver") or "",
        sysfs.read_text(device_path / "board_id") or "",
        next((name for name, number in netdevs.items() if str(number + 1) == port), ""),
        state,
        physical_state,
        sysfs.read_parsed(path / "rate", parse_rate),
        _counters(path / "counters", (*TRAFFIC, *ERRORS, WAIT)),
        _counters(path / "hw_counters", EVENTS),
    )


def _counters(directory: Path, names: tuple[str, ...]) -> dict[str, int]:
    present = set(sysfs.entries(directory))
    found = {name: sysfs.read_parsed(directory / name, parse_counter) for name in names if name in present}
    return {name: value for name, value in found.items() if value is not None}


def _netdevs(device_path: Path) -> dict[str, int]:
    """The adapter's interfaces → the port of each, from 0; IPoIB children follow their parents."""
    root = device_path / "device" / "net"
    names = {}
    for name in sorted(sysfs.entries(root), key=len):
        text = sysfs.read_text(root / name / "dev_port") or ""
        names[name] = int(text) if re.fullmatch(r"[0-9]{1,4}", text) else 0
    return names
