"""Who configures an interface, and where: only its owner makes a setting outlast a boot.

NetworkManager and systemd-networkd say at run time which interfaces they manage, in
``/run/NetworkManager/devices/<index>`` and ``/run/systemd/netif/links/<index>`` (private to each, but in this form
since their first releases). ifupdown has a stanza in interfaces(5), wicked a file ifcfg(5). netplan writes the
configuration of the first two at each boot and names its files after itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.sources.kernel import sysfs

_LARGEST = 1 << 20
_SECTIONS = {"bond": "bonds", "vlan": "vlans", "bridge": "bridges"}
"""DEVTYPE of an interface → its section in netplan's YAML."""


class Manager(StrEnum):
    IFUPDOWN = "ifupdown"
    NETWORK_MANAGER = "NetworkManager"
    NETWORKD = "systemd-networkd"
    NETPLAN = "netplan"
    WICKED = "wicked"


class Owner(Struct, frozen=True):
    """``file`` has the interface's settings: the stanza, the ``.network`` or ifcfg file; empty if it is not needed.
    ``netdev`` is networkd's file that creates a bond; ``section`` netplan's."""

    manager: Manager
    file: str = ""
    netdev: str = ""
    section: str = "ethernets"


def read_owner(roots: Roots, device: str) -> Owner | None:
    """``None``: nothing says so. Run-time state comes first: a file of a manager that is not in use decides nothing."""
    network = roots.sys / "class" / "net" / device
    index = sysfs.read_text(network / "ifindex") or "none"
    kind = re.search(r"^DEVTYPE=(\w+)$", _text(network / "uevent"), re.M)
    section = _SECTIONS.get(kind[1] if kind else "", "ethernets")
    run, etc = roots.udev.parent, roots.etc
    link = _text(run / "systemd" / "netif" / "links" / index)
    if match := re.search(r"^NETWORK_FILE=.*/([^/\n]+)$", link, re.M):
        if match[1].startswith("10-netplan-"):
            return Owner(Manager.NETPLAN, section=section)
        return Owner(Manager.NETWORKD, match[1], _netdev(etc, device))
    if _has_profile(run / "NetworkManager", index, device):
        profile = run / "NetworkManager" / "system-connections" / f"netplan-{device}.nmconnection"
        return Owner(Manager.NETPLAN, section=section) if profile.exists() else Owner(Manager.NETWORK_MANAGER)
    return _by_files(etc, device, section)


def _has_profile(run: Path, index: str, device: str) -> bool:
    """Whether NetworkManager configures ``device``. It says "managed" also of what it leaves alone, and of what another
    configured: for that it generates a profile, of which ``nmcli connection modify`` would save a copy that no boot
    activates."""
    state = dict(line.partition("=")[::2] for line in _text(run / "devices" / index).splitlines())
    generated = "nm-generated=true" in _text(run / "system-connections" / f"{device}.nmconnection")
    return state.get("managed") == "true" and "connection-uuid" in state and not generated


def _by_files(etc: Path, device: str, section: str) -> Owner | None:
    stanza = re.compile(rf"^\s*iface\s+{re.escape(device)}\s", re.M)
    for file in (etc / "network" / "interfaces", *_files(etc / "network" / "interfaces.d", "*")):
        if stanza.search(_text(file)):
            return Owner(Manager.IFUPDOWN, f"/etc/{file.relative_to(etc)}")
    wicked = etc / "sysconfig" / "network" / f"ifcfg-{device}"
    if wicked.exists():
        return Owner(Manager.WICKED, f"/etc/{wicked.relative_to(etc)}")
    return Owner(Manager.NETPLAN, section=section) if any(_files(etc / "netplan", "*.yaml")) else None


def _netdev(etc: Path, device: str) -> str:
    """The name of networkd's file that creates ``device``; empty for hardware."""
    name = re.compile(rf"^Name={re.escape(device)}\s*$", re.M)
    return next((file.name for file in _files(etc / "systemd" / "network", "*.netdev") if name.search(_text(file))), "")


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    try:
        yield from sorted(folder.glob(pattern))
    except OSError:
        return


def _text(file: Path) -> str:
    return (sysfs.read_bytes(file, _LARGEST) or b"").decode("utf-8", "replace")
