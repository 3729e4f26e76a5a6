"""A bond of two ports to a bond at the far end, by LACP, and a VLAN on it; truth from ``/proc/net/bonding``."""

from __future__ import annotations

import re

from lab.guest import Guest
from lab.hardware import PEER
from lab.rows import net
from lab.table import Group, Row, Seen

_MAKE = f"""
set -e
[ ! -d /sys/class/net/bond0 ] || exit 0
make() {{
  $1 ip link add $2 type bond mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4
  for port in $3 $4; do $1 ip link set $port down; $1 ip addr flush dev $port; $1 ip link set $port master $2; done
  $1 ip link set $2 up
  $1 ip link add link $2 name $2.100 type vlan id 100
  $1 ip link set $2.100 up
}}
modprobe bonding max_bonds=0
make "" bond0 igb0 igb1
make "ip netns exec {PEER}" bond9 pigb0 pigb1
ip addr add 10.2.0.1/24 dev bond0.100
ip -n {PEER} addr add 10.2.0.2/24 dev bond9.100
"""


def prepare(guest: Guest) -> None:
    net.prepare(guest)
    guest.run(_MAKE)
    guest.until(lambda: _bond(guest)["ports"], lambda ports: ports == 2, within_s=60)


def _proc(guest: Guest) -> tuple[str, dict[str, str]]:
    """The bond's part of the file, and each slave's."""
    head, *slaves = guest.run("cat /proc/net/bonding/bond0").split("\nSlave Interface: ")
    return head, {text.partition("\n")[0]: text for text in slaves}


