"""RoCE by Soft-RoCE on an emulated NIC: its port, and the counters of a driver that has no ``counters`` folder."""

from __future__ import annotations

from prometheus_client.samples import Sample

from lab.guest import Guest
from lab.rows import net
from lab.table import Group, NotShown, Row, Seen
from support.scraped import Scrape

_PORT = "/sys/class/infiniband/rxe0/ports/1"
_LOSS = ("rcvd_seq_err", "retry_exceeded_err", "out_of_seq_request", "completer_retry_err", "duplicate_request")


def prepare(guest: Guest) -> None:
    net.prepare(guest)
    guest.run("rdma link show rxe0/1 2>/dev/null || { modprobe rdma_rxe && rdma link add rxe0 type rxe netdev vmx0; }")
    guest.run("tc qdisc replace dev lo root netem loss 5%")  # rxe sends to its own address over lo
    guest.run(
        "gid=$(grep -lm1 'ffff:0a01:0201' /sys/class/infiniband/rxe0/ports/1/gids/* | grep -o '[0-9]*$'); "
        "timeout 60 ibv_rc_pingpong -d rxe0 -g $gid -n 200 -s 4096 >/dev/null & sleep 8; "
        "timeout 60 ibv_rc_pingpong -d rxe0 -g $gid -n 200 -s 4096 127.0.0.1 >/dev/null; wait",
        check=False,
    )
    guest.run("tc qdisc del dev lo root")


def port(guest: Guest) -> Seen:
    link = guest.json("rdma --json link show rxe0/1")[0]
    scrape = guest.until(guest.scrape, lambda page: bool(_info(page)), within_s=90)
    info = _info(scrape)[0].labels
    states = {"ACTIVE": 4.0, "DOWN": 1.0, "LINK_UP": 5.0, "DISABLED": 3.0}
    truth = {
        "netdev": link["netdev"], "state": states[link["state"]], "physical": states[link["physical_state"]],
        "layer": guest.value(f"{_PORT}/link_layer"),
    }  # fmt: skip
    figure = {
        "netdev": info["netdev"], "state": scrape.get("plumbline_infiniband_port_state", device="rxe0"),
        "physical": scrape.get("plumbline_infiniband_physical_state", device="rxe0"), "layer": info["link_layer"],
    }  # fmt: skip
    return Seen(truth, figure)


def _info(page: Scrape) -> list[Sample]:
    return page.series("plumbline_infiniband_info", device="rxe0")


def packets(guest: Guest) -> Seen:
    truth = {
        way: float(guest.value(f"{_PORT}/hw_counters/{name}"))
        for way, name in (("receive", "rcvd_pkts"), ("transmit", "sent_pkts"))
    }
    look = lambda: {  # noqa: E731
        each.labels["direction"]: each.value
        for each in guest.scrape().series("plumbline_infiniband_packets_total", device="rxe0")
    }
    figure = guest.until(look, lambda found: found == truth, within_s=30)
    return Seen(truth if all(truth.values()) else None, figure)


def losses(guest: Guest) -> Seen:
    """After five of a hundred packets were dropped on the way; at least one counter of the five has seen it."""
    truth = {name: float(guest.value(f"{_PORT}/hw_counters/{name}")) for name in _LOSS}
    if not any(truth.values()):
        raise NotShown("nothing was lost")
    found = guest.scrape().series("plumbline_infiniband_hw_events_total", device="rxe0")
    figure = {each.labels["event"]: each.value for each in found if each.labels["event"] in _LOSS}
    return Seen(truth, figure)


GROUP = Group(
    "rdma",
    (
        Row("Soft-RoCE", "port", port),
        Row("Soft-RoCE", "packets", packets),
        Row("Soft-RoCE", "loss and retries", losses),
    ),
    prepare,
)
