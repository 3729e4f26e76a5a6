"""What a port is connected to, by lldpd."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.collectors.topology import samples
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.net.lldp import COMMAND, Neighbour, parse_neighbours, read_neighbours
from plumbline.sources.net.roles import TopologyReading

CAPTURED = (Path(__file__).parents[3] / "fixtures" / "lldp" / "two-hosts.json").read_bytes()
WORDS = st.sampled_from(("lldp", "interface", "chassis", "port", "name", "id", "descr", "mfs", "value"))
JSON = st.recursive(
    st.none() | st.integers() | WORDS, lambda part: st.lists(part) | st.dictionaries(WORDS, part), max_leaves=20
)


class Lldpcli:
    """Answers as told."""

    def __init__(self, **done: Any) -> None:
        self.done, self.asked = done, 0

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.asked += 1
        assert tuple(argv) == COMMAND
        return Completed(tuple(argv), **{"returncode": 0, "stdout": CAPTURED, **self.done})


def host(folder: Path) -> Roots:
    (folder / "run").mkdir()
    (folder / "run" / "lldpd.socket").touch()
    return Roots.under(folder)


def one(**more: Any) -> bytes:
    port = {"id": [{"type": "ifname", "value": "swp7"}]}
    chassis = {"id": [{"type": "mac", "value": "00:11:22:33:44:55"}]}
    interface = {"name": "eth0", "chassis": [chassis], "port": [port], **more}
    return json.dumps({"lldp": [{"interface": [interface]}]}).encode()


def test_as_captured() -> None:
    reading = parse_neighbours(CAPTURED)
    assert reading == (Neighbour("va", "tor-a", "Ethernet1/7", "stor01 ens1f0"),)
    assert [(spec.name, *labels, value) for spec, labels, value in samples(TopologyReading((), (), reading))] == [
        ("plumbline_nic_neighbor_info", "va", "tor-a", "Ethernet1/7", "stor01 ens1f0", 1)
    ]


def test_a_switch_without_a_name_and_the_frames_it_takes() -> None:
    port = {"id": [{"value": "swp7"}], "mfs": [{"value": "9236"}]}
    reading = parse_neighbours(one(port=[port]))
    assert reading == (Neighbour("eth0", "00:11:22:33:44:55", "swp7", "", 9236),)
    found = [(spec.name, *labels, value) for spec, labels, value in samples(TopologyReading((), (), reading))]
    assert found[-1] == ("plumbline_nic_neighbor_max_frame_bytes", "eth0", "00:11:22:33:44:55", "swp7", 9236)


@pytest.mark.parametrize("frame", ["0", "65536", "jumbo", "-1", ""])
def test_a_frame_that_cannot_be(frame: str) -> None:
    (found,) = parse_neighbours(one(port=[{"id": [{"value": "swp7"}], "mfs": [{"value": frame}]}]))
    assert found.max_frame_bytes is None


@pytest.mark.parametrize("answer", [b'{"lldp": [{}]}', b'{"lldp": []}', one(port=[])])
def test_nobody_is_heard(answer: bytes) -> None:
    assert parse_neighbours(answer) == ()


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"lldp": {"interface": {"eth0": {}}}}', b'{"lldp": [1]}', b"lldp"])
def test_what_is_no_such_answer(answer: bytes) -> None:
    with pytest.raises(ParseError, match=r"^lldpcli show neighbors: "):
        parse_neighbours(answer)


@given(JSON.map(json.dumps).map(str.encode) | st.binary())
@example(one(chassis=[]))
@example(one(chassis=[{"name": [None]}]))
def test_neighbours_or_one_clear_error(answer: bytes) -> None:
    with suppress(ParseError):
        assert all(found.system or found.port for found in parse_neighbours(answer))


def test_a_host_without_lldpd_is_asked_nothing(tmp_path: Path) -> None:
    runner = Lldpcli()
    assert read_neighbours(Roots.under(tmp_path), runner) == ()
    assert runner.asked == 0


@pytest.mark.parametrize(
    ("done", "kind", "line"),
    [
        ({"returncode": 127}, Unavailable, "lldpcli is not installed"),
        ({"returncode": None, "cancelled": True}, Unavailable, "the daemon is stopping"),
        ({"returncode": None, "timed_out": True}, PlumblineError, "no answer within 10 s"),
        ({"returncode": None, "truncated": True}, PlumblineError, "too much output"),
        (
            {"returncode": 1, "stderr": b"unable to connect to socket /run/lldpd.socket\nagain"},
            Unavailable,
            "exit 1: unable to connect to socket /run/lldpd.socket; the daemon needs the group of /run/lldpd.socket$",
        ),
    ],
)
def test_no_answer(tmp_path: Path, done: dict[str, Any], kind: type[PlumblineError], line: str) -> None:
    with pytest.raises(kind, match=line) as caught:
        read_neighbours(host(tmp_path), Lldpcli(**done))
    assert type(caught.value) is kind


def test_an_answer(tmp_path: Path) -> None:
    assert [found.device for found in read_neighbours(host(tmp_path), Lldpcli())] == ["va"]
