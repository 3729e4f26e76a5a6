"""Ring sizes in use and supported, from ``ETHTOOL_MSG_RINGS_GET`` (Linux 5.6; :mod:`.ethtool` has the ioctl).

https://docs.kernel.org/networking/ethtool-netlink.html#rings-get

A reply has attributes only for rings that the device has; virtio_net has ``rx`` and ``tx``.
"""

from __future__ import annotations

from plumbline.sources.net.ethnl import fields
from plumbline.sources.net.ethtool import RingSizes
from plumbline.sources.net.netlink import Message, unsigned

_NAMES = {
    2: "rx_max",
    3: "rx_mini_max",
    4: "rx_jumbo_max",
    5: "tx_max",
    6: "rx",
    7: "rx_mini",
    8: "rx_jumbo",
    9: "tx",
}


def parse_rings(message: Message, *, source: str = "ethtool netlink: RINGS_GET") -> tuple[int, RingSizes]:
    """Parse a ``RINGS_GET`` reply → interface index and ring sizes in descriptors."""
    ifindex, found = fields(message, source=source)
    sizes = {
        name: unsigned(message.data, *found[kind], source=source) for kind, name in _NAMES.items() if kind in found
    }
    return ifindex, RingSizes(**sizes)
