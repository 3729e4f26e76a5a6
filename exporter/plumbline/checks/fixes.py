"""How to change a setting now, and how to keep it: in the words of the distribution and of whoever owns the network.

The permanent part is added and replaces nothing: a line in ``sysctl.d``, ``udev/rules.d`` or ``tmpfiles.d``, which
every distribution reads, or a setting of the interface's owner. It is not a systemd ``.link`` file, although that has
``RxBufferSize=`` and the like: only the first file that matches a port is read at all, so a new one would disable the
one that names the port today. No other module words these; a test walks the tree for that.

Sources: interfaces(5), ifenslave(8); nm-settings-nmcli(5); systemd.network(5), systemd.netdev(5); netplan-set(8) and
netplan's YAML reference; ifcfg(5) and ifcfg-bonding(5) of wicked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plumbline.checks.model import Fix, Keep, System, Worded
from plumbline.core.roots import Roots
from plumbline.sources.distribution import Distribution, read_distribution
from plumbline.sources.kernel.installation import Need, read_installation
from plumbline.sources.net.ownership import Manager, Owner, read_owner

if TYPE_CHECKING:  # the package of network checks imports this module
    from plumbline.checks.network.facts import Nic

RESETS_LINK = (
    "Many drivers take the link down for some seconds: on a storage network, do one host at a time, and not during"
    " recovery."
)
DEBIAN = Distribution()
"""Whose words the documentation shows."""
START_IRQBALANCE = "systemctl enable --now irqbalance"

_BUS_ADDRESS = re.compile(r"[0-9A-Za-z:.\-]+")
_UNKNOWN_OWNER = (
    "It is gone after the next boot, unless it is also set where this interface is configured: that place is not known"
    " here."
)


def read_system(roots: Roots, environment: Mapping[str, str]) -> System:
    """Blocks as long as these files do: they are in /etc, /run and /sys."""
    installation = read_installation(roots, environment=environment)
    return System(read_distribution(roots.etc), partial(read_owner, roots), installation)


def install(
    what: str, then: str = "", *, keep: Keep | None = None, caution: str = "", need: Need | None = None
) -> Worded:
    """Install a program or library, then run another command."""
    return lambda system: Fix(system.distribution.install(what, then), keep, caution, need)


def with_package(fix: Fix, program: str) -> Worded:
    """A fix by a program that is not everywhere."""
    return lambda system: replace(
        fix, caution=f"{fix.caution} {program} is in the package {system.distribution.package(program)}."
    )


def irqbalance(caution: str) -> Worded:
    return install("irqbalance", START_IRQBALANCE, caution=caution)


def sysctl(name: str, values: Sequence[int], *, caution: str = "") -> Fix:
    """Set a kernel setting. Vectors are quoted, because the shell would split them."""
    words = " ".join(map(str, values))
    quoted = f'"{words}"' if len(values) > 1 else words
    keep = Keep("/etc/sysctl.d/90-storage-network.conf", f"{name} = {words}")
    return Fix(f"sysctl -w {name}={quoted}", keep, caution)


def udev(subject: str, rules: str) -> Keep:
    return Keep(f"/etc/udev/rules.d/90-storage-{subject}.rules", rules)


def tmpfiles(subject: str, *settings: tuple[str, str]) -> Keep:
    """Files of /sys and what systemd-tmpfiles writes into them at boot."""
    lines = "\n".join(f"w {path} - - - - {value}" for path, value in settings)
    return Keep(f"/etc/tmpfiles.d/90-storage-{subject}.conf", lines)


def ethtool(nic: Nic, option: str, arguments: str, *, caution: str = "") -> Fix:
    """``ethtool <option> <device> <arguments>``, and the udev rule that runs it whenever the port appears."""
    device = shlex.quote(nic.device)
    keep = udev("network", _udev_rule(nic, f"/usr/sbin/ethtool {option} $name {arguments}"))
    return Fix(f"ethtool {option} {device} {arguments}".rstrip(), keep, caution)


def setpci(address: str, register: str, caution: str) -> Worded:
    """Write to a device's configuration space now and whenever it appears; udev wants the program's whole path."""

    def worded(system: System) -> Fix:
        run = f'RUN+="{system.distribution.setpci} -s $kernel {register}"'
        keep = udev("pcie", f'ACTION=="add", SUBSYSTEM=="pci", KERNEL=="{address}", {run}')
        return Fix(f"setpci -s {shlex.quote(address)} {register}", keep, caution)

    return worded


def autonegotiate(nic: Nic, *, caution: str) -> Fix:
    """Let both ends negotiate the best mode they share."""
    return ethtool(nic, "-s", "autoneg on", caution=caution)


def mtu(device: str, mtu_bytes: int, *, caution: str) -> Worded:
    words = {
        Manager.NETWORK_MANAGER: f"802-3-ethernet.mtu {mtu_bytes}",
        Manager.NETWORKD: f"[Link]\nMTUBytes={mtu_bytes}",
        Manager.NETPLAN: f"mtu={mtu_bytes}",
        Manager.WICKED: f"MTU='{mtu_bytes}'",
    }
    return _lasting(device, f"ip link set dev {shlex.quote(device)} mtu {mtu_bytes}", words, caution)


def miimon(bond: str, interval_ms: int) -> Worded:
    words = {
        Manager.NETWORK_MANAGER: f"+bond.options miimon={interval_ms}",
        Manager.NETWORKD: f"[Bond]\nMIIMonitorSec={interval_ms}ms",
        Manager.NETPLAN: f"parameters.mii-monitor-interval={interval_ms}",
        Manager.WICKED: f"miimon={interval_ms}",
    }
    return _lasting(bond, f"ip link set dev {shlex.quote(bond)} type bond miimon {interval_ms}", words)


def connected_ipoib(device: str, mtu_bytes: int, *, caution: str) -> Worded:
    """IP over InfiniBand in connected mode, with its MTU."""
    name = shlex.quote(device)
    mode = f"echo connected > /sys/class/net/{name}/mode"
    words = {
        Manager.NETWORK_MANAGER: f"infiniband.transport-mode connected infiniband.mtu {mtu_bytes}",
        Manager.NETWORKD: f"[Link]\nMTUBytes={mtu_bytes}\n[IPoIB]\nMode=connected",
        Manager.NETPLAN: f"infiniband-mode=connected mtu={mtu_bytes}",
        Manager.WICKED: f"IPOIB_MODE='connected'\nMTU='{mtu_bytes}'",
    }
    return _lasting(device, f"{mode} && ip link set dev {name} mtu {mtu_bytes}", words, caution)


def _lasting(device: str, now: str, words: Mapping[Manager, str], caution: str = "") -> Worded:
    """``now``, and the words by which the interface's owner keeps it; some owners have a command for that."""

    def worded(system: System) -> Fix:
        owner = system.owner(device)
        if owner is not None and owner.manager in (Manager.NETWORK_MANAGER, Manager.NETPLAN):
            return Fix(f"{now} && {_command(device, owner, words[owner.manager])}", None, caution)
        # ifupdown joins a second `mtu` or `bond-miimon` of a stanza to the first: the port then stays down, or the bond
        # unmonitored. And with DHCP it reads no `mtu`.
        keep = _keep(device, owner, words.get(owner.manager, f"up {now}")) if owner is not None else None
        return Fix(now, keep, caution if keep else f"{caution} {_UNKNOWN_OWNER}".strip())

    return worded


