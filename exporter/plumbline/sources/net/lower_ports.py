"""How many ports a network device sends over: the bottom devices of its stack of VLANs, bonds, teams and bridges.

``/sys/class/net/<device>/lower_<other>`` is a link to each device directly below ``<device>``
(``netdev_adjacent_sysfs_add`` in https://github.com/torvalds/linux/blob/v6.12/net/core/dev.c)::

    /sys/class/net/bond0.100/lower_bond0
    /sys/class/net/bond0/lower_ens1f0
    /sys/class/net/bond0/lower_ens1f1
"""

from __future__ import annotations

from plumbline.core.roots import Roots

_PREFIX = "lower_"
# the kernel's own limit (``MAX_NEST_DEV``)
_DEEPEST = 8


def read_lower_ports(device: str, roots: Roots) -> int:
    """The number of bottom ports; at least 1, even if the device does not exist."""
    return len(_bottom(device, roots, _DEEPEST))


def _bottom(device: str, roots: Roots, deep: int) -> set[str]:
    try:
        names = [entry.name for entry in (roots.sys / "class/net" / device).iterdir()]
    except OSError:
        names = []
    lower = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
    if not lower or not deep:
        return {device}
    return {port for each in lower for port in _bottom(each, roots, deep - 1)}
