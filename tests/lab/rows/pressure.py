"""The host itself: pressure, softirqs, TCP, settings, mounts that die."""

from __future__ import annotations

from lab import product
from lab.guest import Guest
from lab.hardware import PEER
from lab.rows import disks, net
from lab.table import Group, Row, Seen


def _totals(guest: Guest, which: str) -> dict[str, float]:
    """Seconds of every resource, as the kernel counts them."""
    lines = guest.run(f"grep ^{which} /proc/pressure/*").splitlines()
    return {line.partition(":")[0].rpartition("/")[2]: int(line.rpartition("total=")[2]) / 1e6 for line in lines}


def pressure(guest: Guest) -> Seen:
    """After ten seconds of load on CPU, disk and memory. What a scrape costs comes between the two looks."""
    guest.run(
        "for i in 1 2 3 4; do timeout 10 sh -c 'while :; do :; done' & done; "
        "timeout 10 dd if=/dev/vda of=/dev/null bs=1M iflag=direct status=none; wait",
        check=False,
    )
    scrape, truth = guest.scrape(), _totals(guest, "some")
    found = scrape.series("plumbline_pressure_waiting_seconds_total")
    figure = {each.labels["resource"]: each.value for each in found}
    return Seen({name: truth[name] for name in figure}, figure, tolerance=5)


def softnet(guest: Guest) -> Seen:
    """Packets and squeezes of each CPU; what the scrape itself brings comes on top."""
    guest.run("ping -q -f -c 500 -I vmx0 10.1.2.2", timeout_s=60)
    scrape = guest.scrape()
    rows = [line.split() for line in guest.run("cat /proc/net/softnet_stat").splitlines()]
    truth = {f"cpu {number}": float(int(row[0], 16)) for number, row in enumerate(rows)}
    found = scrape.series("plumbline_softnet_packets_processed_total")
    return Seen(truth, {f"cpu {each.labels['cpu']}": each.value for each in found}, tolerance=300)


def retransmits(guest: Guest) -> Seen:
    """TCP over a wire that loses a tenth; the kernel's counter by nstat."""
    net.prepare(guest)
    guest.run("tc qdisc replace dev vmx0 root netem loss 10%")
    guest.run("ip netns exec peer iperf3 -s -D -1; sleep 2; iperf3 -c 10.1.2.2 -t 8 >/dev/null", timeout_s=120)
    guest.run("tc qdisc del dev vmx0 root")
    scrape = guest.scrape()
    truth = float(guest.run("nstat -asz TcpRetransSegs | awk '/^TcpRetransSegs/ {print $2}'"))
    return Seen(truth or None, scrape.get("plumbline_tcp_segments_retransmitted_total"), tolerance=5)


def dead_mount(guest: Guest) -> Seen:
    """An NFS server that no longer answers: the mount is said to be dead, and no scrape hangs in it."""
    guest.run(
        "set -e; mkdir -p /srv/nfs /mnt/nfs; echo '/srv/nfs *(rw,no_root_squash,insecure,fsid=1)' >/etc/exports; "
        "systemctl unmask rpcbind.service rpcbind.socket nfs-server; systemctl start nfs-server; exportfs -ra; "
        "mountpoint -q /mnt/nfs || "
        "timeout 120 mount -t nfs -o vers=4.2,hard,timeo=50,retrans=2 10.1.2.1:/srv/nfs /mnt/nfs"
    )
    look = lambda: guest.scrape().get("plumbline_mount_up", mountpoint="/mnt/nfs")  # noqa: E731
    before = guest.until(look, lambda up: up == 1, within_s=90)
    guest.run("systemctl stop nfs-server")
    after = guest.until(look, lambda up: up == 0, within_s=180)
    guest.run("umount -lf /mnt/nfs", check=False)
    return Seen({"before": 1.0, "after": 0.0}, {"before": before, "after": after})


_ISCSI = "iqn.2026-01.lab:disk"
_SHARE = f"""
set -e
truncate -s 128M /root/iscsi.img
peer() {{ ip netns exec {PEER} "$@"; }}
peer tgtd
sleep 3
peer tgtadm --lld iscsi --op new --mode target --tid 1 --targetname {_ISCSI}
peer tgtadm --lld iscsi --op new --mode logicalunit --tid 1 --lun 1 --backing-store /root/iscsi.img
peer tgtadm --lld iscsi --op update --mode logicalunit --tid 1 --lun 1 --params vendor_id=LABISC,scsi_sn=ISCSI001
peer tgtadm --lld iscsi --op bind --mode target --tid 1 --initiator-address ALL
systemctl start iscsid
iscsiadm --mode discovery --type sendtargets --portal 10.1.2.2
iscsiadm --mode node --targetname {_ISCSI} --login
udevadm settle
"""


def iscsi(guest: Guest) -> Seen:
    """A disk behind a network: the kernel and the daemon say what it is."""
    if not guest.run("lsscsi --transport | grep -w iqn || true"):
        guest.run(_SHARE)
    name, serial = guest.run("lsblk -ndo NAME,SERIAL,TRAN | awk '$3 == \"iscsi\" {print $1, $2}'").split()
    guest.until(lambda: guest.scrape().series("plumbline_disk_info", device=name), bool, within_s=90)
    return disks.identity(serial, guest)


def silent_iscsi(guest: Guest) -> Seen:
    """Its target falls silent with a file system on it: what waits there is in flight, and no scrape waits with it."""
    name = guest.run("lsblk -ndo NAME,TRAN | awk '$2 == \"iscsi\" {print $1}'").strip()
    guest.run(f"mkfs.ext4 -q /dev/{name} && mkdir -p /mnt/iscsi && mount /dev/{name} /mnt/iscsi")
    guest.run("ip link set vmx0 down")  # nobody closes the connection, so the kernel waits for two minutes
    try:
        waiting, scrape = disks.held_read(name, guest)
        return Seen(
            {"in flight": waiting, "collectors that failed": []},
            {
                "in flight": scrape.get("plumbline_disk_queue_length", device=name),
                "collectors that failed": product.failed(scrape),
            },
        )
    finally:
        guest.run(
            f"ip link set vmx0 up; sleep 5; umount -l /mnt/iscsi; "
            f"timeout 60 iscsiadm --mode node --targetname {_ISCSI} --logout; "
            f"pkill -x tgtd",
            check=False,
        )  # fmt: skip


GROUP = Group(
    "pressure",
    (
        Row("CPU, disk, memory", "pressure", pressure),
        Row("softirqs", "packets of each CPU", softnet),
        Row("TCP over a wire that loses 10 %", "retransmissions", retransmits),
        Row("NFS mount", "its server falls silent", dead_mount),
        Row("iSCSI disk", "identity", iscsi),
        Row("iSCSI disk", "its target falls silent", silent_iscsi),
    ),
    net.prepare,
)
