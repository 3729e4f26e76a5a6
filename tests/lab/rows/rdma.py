"""RoCE by Soft-RoCE on an emulated NIC: its port, and the counters of a driver that has no ``counters`` folder."""

from __future__ import annotations

from functools import partial

from prometheus_client.samples import Sample

from lab import product
from lab.guest import Guest, NoAnswer
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


_PROBES = """
probes:
- {type: qperf, name: latency, targets: [10.1.2.1], workload: rdma-write-lat-64, runtime: 2s, at: daily 03:00,
   max_load_per_cpu: 1000}
- {type: qperf, name: bandwidth, targets: [10.1.2.1], workload: rdma-write-bw-64k, runtime: 2s, at: daily 03:00,
   max_load_per_cpu: 1000}
"""


def verbs(guest: Guest) -> Seen:
    """RDMA writes to the guest's own address, by qperf itself and by its probes."""
    guest.run("pgrep -x qperf || (setsid qperf </dev/null >/dev/null 2>&1 &)")
    hand = guest.run("timeout 120 qperf -uu -e 6 -cm1 -t 2 10.1.2.1 rc_rdma_write_lat rc_rdma_write_bw", timeout_s=150)
    guest.run(f"cat >/run/qperf.yaml <<'E'\n{_PROBES}E")
    runs = guest.json(
        "plumbline probe run latency/10.1.2.1 bandwidth/10.1.2.1 --json --config.file /run/qperf.yaml || true"
    )
    truth = {name: float(word in hand) for name, word in (("one-way", "latency"), ("transmit", "bw"))}
    figure = {
        operation["operation"]: float(run["outcome"] == "success")
        for run in runs["runs"]
        for operation in run["operations"]
    }
    return Seen(truth, figure)


_PERIODIC = """
  - {type: qperf, name: verbs, targets: [10.1.2.1], workload: rdma-write-lat-64, runtime: 2s, timeout: 30s,
     interval: 1m, max_load_per_cpu: 1000}
"""
_DROP_IN = "/etc/systemd/system/plumbline.service.d/rdma.conf"


def service(guest: Guest) -> Seen:
    """The service's own probe: it may not open the device, and may with the drop-in."""
    guest.run("pgrep -x qperf || (setsid qperf </dev/null >/dev/null 2>&1 &)")
    guest.run(f"cp {product.SETTINGS} {product.SETTINGS}.before; cat >>{product.SETTINGS} <<'E'\n{_PERIODIC}E")
    drop_in = f"install -D -m 644 /usr/share/plumbline/systemd/rdma.conf {_DROP_IN}; systemctl daemon-reload"
    figure = {}
    for name, before in (("without", "true"), ("with", drop_in)):
        began_ts = float(guest.run(f"{before}; systemctl restart plumbline; date +%s"))
        product.ready(guest)
        success = partial(_success, guest, "verbs/10.1.2.1", began_ts)
        figure[name] = guest.until(success, lambda value: value is not None, within_s=300)
    guest.run(
        f"rm {_DROP_IN}; mv {product.SETTINGS}.before {product.SETTINGS}; systemctl daemon-reload; "
        "systemctl restart plumbline"
    )
    return Seen({"without": 0.0, "with": 1.0}, figure)


def _success(guest: Guest, probe: str, began_ts: float) -> float | None:
    """Of its last run, unless that was before."""
    try:
        scrape = guest.scrape()
    except NoAnswer:  # a guest that is short of CPU has no page yet
        return None
    last_ts = scrape.get("plumbline_probe_last_run_timestamp_seconds", probe=probe) or 0.0
    return scrape.get("plumbline_probe_success", probe=probe) if last_ts > began_ts else None


GROUP = Group(
    "rdma",
    (
        Row("Soft-RoCE", "port", port),
        Row("Soft-RoCE", "packets", packets),
        Row("Soft-RoCE", "loss and retries", losses),
        Row("Soft-RoCE", "latency and bandwidth by qperf", verbs),
        Row("Soft-RoCE", "a probe of the service, without the drop-in and with it", service),
    ),
    prepare,
)
