"""What a finding says, done to the letter, over real reboots: with networkd, ifupdown and NetworkManager.

Each of the three has a port and a bond of one port, configured wrong. First only the commands of the findings are run,
and the guest is rebooted; then what is to be kept is put where the findings say, and it is rebooted again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any

from lab import product
from lab.guest import Guest, GuestError
from lab.table import Group, Row, Seen

Finding = Mapping[str, Any]
"""As ``plumbline check --json`` has it."""

_MEMBER = "[connection]\nid={0}\ntype=ethernet\ninterface-name={0}\nmaster={1}\nslave-type=bond\n"
_ADDRESS = "[ipv4]\nmethod=manual\naddress1={}/24\n[ipv6]\nmethod=disabled\n"
_NETWORKD, _IFUPDOWN, _NETWORK_MANAGER = (
    "/etc/systemd/network", "/etc/network", "/etc/NetworkManager/system-connections",
)  # fmt: skip
_FILES = {
    # one storage network, in which vmx0 alone has a large MTU; the others have 1500, their driver's or as configured
    "/etc/ceph/ceph.conf": "[global]\npublic_network = 10.3.0.0/16\n",
    f"{_NETWORKD}/20-large.network": "[Match]\nName=vmx0\n[Link]\nMTUBytes=9000\n[Network]\nAddress=10.3.0.1/24\n",
    f"{_NETWORKD}/20-storage.network": "[Match]\nName=igb0\n[Network]\nAddress=10.3.1.1/24\n",
    f"{_NETWORKD}/30-bond.netdev": "[NetDev]\nName=bond1\nKind=bond\n[Bond]\nMode=active-backup\n",
    f"{_NETWORKD}/30-bond.network": "[Match]\nName=bond1\n[Network]\nAddress=10.3.2.1/24\n",
    f"{_NETWORKD}/30-member.network": "[Match]\nName=pigb0\n[Network]\nBond=bond1\n",
    f"{_IFUPDOWN}/interfaces": "auto lo\niface lo inet loopback\nsource /etc/network/interfaces.d/*\n",
    f"{_IFUPDOWN}/interfaces.d/storage": (
        "auto igb1\niface igb1 inet static\n  address 10.3.3.1/24\n  mtu 1500\n\n"
        "auto bond2\niface bond2 inet static\n  address 10.3.4.1/24\n  mtu 1500\n"
        "  bond-slaves pigb1\n  bond-mode active-backup\n  bond-miimon 0\n"
    ),
    # else it is left as Debian has it: it shows the ports of networkd as its own, "connected (externally)"
    "/etc/NetworkManager/conf.d/lab.conf": "[main]\nno-auto-default=*\n",
    f"{_NETWORK_MANAGER}/e1k0.nmconnection": (
        f"[connection]\nid=e1k0\ntype=ethernet\ninterface-name=e1k0\n{_ADDRESS.format('10.3.5.1')}"
    ),
    f"{_NETWORK_MANAGER}/bond3.nmconnection": (
        "[connection]\nid=bond3\ntype=bond\ninterface-name=bond3\n[bond]\nmode=active-backup\nmiimon=0\n"
        f"{_ADDRESS.format('10.3.6.1')}"
    ),
    f"{_NETWORK_MANAGER}/pvmx0.nmconnection": _MEMBER.format("pvmx0", "bond3"),
    "/etc/udev/rules.d/61-lab.rules": (
        'ACTION=="add|change", SUBSYSTEM=="block", ENV{ID_SERIAL_SHORT}=="SATA0001", ATTR{queue/scheduler}="none"\n'
    ),
}
_UNITS = "networking NetworkManager"


@dataclass(frozen=True, slots=True)
class Setting:
    """``subject`` as the finding names it, or a disk's serial number; ``asked``: the command by which the kernel says
    its value; ``advised``: a pattern, of the value in the command that the finding advises."""

    check: str
    subject: str
    asked: str
    advised: str

    def name(self, guest: Guest) -> str:
        """The subject, as the kernel names it since this boot."""
        return guest.disk(self.subject) if self.check.startswith("disk.") else self.subject

    def value(self, guest: Guest) -> str:
        return guest.run(self.asked.format(shlex.quote(self.name(guest)))).strip()


def _mtu(device: str) -> Setting:
    return Setting("network.mtu-differs", device, "cat /sys/class/net/{}/mtu", r" mtu (\d+)")


def _miimon(bond: str) -> Setting:
    asked = "cut -d' ' -f1 /sys/class/net/{}/bonding/miimon"
    return Setting("network.bond-unmonitored", bond, asked, r" miimon (\d+)")


def _ring(device: str) -> Setting:
    asked = "ethtool -g {} | awk '/^RX:/ {{ now = $2 }} END {{ print now }}'"
    return Setting("network.ring-below-maximum", device, asked, r" rx (\d+)")


_SYSCTL = Setting("network.rmem-max", "net.core.rmem_max", "sysctl -n {}", r"=(\d+)")
_SCHEDULER = Setting(
    "disk.scheduler", "SATA0001", "grep -o '[^[]*]' /sys/block/{}/queue/scheduler | tr -d ]", r"echo (\S+) "
)
_OWNERS = {
    "systemd-networkd": ("igb0", "bond1", "pigb0"),
    "ifupdown": ("igb1", "bond2", "pigb1"),
    "NetworkManager": ("e1k0", "bond3", "pvmx0"),
}


def _settings() -> Iterator[tuple[str, str, Setting]]:
    """Device and feature of each row, and what it is about."""
    for owner, (port, bond, member) in _OWNERS.items():
        yield owner, "MTU of a port", _mtu(port)
        yield owner, "ring of a port", _ring(port)
        yield owner, "MTU of a bond", _mtu(bond)
        yield owner, "MTU of a bond's port", _mtu(member)
        yield owner, "miimon of a bond", _miimon(bond)
    yield "sysctl.d", "rmem_max", _SYSCTL
    yield "udev", "scheduler of a SATA hard disk", _SCHEDULER


@dataclass(slots=True)
class Told:
    """Of one setting: what the kernel and ``plumbline check`` said at each moment, in order; whether the daemon's own
    finding is 0 at the end; what did not work."""

    kernel: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    gone: bool = False
    failed: str = ""


@cache
def _told(guest: Guest) -> Mapping[Setting, Told]:
    """The whole course, once for all rows."""
    guest.run("\n".join(["set -e", f"systemctl unmask {_UNITS}", *map(_written, _FILES, _FILES.values())]))
    guest.run(f"chmod 600 {_NETWORK_MANAGER}/*")
    told = {setting: Told() for _, _, setting in _settings()}
    _reboot(guest)
    _look(guest, told, "at first")
    _do(told, lambda fix: guest.run(fix["now"]))
    for setting, each in told.items():
        each.kernel["by the command"] = setting.value(guest)
    _reboot(guest)
    _look(guest, told, "rebooted")
    _do(told, lambda fix: _keep(guest, fix["keep"]))
    _reboot(guest)
    _look(guest, told, "rebooted as kept")
    guest.until(lambda: _gone(guest, told), all, within_s=180)
    return told


def _gone(guest: Guest, told: Mapping[Setting, Told]) -> list[bool]:
    """Of each setting; the daemon judges every minute or so."""
    page = guest.scrape()
    for setting, each in told.items():
        each.gone = page.get("plumbline_finding", check=setting.check, subject=setting.name(guest)) == 0
    return [each.gone for each in told.values()]


def _written(path: str, content: str) -> str:
    return f"mkdir -p {PurePosixPath(path).parent}; printf %s {shlex.quote(content)} >{path}"


def _reboot(guest: Guest) -> None:
    guest.reboot()
    product.ready(guest)


def _look(guest: Guest, told: Mapping[Setting, Told], moment: str) -> None:
    found = {
        (each["check"], each["subject"]): each
        for each in guest.json("plumbline check --json || [ $? -lt 3 ]")["findings"]
    }
    for setting, each in told.items():
        each.kernel[moment] = setting.value(guest)
        each.findings.append(found.get((setting.check, setting.name(guest)), {}))


def _do(told: Mapping[Setting, Told], what: Callable[[Finding], object]) -> None:
    """For each setting, by its first finding."""
    for each in told.values():
        try:
            what(each.findings[0]["fix"])
        except (GuestError, LookupError) as error:
            each.failed = each.failed or f"{type(error).__name__}: {error}"


def _keep(guest: Guest, keep: Mapping[str, str] | None) -> None:
    """As a reader would: in interfaces(5) into the stanza that is named, else at the end of the file."""
    if keep is None:
        return
    before = guest.run(f"[ ! -e {keep['file']} ] || cat {keep['file']}")
    stanza = re.fullmatch(r"in the stanza of (\S+)", keep["place"])
    if stanza:
        head = re.compile(rf"^iface {re.escape(stanza[1])} .*\n", re.MULTILINE)
        content, times = head.subn(lambda found: f"{found[0]}  {keep['content']}\n", before)
        if times != 1:
            raise GuestError(f"{times} stanzas of {stanza[1]} in {keep['file']}")
    else:
        content = f"{before}{keep['content']}\n"
    guest.run(_written(keep["file"], content))


def _kept(setting: Setting, guest: Guest) -> Seen:
    """The kernel's values, beside what the findings said, or advised."""
    told = _told(guest)[setting]
    if told.failed:
        return Seen("it can be done", told.failed)
    first, last = told.findings[0], told.findings[-1]
    found = re.search(setting.advised, first["fix"]["now"])
    advised = found[1] if found else "nothing"
    expected = [advised if each["met"] else _is(each) for each in told.findings[:2]]
    figure = {"at first": expected[0], "by the command": advised, "rebooted": expected[1], "rebooted as kept": advised}
    return Seen({**told.kernel, "then met": True}, {**figure, "then met": bool(last["met"]) and told.gone})


def _is(finding: Finding) -> str:
    words = str(finding["is"])
    return "0" if "not monitored" in words else words.split(maxsplit=1)[0].replace(",", "")


GROUP = Group(
    "boot", tuple(Row(device, feature, partial(_kept, setting)) for device, feature, setting in _settings()), _told
)
