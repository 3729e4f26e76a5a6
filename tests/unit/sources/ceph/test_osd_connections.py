"""The OSDs' TCP connections, from what a real Ceph 20.2.4 answered, and from the kernel's for older releases."""

from __future__ import annotations

import ipaddress
import json
import os
from pathlib import Path
from typing import Any

import pytest

from plumbline.collectors import osdtcp
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.ceph.osd_connections import (
    ASKED_AGAIN_AFTER,
    OSD_PORTS,
    ConnectionReader,
    ConnectionsReading,
    Far,
    parse_can_dump,
    parse_dump,
    parse_names,
)
from plumbline.sources.net.sockdiag import TcpConnection
from support.admin_sockets import AdminSocket

FIXTURES = Path(__file__).parents[3] / "fixtures" / "ceph-20.2"
CLUSTER = (FIXTURES / "messenger-dump-cluster.json").read_bytes()
HEARTBEATS = (FIXTURES / "messenger-dump-hb_back_server.json").read_bytes()
OLD, NEW = b'{"version":"16.2.15","release":"pacific"}', (FIXTURES / "version.json").read_bytes()
GROUP = 4711


class Osd(AdminSocket):
    """An OSD whose answer to `messenger dump` depends on the messenger."""

    dumps: dict[str, bytes]

    def framed(self, answer: bytes) -> bytes:
        command = self.asked[-1]
        return super().framed(self.dumps[command["msgr"]] if command["prefix"] == "messenger dump" else answer)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def new(folder: Path):
    osd = Osd(folder / "ceph-osd.0.asok", {"version": NEW})
    osd.dumps = {"cluster": CLUSTER, "hb_back_server": HEARTBEATS}
    yield osd
    osd.close()


@pytest.fixture
def old(folder: Path):
    osd = AdminSocket(folder / "ceph-osd.0.asok", {"version": OLD})
    yield osd
    osd.close()


def sockets(folder: Path) -> dict[str, Path]:
    return {path.name.removeprefix("ceph-").removesuffix(".asok"): path for path in sorted(folder.glob("*.asok"))}


def changed(dump: bytes, **figures: list[int]) -> bytes:
    """The dump with other figures of TCP, one for each connection."""
    decoded: Any = json.loads(dump)
    for at, entry in enumerate(decoded["messenger"]["connections"]):
        entry["async_connection"]["tcp_info"] |= {f"tcpi_{name}": values[at] for name, values in figures.items()}
    return json.dumps(decoded).encode()


def shown(reading: ConnectionsReading) -> dict[tuple[str, ...], float]:
    return {
        (spec.name.removeprefix("plumbline_osd_"), *labels): value for spec, labels, value in osdtcp.samples(reading)
    }


def test_connections_as_the_osd_told_them() -> None:
    first, second = parse_dump(CLUSTER, source="osd.0")
    assert {first.peer, second.peer} == {2, None}
    assert all(each.nonce and each.address.startswith("127.0.0.1:68") for each in (first, second))
    assert all(0 < each.rtt_s < 0.1 and each.deviation_s > 0 for each in (first, second))
    assert parse_names(HEARTBEATS, source="osd.0").keys() >= {first.nonce, second.nonce}
    assert set(parse_names(HEARTBEATS, source="osd.0").values()) == {1, 2}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("16.2.15", False),
        ("19.2.0", False),
        ("19.2.1", True),
        ("20.2.4-1", True),
        ("20.3.0-3812-gabc", True),
        ("", False),
    ],
)
def test_who_knows_the_command(version: str, expected: bool) -> None:
    assert parse_can_dump(json.dumps({"version": version}).encode(), source="x") is expected


def test_an_answer_of_another_form_is_told() -> None:
    with pytest.raises(ParseError, match="not in the format"):
        parse_dump(b'{"messenger": {"connections": 1}}', source="x")


def test_the_far_ends_are_named_by_heartbeats_and_these_asked_once(folder: Path, new: Osd) -> None:
    reader = ConnectionReader(None)
    new.dumps["cluster"] = changed(CLUSTER, rtt_us=[900, 24_000], rttvar_us=[500, 1_000], last_data_sent_ms=[5, 5])
    for _ in range(3):
        (osd,) = reader.read(sockets(folder), 60).osds
    assert (osd.source, osd.measured) == ("messenger", 2)
    assert {osd.worst.peer, parse_dump(CLUSTER, source="x")[0].peer or 1} <= {1, 2}  # type: ignore[union-attr]
    assert (osd.worst_s, osd.worst_deviation_s) == (0.024, 0.001)
    asked = [command.get("msgr") for command in new.asked]
    assert (asked.count("cluster"), asked.count("hb_back_server")) == (3, 1)
    assert new.asked[1]["dumpcontents"] == ["connections"]


