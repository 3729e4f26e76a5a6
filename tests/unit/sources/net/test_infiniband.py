"""InfiniBand and RoCE ports from a sysfs tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.net.infiniband import InfinibandPort, parse_counter, parse_rate, parse_state, read_infiniband

NODE = Roots.under(Path(__file__).parents[3] / "fixtures" / "infiniband-storage-node")


def test_the_storage_node_of_the_slides() -> None:
    reading = read_infiniband(NODE)
    assert [(each.device, each.port, each.netdev, each.rate_mbps) for each in reading.ports] == [
        ("i40iw0", "1", "eth4", 40_000),
        ("mlx4_0", "1", "ib0", 56_000),
        ("mlx4_0", "2", "ib1", 10_000),
        ("mlx5_0", "1", "ens1f0np0", 100_000),
        ("qib0", "1", "ib2", 40_000),
    ]
    assert reading.skipped == (("mlx5_1/1", "unreadable"),)
    assert reading.ipoib_connected == {"ib0": True, "ib1": False, "ib0.8001": False, "ib2": False}


def test_a_port_whole() -> None:
    port = read_infiniband(NODE).ports[1]
    assert port == InfinibandPort(
        device="mlx4_0",
        port="1",
        link_layer="InfiniBand",
        firmware="2.42.5000",
        board="MT_1090120019",
        netdev="ib0",
        state=4,
        physical_state=5,
        rate_mbps=56_000,
        counters={
            "symbol_error": 1000,
            "link_error_recovery": 1001,
            "link_downed": 1002,
            "port_rcv_errors": 1003,
            "port_rcv_remote_physical_errors": 1004,
            "port_rcv_switch_relay_errors": 1005,
            "port_rcv_constraint_errors": 1006,
            "port_xmit_constraint_errors": 1007,
            "port_xmit_discards": 1008,
            "local_link_integrity_errors": 1009,
            "excessive_buffer_overrun_errors": 1010,
            "VL15_dropped": 1011,
            "port_rcv_data": 1012,
            "port_xmit_data": 1013,
            "port_rcv_packets": 1014,
            "port_xmit_packets": 1015,
            "port_xmit_wait": 1016,
        },
        events={},
    )
    assert port.octets("tx") == 4052


def test_an_adapter_without_a_performance_agent_has_a_state_and_no_counters() -> None:
    port = read_infiniband(NODE).ports[0]
    assert (port.state, port.counters, port.octets("rx"), port.packets("rx")) == (4, {}, None, None)


def test_roce_events_are_those_that_mean_loss_or_congestion() -> None:
    port = read_infiniband(NODE).ports[3]
    assert port.link_layer == "Ethernet"
    assert port.events == {
        "np_cnp_sent": 5101,
        "out_of_buffer": 5102,
        "out_of_sequence": 5103,
        "rp_cnp_handled": 5104,
    }  # lifespan is how long the driver caches them


def soft_roce(root: Path) -> Path:
    """rxe0 of Linux 6.12: its adapter has no folder of interfaces, its port no folder ``counters``."""
    device = root / "sys/class/infiniband/rxe0"
    counters = (
        "sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err",
        "rcvd_seq_err", "ack_deferred", "retry_exceeded_err", "retry_rnr_exceeded_err", "completer_retry_err",
        "send_err", "link_downed", "rdma_sends", "rdma_recvs", "lifespan",
    )  # fmt: skip
    (device / "ports/1/hw_counters").mkdir(parents=True)
    for number, name in enumerate(counters):
        (device / "ports/1/hw_counters" / name).write_text(f"{number}\n")
    for name, text in (("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("link_layer", "Ethernet")):
        (device / "ports/1" / name).write_text(f"{text}\n")
    return device


def test_soft_roce_counts_its_packets_and_what_went_wrong(tmp_path: Path) -> None:
    soft_roce(tmp_path)
    (port,) = read_infiniband(Roots.under(tmp_path)).ports
    assert port.events == {
        "duplicate_request": 2,
        "out_of_seq_request": 3,
        "rcvd_seq_err": 6,
        "rcvd_rnr_err": 4,
        "send_rnr_err": 5,
        "retry_exceeded_err": 8,
        "retry_rnr_exceeded_err": 9,
        "completer_retry_err": 10,
        "send_err": 11,
    }
    assert port.counters == {"link_downed": 12}
    assert (port.packets("tx"), port.packets("rx"), port.octets("rx")) == (0, 1, None)


def test_the_interface_of_soft_roce(tmp_path: Path) -> None:
    device = soft_roce(tmp_path)
    assert [port.netdev for port in read_infiniband(Roots.under(tmp_path)).ports] == [""]
    ndevs = device / "ports/1/gid_attrs/ndevs"
    ndevs.mkdir(parents=True)
    (ndevs / "1").write_text("eth1\n")
    assert [port.netdev for port in read_infiniband(Roots.under(tmp_path)).ports] == ["eth1"]
    (device / "parent").write_text("eth2\n")
    assert [port.netdev for port in read_infiniband(Roots.under(tmp_path)).ports] == ["eth2"]


def test_traffic_of_a_driver_that_counts_it_itself(tmp_path: Path) -> None:
    path = soft_roce(tmp_path) / "ports/1/hw_counters"
    (path / "rx_bytes").write_text("4096\n")
    (path / "tx_bytes").write_text("8192\n")
    (port,) = read_infiniband(Roots.under(tmp_path)).ports
    assert (port.octets("rx"), port.octets("tx")) == (4096, 8192)


def test_one_malformed_port_does_not_hide_the_other(tmp_path: Path) -> None:
    ports = tmp_path / "sys" / "class" / "infiniband" / "mlx5_0" / "ports"
    for port, rate in (("1", "fast"), ("2", "400 Gb/sec (4X NDR)")):
        (ports / port).mkdir(parents=True)
        (ports / port / "state").write_text("2: INIT\n")
        (ports / port / "rate").write_text(rate + "\n")
    reading = read_infiniband(Roots.under(tmp_path))
    assert [(each.port, each.state, each.physical_state, each.rate_mbps) for each in reading.ports] == [
        ("2", 2, None, 400_000)
    ]
    assert reading.skipped == (("mlx5_0/1", "malformed"),)


def test_a_host_without_adapters() -> None:
    with pytest.raises(Unavailable, match="no InfiniBand or RoCE adapter"):
        read_infiniband(Roots.under(Path("/nowhere")))


@pytest.mark.parametrize(
    ("text", "mbps"),
    [
        ("2.5 Gb/sec (1X SDR)", 2_500),
        ("10 Gb/sec (4X)", 10_000),
        ("56 Gb/sec (4X FDR)", 56_000),
        ("100 Gb/sec (4X EDR)", 100_000),
        ("800 Gb/sec (4X XDR)", 800_000),
    ],
)
def test_rates(text: str, mbps: int) -> None:
    assert parse_rate(text, source="rate") == mbps


def test_malformed_values() -> None:
    with pytest.raises(ParseError, match=r"rate: not a rate: '56 Gb'"):
        parse_rate("56 Gb", source="rate")
    with pytest.raises(ParseError, match=r"state: not a state: 'ACTIVE'"):
        parse_state("ACTIVE", source="state")
    with pytest.raises(ParseError, match=r"c: not a number: '-1'"):
        parse_counter("-1", source="c")
    assert parse_counter("N/A (no PMA)", source="c") is None
    assert [parse_counter(str(2**bits - 1), source="c") for bits in (16, 32, 64)] == [65535, None, None]
