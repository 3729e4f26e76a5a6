"""NICs: every setting as ethtool has it, a link that goes, a ring that is made smaller."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from lab.guest import Guest
from lab.hardware import NICS, PEER
from lab.table import Group, NotShown, Row, Seen
from support.scraped import Scrape

OURS = tuple(nic for nic in NICS if not nic.name.startswith("p"))


_FLOOD_S = 45
_JUDGED_PER_S = 150  # the daemon asks for 100, in ten seconds that the guest may not have had


def prepare(guest: Guest) -> None:
    """The far ends go into a namespace; each pair gets addresses."""
    guest.run(f"ip netns list | grep -qw {PEER} || ip netns add {PEER}; ip -n {PEER} link set lo up")
    for nic in OURS:
        far, net = f"p{nic.name}", f"10.1.{nic.wire}"
        guest.run(
            f"[ -d /sys/class/net/{far} ] && ip link set {far} netns {PEER}; ip -n {PEER} link set {far} up; "
            f"ip link set {nic.name} up; ip addr replace {net}.1/24 dev {nic.name}; "
            f"ip -n {PEER} addr replace {net}.2/24 dev {far}"
        )
    guest.until(
        lambda: guest.run("cat /sys/class/net/*/carrier", check=False), lambda said: "0" not in said, within_s=20
    )


def _far(device: str) -> str:
    """The address at the other end of its wire."""
    return next(f"10.1.{nic.wire}.2" for nic in OURS if nic.name == device)


def _numbers(text: str, names: dict[str, str]) -> dict[str, float]:
    """What ethtool's ``Name: number`` lines say, by our names; ``n/a`` and what the driver lacks are absent."""
    found = {ours: re.search(rf"^{theirs}:\s+(\d+)\s*$", text, re.MULTILINE) for theirs, ours in names.items()}
    return {name: float(match[1]) for name, match in found.items() if match}


def _switches(text: str, names: dict[str, str]) -> dict[str, float]:
    found = {ours: re.search(rf"^{theirs}:\s+(on|off)", text, re.MULTILINE) for theirs, ours in names.items()}
    return {name: float(match[1] == "on") for name, match in found.items() if match}


def _figures(scrape: Scrape, metric: str, device: str, label: str) -> dict[str, float]:
    return {each.labels[label]: each.value for each in scrape.series(f"plumbline_nic_{metric}", device=device)}


def _asked(guest: Guest, flag: str, device: str) -> str:
    text = guest.run(f"ethtool {flag} {device} 2>/dev/null", check=False)
    if not text.strip():
        raise NotShown(f"the driver has no ethtool {flag}")
    return text


_RINGS = {"RX": "receive", "RX Mini": "receive_mini", "RX Jumbo": "receive_jumbo", "TX": "transmit"}
_CHANNELS = {"RX": "receive", "TX": "transmit", "Other": "other", "Combined": "combined"}


def _present(numbers: dict[str, float]) -> dict[str, float]:
    """Without those that are zero: ethtool prints a zero for what a driver has not."""
    return {name: number for name, number in numbers.items() if number}


def rings(device: str, guest: Guest) -> Seen:
    most, now = _asked(guest, "-g", device).split("Current hardware settings:")
    scrape = guest.scrape()
    entries, maxima = (
        _present(_figures(scrape, name, device, "ring")) for name in ("ring_entries", "ring_entries_max")
    )
    truth = {**_present(_numbers(now, _RINGS)), **_of(_present(_numbers(most, _RINGS)))}
    return Seen(truth, {**entries, **_of(maxima)})


def _of(maxima: dict[str, float]) -> dict[str, float]:
    return {f"{name} of": number for name, number in maxima.items()}


def channels(device: str, guest: Guest) -> Seen:
    most, now = _asked(guest, "-l", device).split("Current hardware settings:")
    here = _present(_numbers(most, _CHANNELS))
    truth = {name: number for name, number in _numbers(now, _CHANNELS).items() if name in here}
    return Seen(truth, _figures(guest.scrape(), "channels", device, "channel"))


def coalescing(device: str, guest: Guest) -> Seen:
    text = _asked(guest, "-c", device)
    truth = {
        name: number / 1e6 for name, number in _numbers(text, {"rx-usecs": "receive", "tx-usecs": "transmit"}).items()
    }
    return Seen(truth, _figures(guest.scrape(), "coalesce_seconds", device, "direction"))


def pause(device: str, guest: Guest) -> Seen:
    truth = _switches(_asked(guest, "-a", device), {"RX": "receive", "TX": "transmit"})
    return Seen(truth, _figures(guest.scrape(), "pause_enabled", device, "direction"))


def offloads(device: str, guest: Guest) -> Seen:
    """Only how many agree is shown: each is compared."""
    truth = {
        name: float(word == "on")
        for name, word in re.findall(r"^\s*([\w-]+): (on|off)", _asked(guest, "-k", device), re.M)
    }
    figures = _figures(guest.scrape(), "offload_enabled", device, "feature")
    apart = sorted(name for name in figures if figures[name] != truth.get(name))
    return Seen(f"{len(figures)} settings", f"{len(figures)} settings" if not apart else f"differ: {', '.join(apart)}")


