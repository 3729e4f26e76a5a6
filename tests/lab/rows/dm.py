"""Device-mapper: a logical volume, an encrypted disk, a disk that answers late; truth from dmsetup and lsblk."""

from __future__ import annotations

from lab.guest import Guest
from lab.table import Group, Row, Seen

_MAKE = """
set -e
[ ! -e /dev/mapper/late ] || exit 0
pvcreate -q -y /dev/{lvm}
vgcreate -q lab /dev/{lvm}
lvcreate -q -y -L 64M -n volume lab
lvcreate -q -y -L 64M -n second lab
echo -n lab | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 /dev/{crypt} -
echo -n lab | cryptsetup open /dev/{crypt} secret --key-file -
modprobe dm-delay
echo "0 131072 delay /dev/{late} 0 50" | dmsetup create late
"""
LATE_S = 0.050


def prepare(guest: Guest) -> None:
    guest.run(_MAKE.format(lvm=guest.disk("VBLK0001"), crypt=guest.disk("SAS00002"), late=guest.disk("SATA0001")))


def stacked(guest: Guest) -> Seen:
    """Which device lies on which: of all of device-mapper's."""
    lines = guest.run(
        "cd /sys/block && for d in dm-*; do for s in $d/slaves/*; do echo $d on ${s##*/}; done; done"
    ).splitlines()

    def seen() -> set[str]:
        relations = guest.scrape().series("plumbline_disk_relation_info")
        pairs = ((each.labels["device"], each.labels["lower"]) for each in relations)
        return {f"{upper} on {lower}" for upper, lower in pairs if upper.startswith("dm-")}

    # read anew with the other facts of disks, once a minute
    return Seen(set(lines), guest.until(seen, lambda found: found == set(lines), within_s=120))


def late(guest: Guest) -> Seen:
    """50 ms of a delaying target: what 20 reads took on average, by the kernel's counters and ours."""
    name = guest.run("basename $(readlink /dev/mapper/late)").strip()
    fields = f"awk '{{print $1, $4}}' /sys/block/{name}/stat"
    count0, ms0 = map(float, guest.run(fields).split())
    before = guest.scrape()
    guest.run("dd if=/dev/mapper/late of=/dev/null bs=4k count=20 iflag=direct status=none")
    count1, ms1 = map(float, guest.run(fields).split())
    after = guest.scrape()
    grown = {
        metric: after.total(f"plumbline_disk_{metric}", device=name, operation="read")
        - before.total(f"plumbline_disk_{metric}", device=name, operation="read")
        for metric in ("ios_total", "io_seconds_total")
    }
    truth = (ms1 - ms0) / 1000 / (count1 - count0)
    return Seen(truth if truth >= LATE_S else None, grown["io_seconds_total"] / grown["ios_total"], tolerance=0.002)


def counted(guest: Guest) -> Seen:
    """A request to an encrypted disk is counted on it and on the disk below."""
    name = guest.run("basename $(readlink /dev/mapper/secret)").strip()
    names = (name, guest.disk("SAS00002"))
    before = guest.scrape()
    guest.run("dd if=/dev/mapper/secret of=/dev/null bs=4k count=50 iflag=direct status=none")
    after = guest.scrape()
    figure = {
        device: after.total("plumbline_disk_ios_total", device=device, operation="read")
        - before.total("plumbline_disk_ios_total", device=device, operation="read")
        for device in names
    }
    return Seen(dict.fromkeys(names, 50.0), figure)


GROUP = Group(
    "dm",
    (
        Row("LVM, dm-crypt, dm-delay", "stacking", stacked),
        Row("dm-delay of 50 ms", "a read's latency", late),
        Row("dm-crypt on a SAS SSD", "50 reads", counted),
    ),
    prepare,
)
