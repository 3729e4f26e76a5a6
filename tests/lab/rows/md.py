"""A software mirror: made, a member that fails, its rebuild, a check."""

from __future__ import annotations

import re

from lab.guest import Guest
from lab.table import Group, Row, Seen

MEMBERS = ("SATA0002", "SATA0003")
_MIB, _CHANGED_MIB = 64, 4


def prepare(guest: Guest) -> None:
    nodes = " ".join(f"/dev/{guest.disk(serial)}" for serial in MEMBERS)
    guest.run(
        f"[ -e /dev/md0 ] || mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --size={_MIB}M --assume-clean "
        f"--metadata=1.2 {nodes} </dev/null"
    )


def _truth(guest: Guest) -> dict[str, object]:
    text = guest.run("mdadm --detail /dev/md0")
    folder = "/sys/block/md0/md"
    states = dict(
        re.findall(
            r"(\w+) (\S+)", guest.run(f"cd {folder} && for d in dev-*; do echo ${{d#dev-}} $(cat $d/state); done")
        )
    )
    return {
        "level": re.search(r"Raid Level : (\S+)", text)[1],  # type: ignore[index]
        "disks": float(re.search(r"Raid Devices : (\d+)", text)[1]),  # type: ignore[index]
        "degraded": float(guest.value(f"{folder}/degraded")),
        "action": guest.value(f"{folder}/sync_action"),
        **states,
    }


def _figure(guest: Guest) -> dict[str, object]:
    scrape = guest.scrape()
    members = scrape.series("plumbline_md_member_info", device="md0")
    return {
        "level": ", ".join(scrape.labels("plumbline_md_info", "raid_level", device="md0")),
        "disks": scrape.get("plumbline_md_disks", device="md0"),
        "degraded": scrape.get("plumbline_md_degraded_disks", device="md0"),
        "action": ", ".join(scrape.labels("plumbline_md_sync_info", "action", device="md0")),
        **{each.labels["member"]: each.labels["state"] for each in members},
    }


def _both(guest: Guest) -> tuple[dict[str, object], dict[str, object]]:
    """The daemon reads arrays every 15 seconds, not at each scrape."""
    truth = _truth(guest)
    return truth, guest.until(lambda: _figure(guest), lambda found: found == truth, within_s=45)


def healthy(guest: Guest) -> Seen:
    return Seen(*_both(guest))


def member_failed(guest: Guest) -> Seen:
    guest.run(f"mdadm --manage /dev/md0 --fail /dev/{guest.disk(MEMBERS[1])} && sleep 2")
    look = lambda: guest.scrape().get("plumbline_finding", check="array.md-degraded", subject="md0")  # noqa: E731
    finding = guest.until(look, lambda found: found == 1, within_s=120)  # it judges every minute or so
    truth, figure = _both(guest)
    return Seen(truth | {"finding": 1.0}, figure | {"finding": finding})


def rebuild(guest: Guest) -> Seen:
    """Slowed down, so that it is seen under way."""
    node = f"/dev/{guest.disk(MEMBERS[1])}"
    guest.run("echo 100 >/proc/sys/dev/raid/speed_limit_min; echo 1000 >/proc/sys/dev/raid/speed_limit_max")
    manage = "mdadm --manage /dev/md0"
    guest.run(f"{manage} --remove {node} && mdadm --zero-superblock {node} && {manage} --add {node}")
    guest.until(lambda: guest.value("/sys/block/md0/md/sync_action"), lambda action: action == "recover", within_s=20)
    seen = healthy(guest)
    guest.run("echo 200000 >/proc/sys/dev/raid/speed_limit_min; echo 200000 >/proc/sys/dev/raid/speed_limit_max")
    return seen


def rebuilt(guest: Guest) -> Seen:
    guest.until(lambda: guest.value("/sys/block/md0/md/sync_action"), lambda action: action == "idle", within_s=120)
    return healthy(guest)


def mismatch(guest: Guest) -> Seen:
    """Bytes of one member are changed behind the array's back; a check finds them."""
    node = f"/dev/{guest.disk(MEMBERS[0])}"
    guest.run(f"dd if=/dev/urandom of={node} bs=1M count={_CHANGED_MIB} seek=20 oflag=direct conv=notrunc status=none")
    guest.run("echo check >/sys/block/md0/md/sync_action")
    changed = _CHANGED_MIB * 2048.0  # sectors; until the check begins, the rebuild's count stands in both places
    both = lambda: (  # noqa: E731
        float(guest.value("/sys/block/md0/md/mismatch_cnt")),
        guest.scrape().get("plumbline_md_mismatch_sectors", device="md0"),
    )
    truth, figure = guest.until(both, lambda seen: seen == (changed, changed), within_s=180)
    return Seen(truth if truth == changed else None, figure)


GROUP = Group(
    "md",
    (
        Row("RAID 1 of two SSDs", "state and members", healthy),
        Row("RAID 1 of two SSDs", "a member fails", member_failed),
        Row("RAID 1 of two SSDs", "its rebuild", rebuild),
        Row("RAID 1 of two SSDs", "whole again", rebuilt),
        Row("RAID 1 of two SSDs", "sectors that differ", mismatch),
    ),
    prepare,
)
