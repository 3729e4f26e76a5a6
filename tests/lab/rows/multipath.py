"""One SCSI disk behind two controllers, joined by multipathd: both paths, one lost, one back."""

from __future__ import annotations

import re
from functools import partial

from lab.guest import Guest
from lab.table import Group, Row, Seen

SERIAL = "LUN00001"


def prepare(guest: Guest) -> None:
    guest.run(
        "systemctl unmask multipathd && systemctl start multipathd && multipath >/dev/null; udevadm settle", check=False
    )
    guest.until(partial(_active, guest), lambda paths: paths == 2, within_s=60)


def _active(guest: Guest) -> float:
    return float(len(re.findall(r" active +ready +running", guest.run("multipath -ll"))))


def _name(guest: Guest) -> str:
    return guest.run("basename $(readlink /dev/mapper/mpath*)").strip()


def _figure(guest: Guest, name: str) -> dict[str, float | None]:
    scrape = guest.scrape()
    return {
        "paths": scrape.get("plumbline_multipath_paths", device=name),
        "usable": scrape.get("plumbline_multipath_usable_paths", device=name),
        "finding": scrape.get("plumbline_finding", check="array.path-lost", subject=name),
    }


def _seen(guest: Guest, paths: float, finding: float) -> Seen:
    truth = {"paths": paths, "usable": _active(guest), "finding": finding}
    name = _name(guest)
    return Seen(truth, guest.until(partial(_figure, guest, name), lambda found: found == truth, within_s=90))


def both(guest: Guest) -> Seen:
    return _seen(guest, 2.0, 0.0)


def offline(guest: Guest) -> Seen:
    """The kernel takes a path out of service; it is still there."""
    guest.run(
        f"echo offline >/sys/block/{guest.disk(SERIAL)}/device/state && sleep 10; multipath -r >/dev/null", check=False
    )
    guest.until(partial(_active, guest), lambda paths: paths == 1, within_s=60)
    seen = _seen(guest, 2.0, 1.0)
    guest.run(f"echo running >/sys/block/{guest.disk(SERIAL)}/device/state; multipath -r >/dev/null", check=False)
    guest.until(partial(_active, guest), lambda paths: paths == 2, within_s=60)
    return seen


def removed(guest: Guest) -> Seen:
    """A path's disk leaves the kernel; nothing there says that there was one."""
    guest.monitor("device_del luna")
    guest.until(partial(_active, guest), lambda paths: paths == 1, within_s=60)
    return _seen(guest, 2.0, 1.0)


GROUP = Group(
    "multipath",
    (
        Row("SCSI disk on two controllers", "paths", both),
        Row("SCSI disk on two controllers", "a path set offline", offline),
        Row("SCSI disk on two controllers", "a path removed", removed),
    ),
    prepare,
)