def _command(device: str, owner: Owner, words: str) -> str:
    if owner.manager is Manager.NETWORK_MANAGER:
        profile = f'"$(nmcli -g GENERAL.CON-UUID device show {shlex.quote(device)})"'
        return f"nmcli connection modify {profile} {words}"
    path = f"{owner.section}.{device.replace('.', chr(92) + '.')}"  # a dot in a name is escaped
    return " && ".join(f"netplan set {shlex.quote(f'{path}.{word}')}" for word in words.split())


def _keep(device: str, owner: Owner, words: str) -> Keep | None:
    if owner.manager is Manager.NETWORKD:  # drop-ins: a bond's options are in the file that creates it
        bond = words.startswith("[Bond]")
        file = owner.netdev if bond else owner.file
        place = "" if bond else f"(it applies to every interface that {file} matches)"
        return Keep(f"/etc/systemd/network/{file}.d/90-storage.conf", words, place) if file else None
    if owner.manager is Manager.WICKED:
        return Keep(owner.file, words, "in BONDING_MODULE_OPTS" if words.startswith("miimon") else "")
    return Keep(owner.file, words, f"in the stanza of {device}")


def _udev_rule(nic: Nic, command: str) -> str:
    """Match by bus address, which no renaming changes; ``$name`` is the port's name when the rule runs."""
    match = f'KERNELS=="{nic.bus}"' if _BUS_ADDRESS.fullmatch(nic.bus) else f'KERNEL=="{glob_free(nic.device)}"'
    return f'ACTION=="add", SUBSYSTEM=="net", {match}, RUN+="{command}"'


def glob_free(name: str) -> str:
    """A udev pattern that matches this name alone; characters special to udev match any one character."""
    return re.sub(r'[*?\[\]|"\\$%]', "?", name)
