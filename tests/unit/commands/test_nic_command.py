"""``plumbline nic``: what stands behind each number."""

from __future__ import annotations

import io
import json

import pytest

from plumbline import cli
from plumbline.commands.nic import Explanation, Figure, Pause, Ring, Term, explain, pick, print_ports
from plumbline.core.console import make_console
from plumbline.errors import Unavailable, UnknownName
from plumbline.sources.net.drivers import bind, load_table
from plumbline.sources.net.ethtool import DriverInfo
from plumbline.sources.net.links import Link, LinkStats
from plumbline.sources.net.network import PortReading
from plumbline.sources.net.port_settings import PauseConfig, PauseState, RingSizes

TABLE = load_table()
STATS = LinkStats(*[0] * 25)._replace(rx_dropped=7, rx_nohandler=2, rx_otherhost_dropped=None, tx_dropped=9)
ICE = {
    "rx_dropped": 5,
    "rx_dropped.nic": 20,
    "rx_crc_errors.nic": 3,
    "link_xon_rx.nic": 1,
    "link_xoff_rx.nic": 20,
    "rx_priority_0_xoff.nic": 70,
    "rx_priority_1_xoff.nic": 7,
    "tx_busy": 4,
}


def link(name: str, kind: str = "") -> Link:
    return Link(2, name, name.encode(), kind, 1, 1500, 6, True, 0, 0, "", "", "", STATS)


def port(
    driver: str,
    statistics: dict[str, int],
    *,
    name: str = "eth0",
    pause: PauseState | None = None,
    pause_source: str = "",
    rings: RingSizes | None = None,
) -> PortReading:
    rules, source = TABLE.select(link(name), driver)
    names = tuple(statistics)
    return PortReading(
        link=link(name),
        master="bond0",
        info=DriverInfo(driver, "1.2", "0000:3b:00.0", len(names)),
        drop_source=source,
        rules=rules,
        plan=bind(rules, names),
        names=names if source == "driver" else (),
        values=tuple(statistics.values()) if source == "driver" else (),
        pause=pause,
        pause_source=pause_source,
        rings=rings,
    )


def software(name: str, kind: str) -> PortReading:
    rules, source = TABLE.select(link(name, kind), "")
    return PortReading(link(name, kind), "", None, source, rules, bind(rules, ()), (), (), None, "", None)


def ice() -> Explanation:
    state = PauseState(PauseConfig(False, True, False), 21, None)
    return explain(port("ice", ICE, pause=state, pause_source="driver", rings=RingSizes(rx=512, rx_max=4096)))


def printed(*ports: Explanation) -> list[str]:
    stream = io.StringIO()
    print_ports(make_console(stream), ports)
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def test_a_known_driver_figure_by_figure() -> None:
    found = ice()
    assert (found.driver, found.firmware, found.bus, found.master) == ("ice", "1.2", "0000:3b:00.0", "bond0")
    assert (found.drop_source, found.why) == ("driver", "rules for this driver")
    by_key = {(one.family, one.direction, one.cause): one for one in found.figures}
    assert by_key["drops", "receive", "ring"] == Figure(
        family="drops",
        direction="receive",
        cause="ring",
        frames=5,
        terms=(Term(sign="+", counter="rx_dropped", value=5),),
        whole_port=False,
    )
    assert by_key["drops", "receive", "fifo"].whole_port
    filtered = by_key["drops", "receive", "filter"]
    assert (filtered.frames, filtered.terms[-1]) == (4, Term(sign="-", counter="rx_dropped", value=5))
    assert "rtnl.rx_otherhost_dropped" not in [term.counter for term in filtered.terms], "this kernel has no such field"
    assert by_key["pause", "receive", ""].frames == 21


def test_figures_are_the_sum_of_their_terms() -> None:
    for figure in ice().figures:
        total = sum(term.value if term.sign == "+" else -term.value for term in figure.terms)
        assert figure.frames == max(total, 0)


