"""A host of 256 CPUs and 12 ports with 1,500 ``ethtool -S`` statistics each, whose counters move between scrapes.

Made up, of real names: those that mlx5_core has for losses and pause stand among its per-queue ones, as in the driver.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

from plumbline.sources.net import ethnl, ethtool
from plumbline.sources.net.links import RTM_GETLINK
from plumbline.sources.net.port_settings import PORT_FIBRE
from plumbline.sources.net.portfacts import Transports

from .ethnl_replies import bits, reply, strings, u8, u32
from .hosts import FAMILY, FEATURES, FIXTURES, link_message
from .replay_network import ReplayEthtool, ReplayNetlink, done, driver_answers, gstats

CPUS, PORTS, STATISTICS = 256, 12, 1500
_QUEUE = (
    "rx%d_packets", "rx%d_bytes", "rx%d_csum_complete", "rx%d_gro_packets", "rx%d_xdp_drop", "rx%d_wqe_err",
    "rx%d_buff_alloc_err", "rx%d_cache_reuse", "rx%d_recover", "tx%d_packets", "tx%d_bytes", "tx%d_nop",
    "tx%d_stopped", "tx%d_dropped", "tx%d_wake", "tx%d_cqes",
)  # fmt: skip


def statistic_names() -> list[str]:
    """1,500 statistics of one mlx5_core port."""
    table = (FIXTURES / "driver-names" / "names.tsv").read_text().splitlines()
    losses = {row.split("\t")[1] for row in table if row.startswith("mlx5_core\t")}
    names = sorted(name for name in losses if "%" not in name)
    wanted = (pattern % queue for queue in count() for pattern in _QUEUE)
    return names + [next(wanted) for _ in range(STATISTICS - len(names))]


class LargeHost:
    """Its transports and its ``/proc``; :meth:`go_on` lets every counter grow, as traffic would."""

    def __init__(self, root: Path) -> None:
        self.names = statistic_names()
        self.devices = [f"enp{port}s0f0np0" for port in range(PORTS)]
        self._softnet = root / "proc" / "net" / "softnet_stat"
        self._softnet.parent.mkdir(parents=True)
        self._steps = 0
        indices = range(2, PORTS + 2)

        def dump(*attributes: bytes) -> bytes:
            return b"".join(reply(index, *attributes) for index in indices) + done()

        self.route = ReplayNetlink({})
        self.generic = ReplayNetlink(
            {
                (FAMILY, ethnl.RINGS_GET): dump(u32(2, 8192), u32(5, 8192), u32(6, 1024), u32(9, 1024)),
                (FAMILY, ethnl.PAUSE_GET): dump(u8(2, 0), u8(3, 1), u8(4, 1)),
                (FAMILY, ethnl.LINKMODES_GET): dump(bits(3, {12}, mask={12, 13}), u32(5, 100_000), u8(6, 1)),
                (FAMILY, ethnl.LINKINFO_GET): dump(u8(2, PORT_FIBRE)),
                (FAMILY, ethnl.CHANNELS_GET): dump(u32(4, 1), u32(5, 63), u32(8, 1), u32(9, 63)),
                (FAMILY, ethnl.COALESCE_GET): dump(u32(2, 8), u32(6, 128)),
                (FAMILY, ethnl.FEC_GET): done(),
                (FAMILY, ethnl.STRSET_GET): strings(4, FEATURES),
                (FAMILY, ethnl.FEATURES_GET): dump(bits(2, {0, 1, 2}), bits(4, {0, 1}), bits(5, ())),
            }
        )
        self.ioctl = ReplayEthtool({})
        for port, device in enumerate(self.devices):
            answers = driver_answers(
                device.encode(), "mlx5_core", dict.fromkeys(self.names, 0), firmware="22.41.1000", bus=_bus(port)
            )
            self.ioctl.answers.update(answers)
        self.transports = Transports(self.route, self.generic, self.ioctl)
        self.go_on()

    def go_on(self) -> None:
        """Every counter grows."""
        self._steps += 1
        now = self._steps * 1_000_003
        links = link_message(1, "lo", 65536, dict.fromkeys(range(4), now))
        for port, device in enumerate(self.devices):
            packets = {number: now * (port + number + 1) for number in range(4)}
            links += link_message(port + 2, device, 9000, packets, bus=_bus(port))
            values = [now + each * port for each in range(STATISTICS)]
            self.ioctl.answers[device.encode(), ethtool.ETHTOOL_GSTATS] = gstats(values)
        self.route.answers[RTM_GETLINK] = links + done()
        rows = (
            f"{now + cpu:08x} {0:08x} {cpu:08x} {' '.join(['00000000'] * 9)} {cpu:08x} {0:08x} {0:08x}\n"
            for cpu in range(CPUS)
        )
        self._softnet.write_text("".join(rows))
        self.generic.requests.clear()
        self.route.requests.clear()
        self.ioctl.calls.clear()


def _bus(port: int) -> str:
    return f"0000:{port + 16:02x}:00.0"
