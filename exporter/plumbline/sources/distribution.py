"""The distribution: its package manager, what it calls the packages that Plumbline names, and where it keeps programs.

From os-release(5). No other module names a package manager or a package; a test walks the tree for that. Names of
Debian 12 and 13, Ubuntu 24.04, RHEL 9 (with its derivatives) and SLES 15; older releases may differ.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from plumbline.sources.kernel import sysfs


class Family(StrEnum):
    """Distributions with the same package manager and names. Ubuntu builds its kernel's tools apart from Debian."""

    DEBIAN = "debian"
    UBUNTU = "ubuntu"
    RHEL = "rhel"
    SUSE = "suse"


_INSTALL = {
    Family.DEBIAN: "apt-get install -y",
    Family.UBUNTU: "apt-get install -y",
    Family.RHEL: "dnf install -y",
    Family.SUSE: "zypper --non-interactive install",
}
_REMOVE = {
    Family.DEBIAN: "apt-get purge",
    Family.UBUNTU: "apt-get purge",
    Family.RHEL: "dnf remove",
    Family.SUSE: "zypper remove",
}
_FEDORA = ("centos", "fedora", "rocky", "almalinux", "ol")
_IDS = {
    **{family.value: family for family in Family},
    **dict.fromkeys(_FEDORA, Family.RHEL),
    **dict.fromkeys(("sles", "sled", "opensuse"), Family.SUSE),
}
_READ_ONLY = frozenset({"rhcos", "coreos", "sle-micro", "sl-micro", "opensuse-microos"})
"""Systems that look like their relatives, but are replaced as a whole: a package manager changes nothing there."""
_PACKAGES: Mapping[str, Mapping[Family | None, str]] = {
    "ceph": {None: "ceph-common"},
    "cpupower": {
        None: "linux-cpupower",
        Family.UBUNTU: "linux-tools-common linux-tools-$(uname -r)",
        Family.RHEL: "kernel-tools",
        Family.SUSE: "cpupower",
    },
    "fio": {None: "fio"},
    "ibqueryerrors": {None: "infiniband-diags"},
    "iperf3": {None: "iperf3", Family.SUSE: "iperf"},
    "irqbalance": {None: "irqbalance"},
    "libbpf": {None: "libbpf1", Family.RHEL: "libbpf"},
    "qperf": {None: "qperf"},
    "smartctl": {None: "smartmontools"},
}
"""Program or library → its package; ``None``: wherever nothing else is said."""


class Distribution(Struct, frozen=True):
    """``family`` is ``None`` where the package manager is not known."""

    family: Family | None = Family.DEBIAN
    name: str = ""

    def package(self, what: str) -> str:
        names = _PACKAGES[what]
        return names.get(self.family, names[None])

    def install(self, what: str, then: str = "") -> str:
        """The command that installs a program or library, and ``then`` runs another; for a root shell."""
        if self.family is None:
            return f"# install {self.package(what)} as this system does{f', then: {then}' if then else ''}"
        return f"{_INSTALL[self.family]} {self.package(what)}{f' && {then}' if then else ''}"

    def remove(self, package: str) -> str:
        return f"{_REMOVE[self.family]} {package}" if self.family else f"remove {package} as this system does"

    @property
    def setpci(self) -> str:
        """Where setpci(8) is; udev's rules want the whole path."""
        return "/usr/bin/setpci" if self.family in (Family.DEBIAN, Family.UBUNTU) else "/sbin/setpci"


def advice(what: str) -> str:
    """To install a program, where the distribution is not known: with each of its names."""
    names = dict.fromkeys(_PACKAGES[what].values())
    others = {name: family for family, name in _PACKAGES[what].items() if family}
    words = (f"{name} ({others[name].value.upper()})" if name in others else name for name in names)
    return f"install the package {', '.join(words)}"


def parse_os_release(text: str) -> Distribution:
    """Shell assignments, quoted or not; other lines are ignored. ``ID`` comes before what it is like."""
    values = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.isidentifier():
            values[name] = _unquoted(value)
    names = [values.get("ID", ""), values.get("VARIANT_ID", ""), *values.get("ID_LIKE", "").split()]
    name = values.get("PRETTY_NAME", "")
    if not _READ_ONLY.isdisjoint(names):
        return Distribution(None, name)
    families = (_IDS[word] for known in names if (word := known.partition("-")[0]) in _IDS)
    return Distribution(next(families, None), name)


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return ""


def read_distribution(etc: Path) -> Distribution:
    """Its family is unknown where there is no os-release; the link below /etc may lead outside of a mounted tree."""
    for file in (etc / "os-release", etc.parent / "usr" / "lib" / "os-release"):
        data = sysfs.read_bytes(file)
        if data is not None:
            return parse_os_release(data.decode("utf-8", "replace"))
    return Distribution(None)