def _word(text: str, name: str) -> str:
    found = re.search(rf"^\s*{name}: (.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def _bond(guest: Guest) -> dict[str, float]:
    head, slaves = _proc(guest)
    return {
        "slaves": float(len(slaves)),
        "ports": float(_word(head, "Number of ports")),
        "aggregator": float(_word(head, "Aggregator ID")),
        "partner": float(_word(head, "Partner Mac Address") != "00:00:00:00:00:00"),
    }


def aggregation(guest: Guest) -> Seen:
    scrape = guest.scrape()
    names = {
        "slaves": "slaves",
        "ports": "aggregator_ports",
        "aggregator": "aggregator_id",
        "partner": "partner_mac_valid",
    }
    return Seen(
        _bond(guest), {ours: scrape.get(f"plumbline_bond_{name}", device="bond0") for ours, name in names.items()}
    )


def settings(guest: Guest) -> Seen:
    head, _ = _proc(guest)
    truth = {
        "mode": guest.value("/sys/class/net/bond0/bonding/mode").split()[0],
        "hash": _word(head, "Transmit Hash Policy").split()[0],
        "rate": _word(head, "LACP rate"),
    }
    info = guest.scrape().series("plumbline_bond_info", device="bond0")[0].labels
    return Seen(truth, {"mode": info["bond_mode"], "hash": info["xmit_hash_policy"], "rate": info["lacp_rate"]})


def slaves(guest: Guest) -> Seen:
    """Up, failures and aggregator of each."""
    _, texts = _proc(guest)
    truth, figure = {}, {}
    scrape = guest.scrape()
    for name, text in texts.items():
        truth[f"{name} up"] = float(_word(text, "MII Status") == "up")
        truth[f"{name} failures"] = float(_word(text, "Link Failure Count"))
        truth[f"{name} aggregator"] = float(_word(text, "Aggregator ID"))
        figure[f"{name} up"] = scrape.get("plumbline_bond_slave_up", slave=name)
        figure[f"{name} failures"] = scrape.get("plumbline_bond_slave_link_failures_total", slave=name)
        figure[f"{name} aggregator"] = scrape.get("plumbline_bond_slave_aggregator_id", slave=name)
    return Seen(truth, figure)


def port_down(guest: Guest) -> Seen:
    guest.monitor("set_link igb1 off")
    guest.until(lambda: _proc(guest)[1]["igb1"], lambda text: "MII Status: down" in text, within_s=20)
    guest.until(lambda: _bond(guest)["ports"], lambda ports: ports == 1, within_s=20)
    try:
        found = _finding(guest, "bond-degraded")
        seen, alone = slaves(guest), aggregation(guest)
        truth = {**_named(seen.truth), **_named(alone.truth), "finding": 1.0}
        return Seen(truth, {**_named(seen.figure), **_named(alone.figure), "finding": found})
    finally:
        guest.monitor("set_link igb1 on")
        guest.until(lambda: _bond(guest)["ports"], lambda ports: ports == 2, within_s=60)


def _finding(guest: Guest, check: str) -> float | None:
    """1 as soon as the daemon finds it; it judges every minute or so."""
    look = lambda: guest.scrape().get("plumbline_finding", check=f"network.{check}", subject="bond0")  # noqa: E731
    return guest.until(look, lambda found: found == 1, within_s=120)


def _named(values: object) -> dict[str, object]:
    return dict(values) if isinstance(values, dict) else {}


def partner_silent(guest: Guest) -> Seen:
    """The far end's LACP stops with its links up: as after a mistake in a switch's configuration."""
    guest.run(f"for port in pigb0 pigb1; do ip -n {PEER} link set $port nomaster; ip -n {PEER} link set $port up; done")
    guest.until(lambda: _bond(guest)["partner"], lambda partner: not partner, within_s=60)
    try:
        found = _finding(guest, "bond-not-aggregated")
        seen = aggregation(guest)
        return Seen({**_named(seen.truth), "finding": 1.0}, {**_named(seen.figure), "finding": found})
    finally:
        join = f"ip -n {PEER} link set $port down; ip -n {PEER} link set $port master bond9"
        guest.run(f"for port in pigb0 pigb1; do {join}; done")
        guest.until(lambda: _bond(guest)["ports"], lambda ports: ports == 2, within_s=90)


def stacked(guest: Guest) -> Seen:
    truth = {
        f"{item['ifname']} on {item['link']}" if "link" in item else f"{item['master']} on {item['ifname']}"
        for item in guest.json("ip -json link show")
        if "link" in item or "master" in item
    }
    relations = guest.scrape().series("plumbline_nic_relation_info")
    return Seen(truth, {f"{each.labels['device']} on {each.labels['lower']}" for each in relations})


def vlan_link(guest: Guest) -> Seen:
    scrape = guest.scrape()
    truth = {
        "mtu": float(guest.value("/sys/class/net/bond0.100/mtu")),
        "up": float(guest.value("/sys/class/net/bond0.100/carrier")),
    }
    figure = {
        "mtu": scrape.get("plumbline_nic_mtu_bytes", device="bond0.100"),
        "up": scrape.get("plumbline_nic_up", device="bond0.100"),
    }
    return Seen(truth, figure)


def mtu_apart(guest: Guest) -> Seen:
    """A larger VLAN than the bond below carries nothing large: the kernel refuses it, so the bond is made smaller."""
    guest.run("ip link set bond0 mtu 9000; ip link set bond0.100 mtu 9000; ip link set bond0 mtu 1500")
    return _mtus(guest, "bond0", "bond0.100", "igb0")


def member_mtu(guest: Guest) -> Seen:
    """A member whose MTU is smaller than its bond's, which nothing refuses."""
    guest.run("ip link set igb1 mtu 1400")
    try:
        return _mtus(guest, "bond0", "igb0", "igb1")
    finally:
        guest.run("ip link set igb1 mtu 1500")


def _mtus(guest: Guest, *names: str) -> Seen:
    truth = {name: float(guest.value(f"/sys/class/net/{name}/mtu")) for name in names}
    scrape = guest.scrape()
    return Seen(truth, {name: scrape.get("plumbline_nic_mtu_bytes", device=name) for name in names})


GROUP = Group(
    "bond",
    (
        Row("LACP bond of 2 igb", "aggregation", aggregation),
        Row("LACP bond of 2 igb", "settings", settings),
        Row("LACP bond of 2 igb", "slaves", slaves),
        Row("LACP bond of 2 igb", "a port's wire pulled", port_down),
        Row("LACP bond of 2 igb", "the partner's LACP stops", partner_silent),
        Row("LACP bond of 2 igb", "a member's MTU made smaller", member_mtu),
        Row("VLAN on the bond", "stacking", stacked),
        Row("VLAN on the bond", "link", vlan_link),
        Row("VLAN on the bond", "the bond's MTU made smaller", mtu_apart),
    ),
    prepare,
)
