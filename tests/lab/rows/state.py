"""The daemon as a service: every collector, its memory, its state over kills, its clock."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess

from lab import product
from lab.guest import Guest
from lab.table import Group, Row, Seen

_FOLDER = "/var/lib/private/plumbline"
_STATE = f"{_FOLDER}/state.json"
KILLS = 20
CUTS = 200
_DISK, _DISK_KIB = "MEGA0001", 96 << 10
_OFTEN = """
  - type: fio
    name: often
    workload: randwrite-4k-qd1-j1
    file_size: 1MiB
    interval: 1m
    runtime: 1s
    timeout: 30s
    max_load_per_cpu: 1000
    max_device_busy: 1.0
"""


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
    product.ready(guest)
    return Seen(KILLS, sound)


_WRITE = """
from pathlib import Path
from plumbline.probes.run.state import StateStore
store = StateStore(Path("/mnt/cut/plumbline"))
store.open()
while True:
    store.put("lab", store.get("lab").with_skip("lab", "x" * 65536))
"""


def power_cut(guest: Guest) -> Seen:
    """A disk as it was at odd moments while the daemon's own store writes its state again and again, the journal
    replayed as at a boot: each time a state is whole, and newer than at the cut before.

    What the guest wrote and did not flush is there, too: QEMU gives its disk no cache to lose.
    """
    disk, cut = guest.folder / f"{_DISK}.raw", guest.folder / "cut.raw"
    guest.run(f"mkdir -p /mnt/cut; mount {_empty_disk(guest)} /mnt/cut")
    guest.run(f"systemd-run --quiet --unit lab-write {product.PYTHON} -c {shlex.quote(_WRITE)}")
    sound = before = 0
    try:
        guest.until(
            lambda: guest.run("ls /mnt/cut/plumbline", check=False), lambda names: "state.json" in names, within_s=60
        )
        for number in range(CUTS):
            guest.run(f"sleep 0.{number * 7 % 10}{number % 10}")
            guest.qmp("stop")
            try:
                subprocess.run(["cp", "--sparse=always", str(disk), str(cut)], check=True)
            finally:
                guest.qmp("cont")
            subprocess.run(["e2fsck", "-y", "-E", "journal_only", str(cut)], capture_output=True, check=False)
            read = ["debugfs", "-R", "cat /plumbline/state.json", str(cut)]
            text = subprocess.run(read, capture_output=True, text=True, check=False).stdout
            with contextlib.suppress(ValueError):
                written = json.loads(text)["probes"]["lab"]["skipped"]["lab"]
                sound += written > before
                before = written
        cut.unlink()
        return Seen(CUTS, sound)
    finally:
        guest.run("systemctl stop lab-write; umount /mnt/cut", check=False)


def _empty_disk(guest: Guest) -> str:
    """A device with a new file system of little space, on a disk that nothing else uses."""
    device = f"/dev/{guest.disk(_DISK)}"
    guest.run(f"mkfs.ext4 -q -F -b 1024 {device} {_DISK_KIB}")
    return device


def disk_full(guest: Guest) -> Seen:
    """The state's file system runs full, and is emptied; then an error makes it read-only. Every page comes.

    The other probes' files would fill it at once, and they run too seldom: a small one has a result every minute.
    """
    device = _empty_disk(guest)
    guest.run(
        f"systemctl stop plumbline; mkdir -p /mnt/small; mount {device} /mnt/small; cp -a {_STATE} /mnt/small/; "
        f"umount /mnt/small; mount {device} {_FOLDER}; cp {product.SETTINGS} {product.SETTINGS}.before; "
        f"echo '{_OFTEN}' >>{product.SETTINGS}; systemctl start plumbline"
    )
    try:
        product.ready(guest)
        figure = {"before": _saved(guest, 1.0)}
        guest.run(f"dd if=/dev/zero of={_FOLDER}/filler bs=64k status=none; sync", check=False)
        figure["full"] = _saved(guest, 0.0)
        guest.run(f"rm {_FOLDER}/filler")
        figure["emptied"] = _saved(guest, 1.0)
        guest.run(f"mount -o remount,abort {_FOLDER}", check=False)  # as after an error of the disk
        figure["read-only"] = _saved(guest, 0.0)
        return Seen({"before": 1.0, "full": 0.0, "emptied": 1.0, "read-only": 0.0}, figure)
    finally:
        guest.run(
            f"systemctl stop plumbline; umount -l {_FOLDER}; "
            f"mv {product.SETTINGS}.before {product.SETTINGS}; systemctl start plumbline"
        )
        product.ready(guest)


def _saved(guest: Guest, expected: float) -> float | None:
    """Whether the state could be written; the daemon writes it with each result of a probe."""
    look = lambda: guest.scrape().get("plumbline_state_last_save_successful")  # noqa: E731
    return guest.until(look, lambda found: found == expected, within_s=240)


GROUP = Group(
    "state",
    (
        Row("the service", "collectors", collectors),
        Row("the service", "tracebacks in the journal", tracebacks),
        Row("the service", "where it runs", vantage),
        Row("the service", "memory", memory),
        Row("the service", f"state after {KILLS} SIGKILLs", killed),
        Row("the service", f"state after {CUTS} power cuts", power_cut),
        Row("the service", "the state's disk full, then read-only", disk_full),
    ),
)
