"""The host itself: pressure, softirqs, TCP, settings, mounts that die."""

from __future__ import annotations

from lab.guest import Guest
from lab.rows import net
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


GROUP = Group(
    "pressure",
    (
        Row("CPU, disk, memory", "pressure", pressure),
        Row("softirqs", "packets of each CPU", softnet),
        Row("TCP over a wire that loses 10 %", "retransmissions", retransmits),
        Row("NFS mount", "its server falls silent", dead_mount),
    ),
    net.prepare,
)
