"""GlusterFS, by what three glusterd wrote and said."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.background.gluster import EVERY_S, KEPT_S, VOLUMES_AT_ONCE, GlusterWatch
from plumbline.collectors.fileservers import gluster_samples as samples
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.gluster import (
    DROP_IN,
    STATE_FILE,
    Brick,
    GlusterReading,
    Peer,
    parse_heals,
    parse_state,
    read_state,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "gluster"
HEALTHY, TROUBLE, ALONE, HEALS = (
    (FIXTURES / f"{name}.txt").read_bytes() for name in ("healthy", "brick-and-peer", "quorum-lost", "heal-count")
)
SECOND, THIRD = "10.77.0.2", "10.77.0.3"


def one(*lines: str, bricks: int = 3, subvolumes: int = 1, **counts: int) -> bytes:
    """The state of a host with one volume."""
    numbers = {"replica_count": 1, "disperse_count": 0, "redundancy_count": 0, **counts}
    known = {"name": "v", "status": "Started", "brickcount": bricks, "subvol_count": subvolumes, **numbers}
    text = ["MYUUID: a", *(f"Volume1.{key}: {value}" for key, value in known.items()), *lines]
    return "\n".join(text).encode()


def test_all_is_up() -> None:
    state = parse_state(HEALTHY)
    assert state.peers == (
        Peer(SECOND, "4687ed20-67a8-4a33-b3bc-12ea65cfbaa0", True),
        Peer(THIRD, "a4ad411a-f67a-4686-bfc9-9dd8875cb346", True),
    )
    assert {volume.name: (volume.bricks_each, volume.needed, volume.replicated) for volume in state.volumes} == {
        "arb": (3, 2, True),
        "dist": (1, 1, False),
        "dr": (3, 2, True),
        "ec": (3, 2, False),
        "r2": (2, 2, True),
        "rep": (3, 2, True),
    }
    (distributed,) = [volume for volume in state.volumes if volume.name == "dr"]
    assert distributed.bricks == (Brick("10.77.0.1:/srv/dr1", 0, True), Brick("10.77.0.1:/srv/dr2", 1, True))
    assert {volume.name: volume.server_quorum for volume in state.volumes if volume.server_quorum is not None} == {
        "rep": True
    }


def test_a_brick_and_a_peer_are_gone() -> None:
    state = parse_state(TROUBLE)
    down = [(volume.name, brick) for volume in state.volumes for brick in volume.bricks if not brick.up]
    assert down == [("dr", Brick("10.77.0.1:/srv/dr2", 1, False))]
    assert {peer.name: peer.connected for peer in state.peers} == {SECOND: True, THIRD: False}
    reading = GlusterReading(state, {("dr", brick): entries for brick, entries in parse_heals(HEALS).items()})
    got = {(spec.name.removeprefix("plumbline_gluster_"), *labels): value for spec, labels, value in samples(reading)}
    assert got["brick_up", "dr", "1", "10.77.0.1:/srv/dr2"] == 0
    assert got["brick_up", "dr", "0", "10.77.0.1:/srv/dr1"] == 1
    assert got["peer_connected", THIRD] == 0
    assert got["server_quorum", "rep"] == 1
    assert got["subvolume_bricks_needed", "r2"] == 2
    assert {labels[2]: value for labels, value in got.items() if labels[0] == "heal_pending_entries"} == {
        "10.77.0.1:/srv/dr1": 0, "10.77.0.2:/srv/dr1": 0, "10.77.0.3:/srv/dr1": 0,
        "10.77.0.2:/srv/dr2": 24, "10.77.0.3:/srv/dr2": 24,
    }  # fmt: skip
    assert len(got) == 27


def test_a_host_that_sees_no_other_has_no_quorum() -> None:
    (volume,) = [volume for volume in parse_state(ALONE).volumes if volume.name == "rep"]
    assert (volume.server_quorum, [brick.up for brick in volume.bricks]) == (False, [False])


@pytest.mark.parametrize(
    ("state", "asks"),
    [(HEALTHY, False), (TROUBLE, False), (ALONE, True)],
    ids=["another", "another that is connected", "alone"],
)
def test_one_host_of_the_pool_asks(state: bytes, asks: bool) -> None:
    assert parse_state(state).asks is asks


def test_the_host_with_the_first_identity_asks() -> None:
    text = HEALTHY.replace(b"MYUUID: b", b"MYUUID: 0")
    assert parse_state(text).asks


@pytest.mark.parametrize(
    ("state", "needed"),
    [
        (one(bricks=2, replica_count=2), 1),
        (one("Volume1.options.cluster.quorum-type: auto", bricks=4, replica_count=4), 2),
        (one("Volume1.options.cluster.quorum-type: none", replica_count=3), 1),
        (one("Volume1.options.cluster.quorum-type: fixed", replica_count=3), 1),
        (one(bricks=12, subvolumes=2, disperse_count=6, redundancy_count=2), 4),
    ],
)
def test_how_many_bricks_clients_need(state: bytes, needed: int) -> None:
    (volume,) = parse_state(state).volumes
    assert volume.needed == needed


def test_a_volume_that_is_stopped_has_no_bricks_to_miss() -> None:
    assert parse_state(one().replace(b"Started", b"Stopped")).volumes == ()


@pytest.mark.parametrize("state", [b"", b"[Global]\n", one().replace(b"brickcount: 3", b"brickcount: many")])
def test_what_is_no_state(state: bytes) -> None:
    with pytest.raises(ParseError, match=r"^gluster get-state"):
        parse_state(state)


@pytest.mark.parametrize("text", [b"", b"Another transaction is in progress for rep.", b"Number of entries: 3\n"])
def test_what_is_no_count(text: bytes) -> None:
    with pytest.raises(ParseError, match=r"^gluster volume heal: no count: "):
        parse_heals(text)


LINES = st.lists(
    st.builds(
        "{}{}.{}: {}".format,
        st.sampled_from(("Peer", "Volume", "Volume1.Brick")),
        st.integers(0, 3),
        st.sampled_from(("name", "primary_hostname", "path", "status", "brickcount", "subvol_count", "replica_count")),
        st.sampled_from(("Started", "", "0", "1", "99999999999999999999", "-1", "a: b")) | st.text(max_size=5),
    )
).map(lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass"))


@given(st.binary() | LINES | LINES.map(lambda lines: one() + b"\n" + lines) | LINES.map(lambda lines: lines + one()))
@example(one(subvolumes=0))
def test_a_state_or_one_clear_error(data: bytes) -> None:
    with suppress(ParseError):
        rows = [(spec, labels) for spec, labels, _ in samples(GlusterReading(parse_state(data), {}))]
        assert len(rows) == len(set(rows))


@given(st.binary() | st.text("Brick: Numberofntis0123 \n").map(lambda text: HEALS + text.encode()))
def test_counts_or_one_clear_error(data: bytes) -> None:
    with suppress(ParseError):
        assert all(brick and entries >= 0 for brick, entries in parse_heals(data).items())


class Gluster:
    """Writes the state and counts as told."""

    def __init__(self, roots: Roots, state: bytes) -> None:
        self.run_folder, self.state = roots.udev.parent, state
        self.asked: list[str] = []
        self.fails: Mapping[str, Any] = {}

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        if "get-state" in argv:
            (self.run_folder / STATE_FILE).write_bytes(self.state)
            return Completed(tuple(argv), 0)
        self.asked.append(argv[argv.index("heal") + 1])
        return Completed(tuple(argv), **{"returncode": 0, "stdout": HEALS, **self.fails})

    def stop(self) -> None:
        pass


@pytest.fixture
def host(tmp_path: Path) -> Roots:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "glusterd.socket").touch()
    return Roots.under(tmp_path)


def test_a_host_without_glusterd_is_asked_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no glusterd runs here"):
        read_state(Roots.under(tmp_path), None)  # type: ignore[arg-type]


def test_who_may_not_ask_is_told_what_to_do(host: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may everything
    with pytest.raises(Unavailable, match=DROP_IN):
        read_state(host, None)  # type: ignore[arg-type]
    assert (Path(__file__).parents[3] / DROP_IN).exists()


def watch(host: Roots, state: bytes) -> tuple[GlusterWatch, Gluster, list[float]]:
    gluster, now = Gluster(host, state), [1000.0]
    return GlusterWatch(host, gluster, clock=lambda: now[0]), gluster, now  # type: ignore[arg-type]


def test_a_host_that_does_not_ask_counts_nothing(host: Roots) -> None:
    watching, gluster, _ = watch(host, HEALTHY)
    watching.slot.refresh(threading.Event())
    assert (watching.slot.value.heals, gluster.asked) == ({}, [])


def test_all_replicated_volumes_are_asked_in_turn(host: Roots) -> None:
    names = [f"v{number}" for number in range(VOLUMES_AT_ONCE + 2)]
    volumes = [
        one(bricks=3, replica_count=3).decode().replace("MYUUID: a\n", "").replace("Volume1", f"Volume{number}")
        for number in range(1, len(names) + 1)
    ]
    named = (text.replace(".name: v", f".name: {name}") for text, name in zip(volumes, names, strict=True))
    watching, gluster, now = watch(host, "\n".join(["MYUUID: a", *named]).encode())
    for _ in range(2):
        watching.slot.refresh()
        now[0] += EVERY_S
    assert gluster.asked == [*names, *names[: VOLUMES_AT_ONCE - 2]]
    assert {volume for volume, _ in watching.slot.value.heals} == set(names)


def test_a_count_is_kept_while_somebody_else_holds_the_lock_and_not_for_long(host: Roots) -> None:
    watching, gluster, now = watch(host, HEALTHY.replace(b"MYUUID: b", b"MYUUID: 0"))
    watching.slot.refresh()
    assert watching.slot.value.heals["dr", "10.77.0.2:/srv/dr2"] == 24
    gluster.fails = {"returncode": 1, "stdout": b"", "stderr": b"Another transaction is in progress for dr."}
    now[0] += KEPT_S - 1
    watching.slot.refresh()
    assert watching.slot.value.heals["dr", "10.77.0.2:/srv/dr2"] == 24
    now[0] += 1
    watching.slot.refresh()
    assert watching.slot.value.heals == {}


def test_glusterd_that_answers_nothing_is_a_fault(host: Roots) -> None:
    class Silent(Gluster):
        def run(self, argv: Sequence[str], **_: object) -> Completed:
            return Completed(
                tuple(argv), 1, stdout=b"Connection failed. Please check if gluster daemon is operational."
            )

    watching = GlusterWatch(host, Silent(host, b""))  # type: ignore[arg-type]
    watching.slot.refresh()
    with pytest.raises(PlumblineError, match="Connection failed") as caught:
        _ = watching.slot.value
    assert type(caught.value) is PlumblineError
