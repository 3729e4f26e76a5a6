"""A fix is in the words of the distribution, and lasts by whoever owns the interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.checks import fixes
from plumbline.checks.model import Fix, Keep, System
from plumbline.core.roots import Roots
from plumbline.sources.distribution import Distribution, Family, parse_os_release, read_distribution

SYSTEMS = Path(__file__).parents[2] / "fixtures" / "systems"
DEBIAN12, DEBIAN13, UBUNTU, RHEL, SLES = (
    "debian-12-ifupdown",
    "debian-13-networkd",
    "ubuntu-24.04-netplan",
    "rhel-9-networkmanager",
    "sles-15-wicked",
)
SET_MTU, SET_MIIMON = "ip link set dev ens2 mtu 9000", "ip link set dev bond0 type bond miimon 100"
UNKNOWN = (
    "It is gone after the next boot, unless it is also set where this interface is configured: that place is not known"
    " here."
)


def system(name: str) -> System:
    return fixes.read_system(Roots.under(SYSTEMS / name), {})


@pytest.mark.parametrize(
    ("name", "smartctl", "cpupower", "libbpf", "iperf3", "setpci", "remove"),
    [
        (
            DEBIAN12,
            "apt-get install -y smartmontools && x",
            "linux-cpupower",
            "libbpf1",
            "iperf3",
            "/usr/bin/setpci",
            "apt-get purge plumbline",
        ),
        (
            DEBIAN13,
            "apt-get install -y smartmontools && x",
            "linux-cpupower",
            "libbpf1",
            "iperf3",
            "/usr/bin/setpci",
            "apt-get purge plumbline",
        ),
        (
            UBUNTU,
            "apt-get install -y smartmontools && x",
            "linux-tools-common linux-tools-$(uname -r)",
            "libbpf1",
            "iperf3",
            "/usr/bin/setpci",
            "apt-get purge plumbline",
        ),
        (
            RHEL,
            "dnf install -y smartmontools && x",
            "kernel-tools",
            "libbpf",
            "iperf3",
            "/sbin/setpci",
            "dnf remove plumbline",
        ),
        (
            SLES,
            "zypper --non-interactive install smartmontools && x",
            "cpupower",
            "libbpf1",
            "iperf",
            "/sbin/setpci",
            "zypper remove plumbline",
        ),
    ],
)
def test_packages_of_a_distribution(
    name: str, smartctl: str, cpupower: str, libbpf: str, iperf3: str, setpci: str, remove: str
) -> None:
    here = read_distribution(SYSTEMS / name / "etc")
    assert here.install("smartctl", "x") == smartctl
    assert (here.package("cpupower"), here.package("libbpf"), here.package("iperf3")) == (cpupower, libbpf, iperf3)
    assert (here.setpci, here.remove("plumbline")) == (setpci, remove)


@pytest.mark.parametrize(
    ("name", "now", "keep"),
    [
        (DEBIAN12, SET_MTU, Keep("/etc/network/interfaces.d/storage", f"up {SET_MTU}", "in the stanza of ens2")),
        (
            DEBIAN13,
            SET_MTU,
            Keep(
                "/etc/systemd/network/20-storage.network.d/90-storage.conf",
                "[Link]\nMTUBytes=9000",
                "(it applies to every interface that 20-storage.network matches)",
            ),
        ),
        (UBUNTU, f"{SET_MTU} && netplan set ethernets.ens2.mtu=9000", None),
        (
            RHEL,
            f'{SET_MTU} && nmcli connection modify "$(nmcli -g GENERAL.CON-UUID device show ens2)"'
            " 802-3-ethernet.mtu 9000",
            None,
        ),
        (SLES, SET_MTU, Keep("/etc/sysconfig/network/ifcfg-ens2", "MTU='9000'")),
    ],
)
def test_an_mtu_lasts(name: str, now: str, keep: Keep | None) -> None:
    assert fixes.mtu("ens2", 9000, caution="Take care.")(system(name)) == Fix(now, keep, "Take care.")


@pytest.mark.parametrize(
    ("name", "now", "keep"),
    [
        (DEBIAN12, SET_MIIMON, Keep("/etc/network/interfaces.d/storage", f"up {SET_MIIMON}", "in the stanza of bond0")),
        (
            DEBIAN13,
            SET_MIIMON,
            Keep("/etc/systemd/network/05-bond.netdev.d/90-storage.conf", "[Bond]\nMIIMonitorSec=100ms"),
        ),
        (UBUNTU, f"{SET_MIIMON} && netplan set bonds.bond0.parameters.mii-monitor-interval=100", None),
        (
            RHEL,
            f'{SET_MIIMON} && nmcli connection modify "$(nmcli -g GENERAL.CON-UUID device show bond0)"'
            " +bond.options miimon=100",
            None,
        ),
        (SLES, SET_MIIMON, Keep("/etc/sysconfig/network/ifcfg-bond0", "miimon=100", "in BONDING_MODULE_OPTS")),
    ],
)
def test_miimon_lasts(name: str, now: str, keep: Keep | None) -> None:
    assert fixes.miimon("bond0", 100)(system(name)) == Fix(now, keep)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (DEBIAN12, "up echo connected > /sys/class/net/ens2/mode && ip link set dev ens2 mtu 65520"),
        (DEBIAN13, "[Link]\nMTUBytes=65520\n[IPoIB]\nMode=connected"),
        (UBUNTU, "netplan set ethernets.ens2.infiniband-mode=connected && netplan set ethernets.ens2.mtu=65520"),
        (RHEL, "infiniband.transport-mode connected infiniband.mtu 65520"),
        (SLES, "IPOIB_MODE='connected'\nMTU='65520'"),
    ],
)
def test_connected_mode_lasts(name: str, words: str) -> None:
    fix = fixes.connected_ipoib("ens2", 65520, caution="")(system(name))
    assert (fix.keep.content if fix.keep else fix.now).endswith(words)


def test_a_vlan_has_its_section_and_its_dot_escaped() -> None:
    fix = fixes.mtu("bond0.40", 9000, caution="")(system(UBUNTU))
    assert fix.now == r"ip link set dev bond0.40 mtu 9000 && netplan set 'vlans.bond0\.40.mtu=9000'"


@pytest.mark.parametrize("name", [DEBIAN12, DEBIAN13, UBUNTU, RHEL, SLES])
def test_an_unknown_owner_is_told(name: str, tmp_path: Path) -> None:
    """No tree configures ens9: on RHEL, NetworkManager says that it does not manage it."""
    fix = fixes.mtu("ens9", 9000, caution="Take care.")(system(name))
    if name == UBUNTU:  # netplan configures whatever is there
        assert fix.now.endswith("netplan set ethernets.ens9.mtu=9000")
    else:
        assert fix == Fix("ip link set dev ens9 mtu 9000", None, f"Take care. {UNKNOWN}")


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', Family.RHEL),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", Family.UBUNTU),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', Family.SUSE),
        ("ID=raspbian\nID_LIKE=debian\n", Family.DEBIAN),
        ('ID="rhcos"\nID_LIKE="rhel fedora"\n', None),
        ("ID=fedora\nVARIANT_ID=coreos\n", None),
        ('ID="sl-micro"\nID_LIKE="suse"\n', None),
        ("ID=arch\n", None),
        ('ID="debian\n', None),
        ("", None),
    ],
)
def test_the_family_by_id_or_what_it_is_like(text: str, family: Family | None) -> None:
    assert parse_os_release(text).family is family


def test_an_unknown_distribution_gets_no_command_of_another(tmp_path: Path) -> None:
    here = read_distribution(tmp_path / "etc")
    assert here == Distribution(None)
    assert here.install("irqbalance", "systemctl start x") == (
        "# install irqbalance as this system does, then: systemctl start x"
    )


def test_setpci_is_named_by_its_path() -> None:
    fix = fixes.setpci("0000:02:00.0", "CAP_EXP+28.w=0000:0400", "")(system(RHEL))
    assert fix.keep is not None
    assert fix.keep.content.endswith('RUN+="/sbin/setpci -s $kernel CAP_EXP+28.w=0000:0400"')