def link(device: str, guest: Guest) -> Seen:
    text, scrape = guest.run(f"ethtool {device}"), guest.scrape()
    speed = re.search(r"Speed: (\d+)Mb/s", text)
    truth = {
        "up": float("Link detected: yes" in text),
        "full duplex": float("Duplex: Full" in text),
        "bytes per second": float(speed[1]) * 125_000 if speed else None,
        "mtu": float(guest.value(f"/sys/class/net/{device}/mtu")),
        "driver": guest.run(f"basename $(readlink /sys/class/net/{device}/device/driver)").strip(),
    }
    names = {"up": "up", "full duplex": "full_duplex", "bytes per second": "speed_bytes_per_second", "mtu": "mtu_bytes"}
    figure: dict[str, object] = {
        ours: scrape.get(f"plumbline_nic_{name}", device=device) for ours, name in names.items()
    }
    return Seen(truth, figure | {"driver": ", ".join(scrape.labels("plumbline_nic_info", "driver", device=device))})


def bytes_sent(device: str, guest: Guest) -> Seen:
    """After a second of traffic; nobody else uses the wire."""
    guest.run(f"ping -q -f -c 2000 -s 1400 -I {device} {_far(device)}", timeout_s=120)
    scrape = guest.scrape()
    truth = {
        direction: float(guest.value(f"/sys/class/net/{device}/statistics/{way}_packets"))
        for direction, way in (("receive", "rx"), ("transmit", "tx"))
    }
    return Seen(truth, _figures(scrape, "packets_total", device, "direction"), tolerance=5)


def interrupts(device: str, guest: Guest) -> Seen:
    """Under a flood: how many of its vectors are busy, and the busiest CPU's share; the daemon looks every 10 s."""
    flood = f"setsid ping -q -f -l 50 -w {_FLOOD_S} -I {device} {_far(device)} >/dev/null 2>&1 &"
    guest.run(f"{flood} {flood} sleep 2")
    before = _interrupts(guest, device)
    guest.run("sleep 30")
    grown = {
        vector: [late - early for late, early in zip(counts, before[vector], strict=True)]
        for vector, counts in _interrupts(guest, device).items()
    }
    scrape = guest.scrape()
    cpus = [sum(each) for each in zip(*grown.values(), strict=True)]
    if sum(cpus) < 30 * _JUDGED_PER_S:
        raise NotShown(f"{sum(cpus) / 30:.0f} interrupts a second: too few to be judged")
    truth = {"vectors": float(sum(map(any, grown.values()))), "busiest CPU": max(cpus) / (sum(cpus) or 1)}
    names = {"vectors": "active_vectors", "busiest CPU": "share_max_ratio"}
    figure = {ours: scrape.get(f"plumbline_nic_irq_{name}", device=device) for ours, name in names.items()}
    guest.run(f"sleep {_FLOOD_S - 30}")  # the next row's wire is quiet
    return Seen(truth, figure, tolerance=0.15)


def _interrupts(guest: Guest, device: str) -> dict[str, list[int]]:
    """So far, on each CPU, of each vector of a port."""
    own = guest.run(f"ls /sys/class/net/{device}/device/msi_irqs").split()
    rows = [line.replace(":", " ").split() for line in guest.run("cat /proc/interrupts").splitlines()]
    cpus = len(rows[0])
    return {row[0]: [int(count) for count in row[1 : cpus + 1]] for row in rows[1:] if row[0] in own}


def ring_changed(device: str, guest: Guest) -> Seen:
    """Seen at the next scrape, not only at the next look at all settings."""
    guest.run(f"ethtool -G {device} rx 512 && sleep 3")
    now = _asked(guest, "-g", device).split("Current hardware settings:")[1]
    truth = _numbers(now, _RINGS)["receive"]
    seen = Seen(truth, _figures(guest.scrape(), "ring_entries", device, "ring").get("receive"))
    guest.run(f"ethtool -G {device} rx 256")
    return seen


def unplugged(device: str, guest: Guest) -> Seen:
    """The wire is pulled in the hypervisor."""
    guest.monitor(f"set_link {device} off")
    # not the carrier: the kernel takes up to a second from its loss to the state that it tells everybody
    guest.run(f"for i in $(seq 20); do [ $(cat /sys/class/net/{device}/operstate) = down ] && break; sleep 1; done")
    scrape = guest.scrape()
    truth = {"up": 0, "changes": float(guest.value(f"/sys/class/net/{device}/carrier_changes"))}
    figure = {
        "up": scrape.get("plumbline_nic_up", device=device),
        "changes": scrape.get("plumbline_nic_carrier_changes_total", device=device),
    }
    guest.monitor(f"set_link {device} on")
    return Seen(truth, figure)


_SETTINGS: dict[str, Callable[[str, Guest], Seen]] = {
    "rings": rings, "channels": channels, "coalescing": coalescing, "pause frames": pause, "offloads": offloads,
    "link": link, "packets": bytes_sent,
}  # fmt: skip


def _rows() -> Iterator[Row]:
    for nic in OURS:
        model = nic.device.partition(",")[0]
        for feature, look in _SETTINGS.items():
            if nic.name != "igb1":  # as igb0
                yield Row(model, feature, partial(look, nic.name))
    for name, model in (("igb0", "igb"), ("vmx0", "vmxnet3")):
        yield Row(model, "interrupts under load", partial(interrupts, name))
    for name in ("igb0", "vmx0", "e1k0"):
        model = name.rstrip("01").replace("vmx", "vmxnet3").replace("e1k", "e1000")
        yield Row(model, "wire pulled", partial(unplugged, name))
        yield Row(model, "ring set by ethtool", partial(ring_changed, name))


GROUP = Group("net", tuple(_rows()), prepare)
