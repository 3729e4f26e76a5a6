"""NVMe drives: identity, health log, warnings, one that is pulled; and one behind two controllers that loses one."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

from lab import product
from lab.guest import INSIDE, Guest
from lab.rows import disks
from lab.table import Group, NotShown, Row, Seen
from support.prometheus import prometheus
from support.rules import rendered

ONE, TWO, NEW, NEWER, PAIR = "NVME0001", "NVME0002", "NVME0009", "NVME0010", "NVMEPAIR"
_AT_ONCE = "{ _config+:: { alerts+: { PlumblineDiskMissing+: { 'for': '15s' } } } }"
# As `baseline record` writes it, but for what it measures: that needs a quiet disk, and an emulated one is not.
_BASELINE = """
import os, pathlib, msgspec
from plumbline.background.fingerprint import read_fingerprint
from plumbline.core.roots import Roots
now = msgspec.to_builtins(read_fingerprint(Roots.under(pathlib.Path("/")), environment=os.environ))
entry = dict(workload="randread-4k-qd1-j1", device_class="nvme", iops="1 IOPS", tolerance_ratio=2)
document = dict(schema_version=1, source="measured", host="lab", recorded="2026-01-01T00:00:00Z", entries=[entry])
folder = pathlib.Path("/var/lib/plumbline").resolve()
file = folder / "baseline.yaml"
file.write_bytes(msgspec.json.encode(document | {"fingerprint": now}))
os.chown(file, folder.stat().st_uid, folder.stat().st_gid)
"""


def health(guest: Guest) -> Seen:
    name = guest.disk(ONE)
    log = guest.json(f"nvme smart-log --output-format json /dev/{name}")
    truth = {
        "celsius": float(log["temperature"]) - 273, "spare": log["avail_spare"] / 100,
        "threshold": log["spare_thresh"] / 100, "used": log.get("percent_used", log.get("percentage_used", 0)) / 100,
        "cycles": float(log["power_cycles"]), "hours": float(log["power_on_hours"]),
        "unsafe": float(log["unsafe_shutdowns"]), "media errors": float(log["media_errors"]),
    }  # fmt: skip
    names = {
        "celsius": "temperature_celsius", "spare": "spare_ratio", "threshold": "spare_threshold_ratio",
        "used": "wear_ratio", "cycles": "power_cycles_total", "hours": "power_on_seconds_total",
        "unsafe": "unsafe_shutdowns_total", "media errors": "media_errors_total",
    }  # fmt: skip
    scrape = guest.until(
        guest.scrape, lambda scrape: scrape.get("plumbline_disk_health_available", device=name) == 1, within_s=120
    )
    figure = {ours: scrape.get(f"plumbline_disk_{metric}", device=name) for ours, metric in names.items()}
    if figure["hours"] is not None:
        figure["hours"] /= 3600
    return Seen(truth, figure)


def warning(guest: Guest) -> Seen:
    """The drive sets bits of its critical warning: temperature and read-only."""
    name = guest.disk(ONE)
    guest.qmp("qom-set", path="/machine/peripheral/nvme1", property="smart_critical_warning", value=0b1010)
    log = guest.json(f"nvme smart-log --output-format json /dev/{name}")["critical_warning"]
    value = log["value"] if isinstance(log, dict) else log
    bits = ("spare", "temperature", "reliability", "read-only", "backup", "memory-region")
    truth = {word for number, word in enumerate(bits) if value >> number & 1}

    def seen() -> set[str]:
        found = guest.scrape().series("plumbline_disk_critical_warning", device=name)
        return {each.labels["warning"] for each in found if each.value}

    figure = guest.until(seen, lambda found: found == truth, within_s=400)
    guest.qmp("qom-set", path="/machine/peripheral/nvme1", property="smart_critical_warning", value=0)
    return Seen(truth, figure)


def paths(guest: Guest) -> dict[str, float | None]:
    scrape, name = guest.scrape(), guest.disk(PAIR)
    return {
        "paths": scrape.get("plumbline_multipath_paths", device=name),
        "usable": scrape.get("plumbline_multipath_usable_paths", device=name),
        "finding": scrape.get("plumbline_finding", check="array.path-lost", subject=name),
    }


def _controllers(guest: Guest) -> float:
    """As ``nvme list-subsys`` counts those that are live."""
    return float(guest.run("nvme list-subsys").split("NQN=nqn.2019-08.org.qemu:lab")[1].split("NQN=")[0].count(" live"))


def both(guest: Guest) -> Seen:
    live = _controllers(guest)
    if live != 2:
        raise NotShown(f"the guest came up with {live:.0f} of two controllers")
    truth = {"paths": live, "usable": live, "finding": 0.0}
    return Seen(truth, guest.until(partial(paths, guest), lambda found: found == truth, within_s=60))


def controller_lost(guest: Guest) -> Seen:
    """One of two controllers leaves, and nothing in /sys says that there was another."""
    guest.monitor("device_del nvmea")
    live = guest.until(partial(_controllers, guest), lambda live: live == 1, within_s=60)
    truth = {"paths": 2.0, "usable": live, "finding": 1.0}
    return Seen(truth, guest.until(partial(paths, guest), lambda found: found == truth, within_s=90))


def still_lost(guest: Guest) -> Seen:
    """A restart of the daemon does not forget it."""
    guest.run("systemctl restart plumbline")
    product.ready(guest)
    truth = {"paths": 2.0, "usable": _controllers(guest), "finding": 1.0}
    return Seen(truth, guest.until(partial(paths, guest), lambda found: found == truth, within_s=120))


def pulled(guest: Guest) -> Seen:
    """A drive is pulled from its slot: it stays visible as gone, by its serial number."""
    name = guest.disk(TWO)
    guest.run(f"setsid sleep 900 </dev/{name} >/dev/null 2>&1 &")
    guest.monitor("device_del nvme2")
    guest.until(lambda: guest.run("lsblk -ndo SERIAL"), lambda said: TWO not in said, within_s=60)
    look = lambda: guest.scrape().get("plumbline_disk_present", serial=TWO)  # noqa: E731
    return Seen(0.0, guest.until(look, lambda present: present == 0, within_s=90))


def slot(guest: Guest) -> Seen:
    """The slot by PCI address, and its light: set by our command, read where the kernel has it."""
    name = guest.disk(TWO)
    address = guest.run(f"cat /sys/block/{name}/device/address").strip().rpartition(".")[0]
    number = guest.run(f"grep -l '^{address}$' /sys/bus/pci/slots/*/address").strip().split("/")[-2]
    light = f"/sys/bus/pci/slots/{number}/attention"

    def switched(how: str) -> float:
        guest.run(f"plumbline disk {name} --locate {how}")
        return float(guest.run(f"cat {light}"))

    figure = {"slot": guest.json(f"plumbline disk {name} --json")[0]["slot"]}
    figure |= {how: switched(how) for how in ("on", "off")}
    return Seen({"slot": f"PCI slot {number}", "on": 1.0, "off": 0.0}, figure)


def swapped(guest: Guest) -> Seen:
    """Another drive in the slot of one that was pulled, while a process holds what it was, so the kernel gives it
    another name: the old one is no longer missed, and the new one has a history of its own."""
    folder = f"{INSIDE}/{guest.folder.name}"
    missed = lambda: guest.scrape().get("plumbline_disk_present", serial=TWO)  # noqa: E731
    guest.run(f"setsid sleep 900 </dev/{guest.disk(TWO)} >/dev/null 2>&1 &")
    guest.monitor("device_del nvme2b")
    guest.until(missed, lambda present: present == 0, within_s=120)
    guest.monitor(f"drive_add 0 file={folder}/{TWO}.raw,if=none,id={NEW},format=raw")
    guest.qmp("device_add", driver="nvme", id="nvme2c", bus="rp2", serial=NEW, drive=NEW)
    guest.until(lambda: guest.run("lsblk -ndo SERIAL"), lambda said: NEW in said, within_s=60)
    truth = {"old": None, "new": 1.0}

    def seen() -> dict[str, float | None]:
        return {"old": missed(), "new": guest.scrape().get("plumbline_disk_present", serial=NEW)}

    return Seen(truth, guest.until(seen, lambda found: found == truth, within_s=120))


def ticket(guest: Guest) -> Seen:
    """The ticket about a drive that is gone, by the shipped rules: it ends when another one is in its slot, and a new
    baseline is asked for, both within two minutes."""
    guest.run(f"{product.PYTHON} - <<'E'\n{_BASELINE}E\nsystemctl restart plumbline")
    product.ready(guest)
    with tempfile.TemporaryDirectory() as name, guest.forwarded() as daemon:
        folder = Path(name)
        with prometheus(folder, target=daemon, interval_s=5, rules=rendered(folder, _AT_ONCE)) as server:

            def figures() -> dict[str, bool]:
                alert = f'ALERTS{{alertname="PlumblineDiskMissing",alertstate="firing",serial="{NEW}"}}'
                changed = 'plumbline_baseline_environment_changed{part="disks"} == 1'
                return {"ticket": bool(server.query(alert)), "baseline asked for": bool(server.query(changed))}

            before = guest.until(figures, lambda seen: bool(server.query("plumbline_disk_present")), within_s=120)
            guest.run(f"setsid sleep 900 </dev/{guest.disk(NEW)} >/dev/null 2>&1 &")
            guest.monitor("device_del nvme2c")
            missed = guest.until(figures, lambda seen: seen["ticket"], within_s=300)["ticket"]
            drive = f"file={INSIDE}/{guest.folder.name}/{TWO}.raw,if=none,id={NEWER},format=raw"
            guest.monitor(f"drive_add 0 {drive}")
            guest.qmp("device_add", driver="nvme", id="nvme2d", bus="rp2", serial=NEWER, drive=NEWER)
            began = time.monotonic()
            ended = {"ticket": False, "baseline asked for": True}
            after = guest.until(figures, lambda seen: seen == ended, within_s=240)
            within = time.monotonic() - began < 120
    nothing = {"ticket": False, "baseline asked for": False}
    truth = {"before": str(nothing), "pulled": True, "another in its slot": str(ended), "within 2 minutes": True}
    figure = {"before": str(before), "pulled": missed, "another in its slot": str(after), "within 2 minutes": within}
    return Seen(truth, figure)


def returned(guest: Guest) -> Seen:
    """It comes back while a process still holds what it was, so the kernel gives it another name."""
    folder = f"{INSIDE}/{guest.folder.name}"
    guest.monitor(f"drive_add 0 file={folder}/{TWO}.raw,if=none,id={TWO}-back,format=raw")
    guest.qmp("device_add", driver="nvme", id="nvme2b", bus="rp2", serial=TWO, drive=f"{TWO}-back")
    guest.until(lambda: guest.run("lsblk -ndo SERIAL"), lambda said: TWO in said, within_s=60)
    name = guest.disk(TWO)

    def seen() -> set[str]:
        found = guest.scrape().series("plumbline_disk_present", serial=TWO)
        return {f"{each.labels['device']} {each.value:.0f}" for each in found}

    return Seen({f"{name} 1"}, guest.until(seen, lambda found: found == {f"{name} 1"}, within_s=90))


GROUP = Group(
    "nvme",
    (
        Row("NVMe drive", "identity", partial(disks.identity, ONE)),
        Row("NVMe drive", "queue", partial(disks.queue, ONE)),
        Row("NVMe drive", "200 reads", partial(disks.reads, ONE)),
        Row("NVMe drive", "health log", health),
        Row("NVMe drive", "critical warning", warning),
        Row("NVMe drive on two controllers", "paths", both),
        Row("NVMe drive on two controllers", "a controller is lost", controller_lost),
        Row("NVMe drive on two controllers", "the daemon restarts after it", still_lost),
        Row("NVMe drive", "its slot, and the slot's light", slot),
        Row("NVMe drive", "pulled", pulled),
        Row("NVMe drive", "plugged in again, under another name", returned),
        Row("NVMe drive", "another one in its slot", swapped),
        Row("NVMe drive", "another one in its slot: the ticket", ticket),
    ),
)
