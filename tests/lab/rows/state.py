"""The daemon as a service: every collector, its memory, its state over kills, its clock."""

from __future__ import annotations

import contextlib
import json

from lab.guest import Guest
from lab.table import Group, Row, Seen

_STATE = "/var/lib/private/plumbline/state.json"
KILLS = 20


def collectors(guest: Guest) -> Seen:
    """All that are not right, of those that run; the journal says what is wrong with one."""
    found = guest.scrape().series("plumbline_collector_success")
    return Seen(f"{len(found)} right", f"{sum(each.value for each in found):.0f} right")


def tracebacks(guest: Guest) -> Seen:
    return Seen(0.0, float(guest.run("journalctl -u plumbline -o cat | grep -c Traceback || true")))


def vantage(guest: Guest) -> Seen:
    """As systemd judges it."""
    truth = {"none": "host"}.get(guest.run("systemd-detect-virt", check=False).strip(), "vm")
    return Seen(truth, ", ".join(guest.scrape().labels("plumbline_probe_info", "vantage")))


def memory(guest: Guest) -> Seen:
    """The daemon's resident memory is below the 100 MiB that its unit says."""
    pid = guest.run("systemctl show -P MainPID plumbline").strip()
    used = int(guest.run(f"awk '/^VmRSS/ {{print $2}}' /proc/{pid}/status")) / 1024
    return Seen("below 100 MiB", f"{'below' if used < 100 else 'not below'} 100 MiB")


def killed(guest: Guest) -> Seen:
    """SIGKILL at odd moments: it comes back each time, and its state is sound."""
    sound = 0
    for number in range(KILLS):
        restart = "systemctl kill -s KILL plumbline; systemctl reset-failed plumbline; systemctl start plumbline"
        guest.run(f"sleep 0.{number}{number % 7}; {restart}")
        with contextlib.suppress(ValueError):
            sound += isinstance(json.loads(guest.run(f"cat {_STATE}")), dict)
    return Seen(KILLS, sound)


GROUP = Group(
    "state",
    (
        Row("the service", "collectors", collectors),
        Row("the service", "tracebacks in the journal", tracebacks),
        Row("the service", "where it runs", vantage),
        Row("the service", "memory", memory),
        Row("the service", f"state after {KILLS} SIGKILLs", killed),
    ),
)