def test_the_worst_is_the_one_that_is_slow_without_its_deviation(folder: Path, new: Osd) -> None:
    """A delayed acknowledgement makes the first longer on average than the second, which is always long."""
    new.dumps["cluster"] = changed(CLUSTER, rtt_us=[30_000, 20_000], rttvar_us=[35_000, 500], last_data_sent_ms=[5, 5])
    found = shown(ConnectionReader(None).read(sockets(folder), 60))
    assert found["connection_rtt_seconds", "osd.0", "worst"] == 0.02
    assert found["connection_rtt_deviation_seconds", "osd.0", "worst"] == 0.0005
    assert found["connection_rtt_seconds", "osd.0", "median"] == 0.025


def test_what_was_sent_long_ago_says_nothing(folder: Path, new: Osd) -> None:
    new.dumps["cluster"] = changed(CLUSTER, last_data_sent_ms=[60_001, 60_001])
    found = shown(ConnectionReader(None).read(sockets(folder), 60))
    assert found == {("connections", "osd.0", "messenger"): 0, ("connection_retransmits_total", "osd.0"): 0}


def test_retransmits_are_counted_on_and_never_back(folder: Path, new: Osd) -> None:
    reader, totals, ends = ConnectionReader(None), [], []
    first, second = (each.peer or 1 for each in parse_dump(CLUSTER, source="x"))
    again = json.loads(CLUSTER)
    again["messenger"]["connections"][0]["async_connection"]["conn_id"] = 99
    for dump in (
        changed(CLUSTER, total_retrans=[7, 1]),  # from before the daemon looked
        changed(CLUSTER, total_retrans=[7, 4]),
        changed(json.dumps(again).encode(), total_retrans=[2, 5]),  # made anew
        changed(json.dumps(again).encode(), total_retrans=[2, 5]),
    ):
        new.dumps["cluster"] = dump
        (osd,) = reader.read(sockets(folder), 60).osds
        totals.append(osd.retransmits)
        ends.append(osd.losing.peer if osd.losing else None)
    assert totals == [0, 3, 6, 6]
    assert ends == [None, second, first, None]


def test_a_connection_that_is_made_anew_below_the_same_session_counts_from_zero(folder: Path, new: Osd) -> None:
    reader, totals = ConnectionReader(None), []
    for retransmits in ([7, 1], [7, 5], [3, 5], [3, 0], [4, 0]):
        new.dumps["cluster"] = changed(CLUSTER, total_retrans=retransmits)
        (osd,) = reader.read(sockets(folder), 60).osds
        totals.append(osd.retransmits)
    assert totals == [0, 4, 7, 7, 8]


def test_far_ends_that_heartbeats_did_not_tell_are_asked_for_again(folder: Path, new: Osd) -> None:
    """The first answer was none, and at the second the far end had just started."""
    reader, known = ConnectionReader(None), []
    rtt_us = [100, 100]
    rtt_us[[each.peer for each in parse_dump(CLUSTER, source="x")].index(None)] = 9_000
    new.dumps["cluster"] = changed(CLUSTER, rtt_us=rtt_us, rttvar_us=[0, 0], last_data_sent_ms=[5, 5])
    for heartbeats in (b"{}", b'{"messenger": {}}', *[HEARTBEATS] * (ASKED_AGAIN_AFTER + 1)):
        new.dumps["hb_back_server"] = heartbeats
        (osd,) = reader.read(sockets(folder), 60).osds
        known.append(osd.worst is not None and osd.worst.peer is not None)
    assert known == [False] * (ASKED_AGAIN_AFTER + 2) + [True]
    asked = [command["msgr"] for command in new.asked if command["prefix"] == "messenger dump"]
    assert asked.count("hb_back_server") == 3


def kernel(*connections: tuple[str, int, int | None, int]) -> Any:
    return lambda ports: [
        TcpConnection(
            cookie=at, address=ipaddress.ip_address(address), port=port, rtt_us=rtt_us, deviation_us=10, retransmits=at,
            idle_ms=100, cgroup=group,
        )
        for at, (address, port, group, rtt_us) in enumerate(connections)
        if port in ports
    ]  # fmt: skip


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    """This process, which plays the OSDs, in a control group."""
    (tmp_path / "sys/fs/cgroup/osd").mkdir(parents=True)
    (tmp_path / f"proc/{os.getpid()}").mkdir(parents=True)
    (tmp_path / f"proc/{os.getpid()}/cgroup").write_text("1:name=systemd:/x\n0::/osd\n")
    return Roots.under(tmp_path)


