"""Record what the kernel says about this network namespace's ports, as the fixtures of the network sources.

    PYTHONPATH=exporter:tests python -m support.record_network <scenario directory> [--ioctl <device> ...]

Writes ``netlink/*.bin`` (whole dumps, datagrams one after the other), ``netlink/family.txt``, for each named device
``ioctl/<device>.<what>.bin`` or, where the kernel refuses, ``.errno`` with the reason; and the text files of
softnet, TCP, interrupts and kernel settings. Run it in a namespace made for it (``ip netns exec``) unless everybody
may see the host's own links.
"""

from __future__ import annotations

import argparse
import errno
from pathlib import Path

from plumbline.sources.kernel.sysctl import NUMBERS, WORDS
from plumbline.sources.net import ethnl, ethtool, features
from plumbline.sources.net.genetlink import resolve_family
from plumbline.sources.net.links import RTM_GETLINK
from plumbline.sources.net.netlink import NETLINK_GENERIC, NETLINK_ROUTE, Netlink, NetlinkSocket, Refused

from .replay_network import ETHNL_COMMANDS, IOCTLS

_FLAGS = {"rings": 0, "pause": ethnl.FLAG_STATS}
_SIZES = {"drvinfo": 196, "sset_info": 20, "rings": 36, "pause": 16}


class Recorder:
    """The kernel, with every datagram it sends kept."""

    def __init__(self, protocol: int) -> None:
        self._socket = NetlinkSocket(protocol)
        self.datagrams: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.datagrams = []
        self._socket.send(message)

    def receive(self) -> bytes:
        datagram = self._socket.receive()
        self.datagrams.append(datagram)
        return datagram

    def reset(self) -> None:
        self._socket.reset()

    def close(self) -> None:
        self._socket.close()


def record_netlink(out: Path) -> None:
    """All dumps the exporter asks for."""
    out.mkdir(parents=True, exist_ok=True)
    route = Recorder(NETLINK_ROUTE)
    Netlink(route, source="record").dump(RTM_GETLINK, bytes(16))
    (out / "links.bin").write_bytes(b"".join(route.datagrams))
    family = resolve_family(ethnl.FAMILY)
    (out / "family.txt").write_text(f"{family}\n")
    generic = Recorder(NETLINK_GENERIC)
    for name, command in ETHNL_COMMANDS.items():
        if command == ethnl.STRSET_GET:
            Netlink(generic, source="record").get(family, features.names_request())
        else:
            flags = _FLAGS.get(name, ethnl.FLAG_COMPACT_BITSETS)
            Netlink(generic, source="record").dump(family, ethnl.request(command, flags=flags))
        (out / f"{name}.bin").write_bytes(b"".join(generic.datagrams))


def record_ioctls(out: Path, device: str) -> None:
    """Everything the exporter asks a driver."""
    out.mkdir(parents=True, exist_ok=True)
    handle = ethtool.EthtoolSocket()
    count = len(ethtool.Ethtool(handle).strings(device.encode()))
    sizes = {**_SIZES, "strings": 12 + 32 * count, "stats": 8 + 8 * count}
    for name, command in IOCTLS.items():
        request = command.to_bytes(4, "little") + bytes(sizes[name] - 4)
        if name == "sset_info":
            request = request[:8] + (1 << ethtool.ETH_SS_STATS).to_bytes(8, "little") + bytes(4)
        if name == "strings":
            request = request[:4] + ethtool.ETH_SS_STATS.to_bytes(4, "little") + count.to_bytes(4, "little")
        if name == "stats":
            request = request[:4] + count.to_bytes(4, "little")
        try:
            answer = handle.call(device.encode(), request, sizes[name])
        except Refused as refusal:
            reason = "EOPNOTSUPP" if refusal.code == errno.EOPNOTSUPP else errno.errorcode[refusal.code]
            (out / f"{device}.{name}.errno").write_text(f"{reason}\n")
        else:
            (out / f"{device}.{name}.bin").write_bytes(answer)


def main() -> None:
    """Record into the directory given on the command line."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("scenario", type=Path)
    arguments.add_argument("--ioctl", nargs="*", default=[], metavar="DEVICE")
    options = arguments.parse_args()
    record_netlink(options.scenario / "netlink")
    for device in options.ioctl:
        record_ioctls(options.scenario / "ioctl", device)
    for text in (
        Path("proc/net/softnet_stat"),
        Path("proc/net/snmp"),
        Path("proc/net/netstat"),
        Path("proc/interrupts"),
        Path("sys/devices/system/cpu/online"),
        *(Path("proc/sys", *name.split(".")) for name in (*NUMBERS, *WORDS)),
    ):
        target = options.scenario / text
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((Path("/") / text).read_text())


if __name__ == "__main__":
    main()
