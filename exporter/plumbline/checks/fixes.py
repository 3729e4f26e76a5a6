"""How to change a setting, now and permanently, on Debian 12.

The permanent part is added and replaces nothing: a line in ``sysctl.d`` or in ``udev/rules.d``. It is not a systemd
``.link`` file, although that has ``RxBufferSize=`` and the like: only the first file that matches a port is read at
all, so a new one would disable the one that names the port today.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbline.checks.model import Fix, Keep

if TYPE_CHECKING:  # the package of network checks imports this module
    from plumbline.checks.network.facts import Nic

SYSCTL_FILE = "/etc/sysctl.d/90-storage-network.conf"
UDEV_FILE = "/etc/udev/rules.d/90-storage-network.rules"
INTERFACES_FILE = "/etc/network/interfaces"

IRQBALANCE = "apt-get install -y irqbalance && systemctl enable --now irqbalance"
RESETS_LINK = (
    "Many drivers take the link down for some seconds: on a storage network, do one host at a time, and not during"
    " recovery."
)

_BUS_ADDRESS = re.compile(r"[0-9A-Za-z:.\-]+")


def sysctl(name: str, values: Sequence[int], *, caution: str = "") -> Fix:
    """Set a kernel setting. Vectors are quoted, because the shell would split them."""
    words = " ".join(map(str, values))
    quoted = f'"{words}"' if len(values) > 1 else words
    return Fix(f"sysctl -w {name}={quoted}", Keep(SYSCTL_FILE, f"{name} = {words}"), caution)


def ethtool(nic: Nic, option: str, arguments: str, *, caution: str = "") -> Fix:
    """``ethtool <option> <device> <arguments>``, and the udev rule that runs it whenever the port appears."""
    device = shlex.quote(nic.device)
    keep = Keep(UDEV_FILE, _udev_rule(nic, f"/usr/sbin/ethtool {option} $name {arguments}"))
    return Fix(f"ethtool {option} {device} {arguments}".rstrip(), keep, caution)


def autonegotiate(nic: Nic, *, caution: str) -> Fix:
    """Let both ends negotiate the best mode they share."""
    return ethtool(nic, "-s", "autoneg on", caution=caution)


def mtu(device: str, mtu_bytes: int, *, caution: str) -> Fix:
    """Set the MTU; the interface's own configuration makes it permanent."""
    now = f"ip link set dev {shlex.quote(device)} mtu {mtu_bytes}"
    return Fix(now, Keep(INTERFACES_FILE, f"mtu {mtu_bytes}", f"in the stanza of {device}"), caution)


def _udev_rule(nic: Nic, command: str) -> str:
    """Match by bus address, which no renaming changes; ``$name`` is the port's name when the rule runs."""
    match = f'KERNELS=="{nic.bus}"' if _BUS_ADDRESS.fullmatch(nic.bus) else f'KERNEL=="{glob_free(nic.device)}"'
    return f'ACTION=="add", SUBSYSTEM=="net", {match}, RUN+="{command}"'


def glob_free(name: str) -> str:
    """A udev pattern that matches this name alone; characters special to udev match any one character."""
    return re.sub(r'[*?\[\]|"\\$%]', "?", name)
