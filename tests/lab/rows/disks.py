"""What every disk has, whatever it is attached to."""

from __future__ import annotations

from lab.guest import Guest
from lab.table import Seen
from support.scraped import Scrape

READS = 200
LARGER = 3 << 29  # bytes; a disk has 1 GiB


def identity(serial: str, guest: Guest) -> Seen:
    """As lsblk sees it; it knows a transport only where udev told it."""
    name = guest.disk(serial)
    found = guest.json(f"lsblk --json --bytes --nodeps -o MODEL,SERIAL,SIZE,ROTA,TRAN,LOG-SEC,PHY-SEC /dev/{name}")[
        "blockdevices"
    ][0]
    scrape = guest.scrape()
    info = scrape.series("plumbline_disk_info", device=name)[0].labels
    truth = {
        "model": (found["model"] or "").strip(), "serial": found["serial"], "size": float(found["size"]),
        "rotational": str(int(found["rota"])), "sectors": f"{found['log-sec']}/{found['phy-sec']}",
    }  # fmt: skip
    if found["tran"]:
        truth["transport"] = found["tran"]
    logical, physical = (
        scrape.get(f"plumbline_disk_{which}_block_bytes", device=name) for which in ("logical", "physical")
    )
    figure = {
        "model": info["model"], "serial": info["serial"], "size": scrape.get("plumbline_disk_size_bytes", device=name),
        "rotational": info["rotational"], "sectors": f"{logical or 0:.0f}/{physical or 0:.0f}",
        **({"transport": info["transport"]} if found["tran"] else {}),
    }  # fmt: skip
    return Seen(truth, figure)


def queue(serial: str, guest: Guest) -> Seen:
    name = guest.disk(serial)
    folder = f"/sys/block/{name}/queue"
    scheduler = guest.value(f"{folder}/scheduler")
    truth = {
        "scheduler": scheduler.partition("[")[2].partition("]")[0] or scheduler,
        "requests": float(guest.value(f"{folder}/nr_requests")),
        "cache": guest.value(f"{folder}/write_cache"),
    }
    depth = guest.run(f"cat /sys/block/{name}/device/queue_depth 2>/dev/null", check=False).strip()
    scrape = guest.scrape()
    info = scrape.series("plumbline_disk_queue_info", device=name)[0].labels
    figure = {
        "scheduler": info["scheduler"], "requests": scrape.get("plumbline_disk_queue_requests", device=name),
        "cache": info["write_cache"],
    }  # fmt: skip
    if depth:
        truth["depth"], figure["depth"] = float(depth), scrape.get("plumbline_disk_queue_depth", device=name)
    return Seen(truth, figure)


def reads(serial: str, guest: Guest) -> Seen:
    """So many direct reads of 4 KiB: in the kernel's counters as the daemon has them, and in the BPF program's."""
    name = guest.disk(serial)
    before = guest.scrape()
    guest.run(f"dd if=/dev/{name} of=/dev/null bs=4k count={READS} iflag=direct status=none")
    truth = {"kernel": READS, "histogram": READS, "bytes": READS * 4096}
    after = guest.scrape()
    series = {
        "kernel": "plumbline_disk_ios_total",
        "histogram": "plumbline_disk_latency_seconds_count",
        "bytes": "plumbline_disk_io_bytes_total",
    }
    figure = {
        ours: after.total(metric, device=name, operation="read") - before.total(metric, device=name, operation="read")
        for ours, metric in series.items()
    }
    return Seen(truth, figure)


def resized(serial: str, guest: Guest) -> Seen:
    """The hypervisor makes the disk larger. The kernel asks a SCSI disk for its size again only on request, and the
    daemon the kernel once a minute."""
    name = guest.disk(serial)
    guest.qmp("block_resize", device=serial, size=LARGER)
    guest.run(f"[ ! -e /sys/block/{name}/device/rescan ] || echo 1 >/sys/block/{name}/device/rescan; sleep 3")
    truth = float(guest.value(f"/sys/block/{name}/size")) * 512
    look = lambda: guest.scrape().get("plumbline_disk_size_bytes", device=name)  # noqa: E731
    figure = guest.until(look, lambda size: size == truth, within_s=90)
    return Seen(truth if truth == LARGER else None, figure)


def held_read(name: str, guest: Guest) -> tuple[float | None, Scrape]:
    """What the kernel has in flight while a direct read of 4 KiB waits, and the daemon's page of that moment: more may
    come to wait between two looks."""
    guest.run(f"setsid dd if=/dev/{name} of=/dev/null bs=4k count=1 iflag=direct >/dev/null 2>&1 & sleep 3")
    waiting = lambda: sum(map(float, guest.value(f"/sys/block/{name}/inflight").split()))  # noqa: E731
    before, scrape, _ = guest.until(
        lambda: (waiting(), guest.scrape(), waiting()), lambda seen: seen[0] == seen[2] != 0, within_s=60
    )
    return before or None, scrape
