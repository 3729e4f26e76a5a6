"""Whether a transceiver is plugged in, from the connector in ``LINKINFO_GET`` (Linux 5.6) and the carrier.

https://docs.kernel.org/networking/ethtool-netlink.html#linkinfo-get

The module's own EEPROM would say more, but it is read over I²C at 100 kHz through the card's firmware and needs
``CAP_NET_ADMIN``; only switch drivers answer ``MODULE_GET`` (mlxsw, Linux 6.12). So the answer is inferred from what is
cheap and needs no privilege; where that is inconclusive, it is unknown:

- a fibre or direct-attach port with a carrier must have a module or cable;
- a port that reports connector "none" has an empty cage with ixgbe and bnx2x; other drivers report it for backplanes
  and virtual functions (i40e, iavf, hns3) or always (amd-xgbe).
"""

from __future__ import annotations

from plumbline.sources.net.ethnl import fields
from plumbline.sources.net.netlink import Message, unsigned

PORT_FIBRE, PORT_DA, PORT_NONE = 0x03, 0x05, 0xEF
_PORT = 2
# ixgbe_ethtool.c: PORT_NONE and FIBRE for ixgbe_sfp_type_not_present; bnx2x_ethtool.c: for ETH_PHY_NOT_PRESENT,
# which bnx2x_link.c sets when the module is removed
_NONE_IS_EMPTY = frozenset({"ixgbe", "bnx2x"})


def parse_port(message: Message, *, source: str = "ethtool netlink: LINKINFO_GET") -> tuple[int, int | None]:
    """Parse a ``LINKINFO_GET`` reply → interface index and connector (``PORT_*``)."""
    ifindex, found = fields(message, source=source)
    return ifindex, unsigned(message.data, *found[_PORT], source=source) if _PORT in found else None


def transceiver_present(*, port: int | None, fibre: bool, carrier: bool | None, driver: str) -> bool | None:
    """Combine the facts; ``fibre``: the port supports the link mode of that name. ``None``: unknown."""
    if fibre and carrier and port in (PORT_FIBRE, PORT_DA):
        return True
    if fibre and port == PORT_NONE and driver in _NONE_IS_EMPTY:
        return False
    return None