def test_of_an_older_release_the_kernel_knows_them(folder: Path, old: AdminSocket, roots: Roots) -> None:
    ours = (roots.sys / "fs/cgroup/osd").stat().st_ino
    seen = kernel(
        ("10.0.0.2", 6802, ours, 300),
        ("fd00::3", 6802, ours, 9_000),
        ("10.0.0.9", 6800, ours, 50_000),  # a manager
        ("10.0.0.2", 6802, ours + 1, 70_000),  # somebody else's
        ("10.0.0.2", 6802, None, 80_000),
        ("10.0.0.4", 24_000, ours, 8_000),  # a port that a site has chosen
    )
    known = {"10.0.0.2:6802": 2, "[fd00::3]:6802": 3, "10.0.0.4:24000": 4}
    reading = ConnectionReader(roots, addresses=lambda: known, kernel=seen).read(sockets(folder), 60)
    (osd,) = reading.osds
    assert (osd.source, osd.measured, osd.worst, osd.worst_s) == ("kernel", 3, Far("[fd00::3]:6802", 3), 0.009)
    assert shown(reading)["connection_worst_peer_id", "osd.0", "rtt"] == 3
    (osd,) = ConnectionReader(roots, kernel=seen).read(sockets(folder), 60).osds  # without a map
    assert (osd.measured, str(osd.worst)) == (3, "10.0.0.9:6800")
    assert not [command for command in old.asked if command["prefix"] != "version"]


def test_the_arrival_of_the_map_is_no_loss(folder: Path, old: AdminSocket, roots: Roots) -> None:
    """Connections to ports that a site has chosen come into view with all that they ever sent again."""
    del old
    ours = (roots.sys / "fs/cgroup/osd").stat().st_ino
    known: dict[str, int] = {}
    sent_again = {6802: 3, 24_000: 500}

    def seen(ports: range) -> list[TcpConnection]:
        return [
            TcpConnection(
                cookie=port, address=ipaddress.ip_address("10.0.0.2"), port=port, rtt_us=100, deviation_us=10,
                retransmits=count, idle_ms=100, cgroup=ours,
            )
            for port, count in sent_again.items()
            if port in ports
        ]  # fmt: skip

    reader = ConnectionReader(roots, addresses=lambda: known, kernel=seen)

    def total() -> int:
        (osd,) = reader.read(sockets(folder), 60).osds
        return osd.retransmits

    totals = [total()]
    known |= {"10.0.0.2:6802": 2, "10.0.0.2:24000": 4}
    totals.append(total())
    sent_again |= {6802: 5, 24_000: 501, 24_001: 7}
    totals.append(total())
    known["10.0.0.2:24001"] = 5
    totals.append(total())
    sent_again[24_001] = 9
    totals.append(total())
    assert totals == [0, 0, 3, 3, 5]


@pytest.mark.parametrize("odd", ["0.0.0.0:0", ":/0", "10.0.0.9:70000", "10.0.0.9:²", "10.0.0.9:4294967296", "10.0.0.9"])
def test_an_address_without_a_port_does_not_widen_what_the_kernel_is_asked_for(
    folder: Path, old: AdminSocket, roots: Roots, odd: str
) -> None:
    del old
    asked = []

    def seen(ports: range) -> list[TcpConnection]:
        asked.append(ports)
        return []

    for known in ({"10.0.0.2:6802": 2, odd: 9}, {odd: 9}):
        ConnectionReader(roots, addresses=lambda known=known: known, kernel=seen).read(sockets(folder), 60)  # type: ignore[misc]
    assert asked == [range(6802, 6803), OSD_PORTS]


def test_what_the_kernel_cannot_attribute_is_told(folder: Path, old: AdminSocket, roots: Roots) -> None:
    del old
    other = AdminSocket(folder / "ceph-osd.1.asok", {"version": OLD})
    ours = (roots.sys / "fs/cgroup/osd").stat().st_ino
    seen = kernel(("10.0.0.2", 6802, ours, 300))
    shared = ConnectionReader(roots, kernel=seen).read(sockets(folder), 60)
    other.close()
    assert (shared.osds, shared.unseen) == ((), ("osd.0", "osd.1"))
    alone = {"osd.0": folder / "ceph-osd.0.asok"}
    assert ConnectionReader(roots, kernel=kernel()).read(alone, 60).unseen == ("osd.0",)

    def without(_ports: range) -> list[TcpConnection]:
        raise Unavailable("no sock_diag")

    assert ConnectionReader(roots, kernel=without).read(alone, 60).unseen == ("osd.0",)
    (roots.proc / f"{os.getpid()}/cgroup").write_text("0::/\n")
    assert ConnectionReader(roots, kernel=seen).read(alone, 60).unseen == ("osd.0",)


def test_an_osd_has_ten_series_at_most_however_many_peers_it_has(folder: Path, new: Osd) -> None:
    many = json.loads(CLUSTER)
    one = json.dumps(many["messenger"]["connections"][0])
    many["messenger"]["connections"] = [
        json.loads(one.replace('"conn_id": 2', f'"conn_id": {at}').replace('"conn_id": 4', f'"conn_id": {at}'))
        for at in range(300)
    ]
    new.dumps["cluster"] = json.dumps(many).encode()
    assert len(shown(ConnectionReader(None).read(sockets(folder), 60))) <= 10