def test_priority_flow_control_is_a_figure_of_its_own() -> None:
    (found,) = (figure for figure in ice().figures if figure.family == "priority pause")
    assert (found.direction, found.frames, found.terms[-1].counter) == ("receive", 77, "rx_priority_%d_xoff.nic")


def test_what_is_left_out_has_its_value() -> None:
    left_out = {one.counter: one for one in ice().left_out}
    assert left_out["tx_busy"].value == 4
    assert "tx_restart" not in left_out, "this port has no such counter"


def test_causes_that_the_driver_cannot_tell_are_named() -> None:
    assert explain(port("ixgbevf", {})).not_told[:3] == (
        "receive drops: ring",
        "receive drops: fifo",
        "receive drops: other",
    )
    assert explain(software("veth0", "veth")).not_told == ()


def test_flow_control_and_rings() -> None:
    found = ice()
    assert found.pause == Pause(
        autonegotiate=False, receive=True, transmit=False, source="driver", receive_frames=21, transmit_frames=None
    )
    assert found.rings == (Ring(ring="rx", entries=512, maximum=4096),)


def test_frames_that_netlink_counts_are_not_explained_from_the_table() -> None:
    state = PauseState(PauseConfig(True, True, True), 21, 30)
    found = explain(port("ice", ICE, pause=state, pause_source="netlink"))
    assert [one for one in found.figures if one.family == "pause"] == []
    assert printed(found)[-1] == (
        "flow control: receive on, transmit on, autonegotiation on; "
        "frames counted by the kernel (netlink): 21 received, 30 transmitted"
    )


def test_an_unknown_driver_says_that_the_kernels_fields_are_all_there_is() -> None:
    found = explain(port("mystery", {"rx_weird": 9}))
    assert found.drop_source == "rtnl"
    assert found.why.startswith("no rules for the driver mystery: the kernel's own fields")
    assert {term.counter.partition(".")[0] for figure in found.figures for term in figure.terms} == {"rtnl"}


def test_a_bond_points_to_its_members() -> None:
    found = explain(software("bond0", "bond"))
    assert (found.driver, found.drop_source, found.figures) == ("bond", "members", ())
    assert "see those" in found.why


def test_as_text() -> None:
    lines = printed(ice(), explain(software("veth0", "veth")))
    assert lines[0] == "eth0: ice, firmware 1.2, bus 0000:3b:00.0, in bond0"
    assert "drops receive ring 5 rx_dropped 5" in lines
    assert "drops receive fifo 20 rx_dropped.nic 20 (whole port)" in lines
    assert "drops receive filter 4 rtnl.rx_nohandler 2 + rtnl.rx_dropped 7 - rx_dropped 5" in lines
    assert "left out: tx_busy 4 (the stack keeps the frame and tries again)" in lines
    assert "rings: rx 512 of 4096" in lines
    assert lines[lines.index("") + 1] == "veth0: veth"


def test_one_device_or_all_and_an_unknown_one_with_the_known() -> None:
    readings = [port("ice", ICE), software("lo", "")]
    assert pick(readings, None) == tuple(readings)
    assert [reading.link.name for reading in pick(readings, "lo")] == ["lo"]
    with pytest.raises(UnknownName, match=r"^no network device eth9; there are: eth0, lo$"):
        pick(readings, "eth9")
    with pytest.raises(Unavailable, match=r"^eth1: its driver can't be queried \(permission\); see `ip -s link"):
        pick(readings, "eth1", [("eth1", "permission")])


def test_the_command_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["nic", "lo"]) == 0
    assert capsys.readouterr().out.startswith("lo: loopback\n  drop_source rtnl: ")
    assert cli.main(["nic", "lo", "--json"]) == 0
    (lo,) = json.loads(capsys.readouterr().out)
    assert (lo["device"], lo["drop_source"]) == ("lo", "rtnl")
    assert cli.main(["nic", "no-such-device"]) == 2
    refused = capsys.readouterr()
    assert refused.out == ""
    assert refused.err.startswith("plumbline: no network device no-such-device; there are: ")
    assert refused.err.count("\n") == 1
