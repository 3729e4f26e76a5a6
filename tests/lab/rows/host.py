"""The host under the daemon: a CPU taken out, a clock set wrong, a halt, no memory, no journal, AppArmor."""

from __future__ import annotations

import time

from lab import product
from lab.guest import Guest
from lab.table import Group, NotShown, Row, Seen

DAYS = 400
HALT_S = 40.0
_HOG = "echo 1000 >/proc/self/oom_score_adj; exec python3 -c 'x = [str(1) * (1 << 24) for _ in iter(int, 1)]'"


def _collectors(guest: Guest) -> dict[str, object]:
    """Those that failed, by name: at best there is none. For a while there may be, where the guest gets little CPU."""
    look = lambda: product.failed(guest.scrape())  # noqa: E731
    return {"collectors that failed": guest.until(look, lambda names: not names, within_s=60)}


_NONE_FAILED: dict[str, object] = {"collectors that failed": []}


def cpu_offline(guest: Guest) -> Seen:
    """The kernel takes CPU 1 out of service; its rows leave softnet's file, whose others are not shifted."""
    guest.run("echo 0 >/sys/devices/system/cpu/cpu1/online")
    try:
        rows = guest.run("wc -l </proc/net/softnet_stat").strip()
        truth: dict[str, object] = {"online": guest.value("/sys/devices/system/cpu/online"), "rows": float(rows)}
        scrape = guest.scrape()
        cpus = scrape.labels("plumbline_softnet_packets_processed_total", "cpu")
        return Seen(truth, {"online": ",".join(sorted(cpus)), "rows": float(len(cpus))})
    finally:
        guest.run("echo 1 >/sys/devices/system/cpu/cpu1/online")


def clock(guest: Guest) -> Seen:
    """Set forward by hand, and back: every page has all its collectors, and its restart count stays."""
    restarts = "systemctl show -P NRestarts plumbline"
    before = guest.run(restarts).strip()
    figure: dict[str, object] = {}
    for way, change in (("forward", f"+{DAYS}"), ("back", f"-{DAYS}")):
        guest.run(f"date --set '{change} days' >/dev/null && sleep 10")
        figure |= {f"{way}: {name}": value for name, value in _collectors(guest).items()}
    truth = {f"{way}: {name}": value for way in ("forward", "back") for name, value in _NONE_FAILED.items()}
    return Seen(truth | {"restarts": before}, figure | {"restarts": guest.run(restarts).strip()})


def halted(guest: Guest) -> Seen:
    """The hypervisor stops all CPUs for a while, as in a live migration that takes long."""
    guest.qmp("stop")
    time.sleep(HALT_S)
    guest.qmp("cont")
    return Seen(_NONE_FAILED, _collectors(guest))


def confined(guest: Guest) -> Seen:
    """Debian's kernel enforces AppArmor's profiles, of which the service has none: nothing is denied it."""
    guest.run("systemctl start apparmor")
    truth: dict[str, object] = {"enabled": "Y", "denied": 0.0, **_NONE_FAILED}
    enabled = guest.value("/sys/module/apparmor/parameters/enabled")
    guest.run("systemctl restart plumbline")
    product.ready(guest)
    figure = {"enabled": enabled, **_collectors(guest)}
    denied = guest.run("journalctl --dmesg --boot --output cat | grep -c 'apparmor=\"DENIED\".*plumbline' || true")
    return Seen(truth, figure | {"denied": float(denied)})


def out_of_memory(guest: Guest) -> Seen:
    """Another process takes all memory until the kernel ends it: the daemon is not the one that goes."""
    pid = guest.run("systemctl show -P MainPID plumbline").strip()
    kills = "awk '/^oom_kill / {print $2}' /proc/vmstat"
    before = float(guest.run(kills))
    guest.run(_HOG, check=False)
    if float(guest.run(kills)) == before:
        raise NotShown("the kernel ended nothing")
    truth: dict[str, object] = {"main process": pid, **_NONE_FAILED}
    return Seen(truth, {"main process": guest.run("systemctl show -P MainPID plumbline").strip(), **_collectors(guest)})


def without_journal(guest: Guest) -> Seen:
    """What the daemon writes goes nowhere: it serves on, also after a reload that it would report."""
    guest.run("systemctl stop systemd-journald.socket systemd-journald-dev-log.socket systemd-journald", check=False)
    try:
        state = guest.run("systemctl is-active systemd-journald", check=False).strip()
        guest.run("systemctl kill --kill-whom=main -s HUP plumbline; sleep 10")
        return Seen({"journald": "inactive", **_NONE_FAILED}, {"journald": state, **_collectors(guest)})
    finally:
        guest.run("systemctl start systemd-journald.socket systemd-journald-dev-log.socket systemd-journald")


GROUP = Group(
    "host",
    (
        Row("the host", "a CPU taken out of service", cpu_offline),
        Row("the host", f"the clock set by {DAYS} days and back", clock),
        Row("the host", f"halted for {HALT_S:.0f} s", halted),
        Row("the host", "AppArmor", confined),
        Row("the host", "memory used up", out_of_memory),
        Row("the host", "the journal is gone", without_journal),
    ),
)
