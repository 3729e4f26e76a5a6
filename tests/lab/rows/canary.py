"""A canary whose disk answers late, and then not at all: device-mapper's delay and flakey below its file."""

from __future__ import annotations

from lab import product
from lab.guest import Guest
from lab.table import Group, Row, Seen

_FOLDER = "/srv/late"
_DROP_IN = "/etc/systemd/system/plumbline.service.d/late.conf"
_PROBE = "late"
LATE_MS = 50
READS = 20
_CONFIG = f"""
  - type: canary
    name: {_PROBE}
    directory: {_FOLDER}/canary
    device_class: ssd
    rate: 1
"""
# As systemd/README.md says for another file system. Below the state's own folder a mount would keep systemd 257 from
# starting a service with an account of its own making.
_MAKE = f"""
set -e
[ ! -d {_FOLDER} ] || exit 0
modprobe -a dm-delay dm-flakey
truncate -s 160M /root/late.img
echo "0 327680 delay $(losetup --find --show /root/late.img) 0 {LATE_MS}" | dmsetup create canary
mkfs.ext4 -q /dev/mapper/canary
mkdir {_FOLDER}
mount -o noatime /dev/mapper/canary {_FOLDER}
useradd --system plumbline
install -d -o plumbline -g plumbline {_FOLDER}/canary
printf '[Service]\\nDynamicUser=no\\nUser=plumbline\\nReadWritePaths={_FOLDER}/canary\\n' >{_DROP_IN}
cp {product.SETTINGS} {product.SETTINGS}.before
echo '{_CONFIG}' >>{product.SETTINGS}
systemctl daemon-reload
systemctl restart plumbline
"""
_UNMAKE = (
    f"rm {_DROP_IN}; mv {product.SETTINGS}.before {product.SETTINGS}; "
    "systemctl daemon-reload; systemctl restart plumbline"
)


def prepare(guest: Guest) -> None:
    guest.run(_MAKE)
    product.ready(guest)


def _reads(guest: Guest) -> tuple[float, float]:
    """How many the canary has made, and their seconds together."""
    scrape = guest.scrape()
    count, seconds = (
        scrape.total(f"plumbline_canary_latency_seconds_{part}", probe=_PROBE, operation="read")
        for part in ("count", "sum")
    )
    return count, seconds


def _kernel(guest: Guest) -> tuple[float, float]:
    name = guest.run("basename $(readlink /dev/mapper/canary)").strip()
    count, milliseconds = map(float, guest.run(f"awk '{{print $1, $4}}' /sys/block/{name}/stat").split())
    return count, milliseconds / 1000


def late(guest: Guest) -> Seen:
    """The mean of a read, by the canary and by the kernel below it: what the file system and the wait for a CPU add is
    the canary's alone."""
    guest.until(lambda: _reads(guest)[0], lambda count: count > 0, within_s=300)
    ours, theirs = _reads(guest), _kernel(guest)
    guest.until(lambda: _reads(guest)[0], lambda count: count >= ours[0] + READS, within_s=300)
    (count, seconds), (below, below_s) = _reads(guest), _kernel(guest)
    truth = (below_s - theirs[1]) / (below - theirs[0])
    return Seen(truth if truth >= LATE_MS / 1000 else None, (seconds - ours[1]) / (count - ours[0]), tolerance=0.03)


def failing(guest: Guest) -> Seen:
    """Every request fails: the canary says which error it got."""
    lower = guest.run("dmsetup table canary | awk '{print $4}'").strip()
    guest.run(
        f"dmsetup suspend --noflush canary; dmsetup reload canary --table '0 327680 flakey {lower} 0 0 60'; "
        "dmsetup resume canary"
    )
    look = lambda: {  # noqa: E731
        each.labels["error"]
        for each in guest.scrape().series("plumbline_canary_errors_total", probe=_PROBE)
        if each.value
    }
    truth = guest.run("dd if=/dev/mapper/canary of=/dev/null bs=4k count=1 iflag=direct 2>&1 || true")
    figure = guest.until(look, bool, within_s=180)
    guest.run(_UNMAKE)  # the rows to come are about the service as it is installed
    return Seen({"EIO"} if "Input/output error" in truth else set(), figure)


GROUP = Group(
    "canary",
    (
        Row(f"dm-delay of {LATE_MS} ms under a canary", "mean of a read", late),
        Row("dm-flakey under a canary", "every request fails", failing),
    ),
    prepare,
)
