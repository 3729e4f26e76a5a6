"""InfiniBand readings as samples."""

from __future__ import annotations

from pathlib import Path

from plumbline.collectors import infiniband as metrics
from plumbline.core.roots import Roots
from plumbline.sources.net.infiniband import InfinibandPort, InfinibandReading, read_infiniband

NODE = Roots.under(Path(__file__).parents[2] / "fixtures" / "infiniband-storage-node")


def test_a_port_in_base_units() -> None:
    reading = read_infiniband(NODE)
    got = metrics.samples(InfinibandReading((reading.ports[1],), {"ib0": True}))
    plain = [(spec.name.removeprefix("plumbline_"), *labels[2:], value) for spec, labels, value in got]
    assert plain == [
        ("infiniband_info", "InfiniBand", "2.42.5000", "MT_1090120019", "ib0", 1),
        ("infiniband_port_state", 4),
        ("infiniband_physical_state", 5),
        ("infiniband_rate_bytes_per_second", 7_000_000_000),
        ("infiniband_bytes_total", "receive", 4048),
        ("infiniband_packets_total", "receive", 1014),
        ("infiniband_bytes_total", "transmit", 4052),
        ("infiniband_packets_total", "transmit", 1015),
        ("infiniband_link_downs_total", 1002),
        ("infiniband_link_error_recoveries_total", 1001),
        ("infiniband_transmit_waits_total", 1016),
        ("infiniband_errors_total", "symbol_error", 1000),
        ("infiniband_errors_total", "port_rcv_errors", 1003),
        ("infiniband_errors_total", "port_rcv_remote_physical_errors", 1004),
        ("infiniband_errors_total", "port_rcv_switch_relay_errors", 1005),
        ("infiniband_errors_total", "port_rcv_constraint_errors", 1006),
        ("infiniband_errors_total", "port_xmit_constraint_errors", 1007),
        ("infiniband_errors_total", "port_xmit_discards", 1008),
        ("infiniband_errors_total", "local_link_integrity_errors", 1009),
        ("infiniband_errors_total", "excessive_buffer_overrun_errors", 1010),
        ("infiniband_errors_total", "VL15_dropped", 1011),
        ("nic_ipoib_connected_mode_enabled", 1),
    ]


def test_what_an_adapter_does_not_say_is_absent() -> None:
    port = InfinibandPort("rxe0", "1", "", "", "", "", 1, None, None, {}, {"out_of_buffer": 0})
    assert list(metrics.samples(InfinibandReading((port,), {"ib1": False}))) == [
        (metrics.INFO, ("rxe0", "1", "", "", "", ""), 1),
        (metrics.PORT_STATE, ("rxe0", "1"), 1),
        (metrics.EVENTS, ("rxe0", "1", "out_of_buffer"), 0),
        (metrics.IPOIB_CONNECTED, ("ib1",), 0),
    ]
