"""What a node accepts of a fleet, and what the control host accepts of a node."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from plumbline.baseline.book import Book, load_book
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.text import format_record
from plumbline.baseline.site import MAX_BYTES, parse_site
from plumbline.cli import _parser, main
from plumbline.collectors.baseline import COLLECTOR
from plumbline.collectors.host import Latest
from plumbline.commands.fleet_node import install
from plumbline.commands.node import this_node
from plumbline.config.model import BaselineConfig, Config
from plumbline.core.roots import Roots
from plumbline.core.storage_names import CLASS_FILE
from plumbline.daemon.running import HostContext
from plumbline.errors import BaselineError, StateError, Unavailable
from plumbline.fleet.acceptance import accept, review
from plumbline.fleet.answers import Refused
from plumbline.fleet.classes import class_file
from plumbline.fleet.inventory import Host
from plumbline.fleet.node import FileState, NodeState, Parcel
from plumbline.fleet.recording import Recording, Times
from plumbline.fleet.store import RECORDED, NodeRecording, Session, Store, sha256
from plumbline.fleet.waves import Limits
from plumbline.metrics.guard import ITEM_REASONS
from support.fleet_files import node_text, signature_text
from support.manifest import manifest


def class_text() -> str:
    site = parse_site(node_text("a", fleet_class="box"), where="a", host=None)
    when = datetime(2026, 11, 25, tzinfo=UTC)
    return format_record(class_file("box", {"a": site}, when=when, by="ada"))


def book(storage: Path, before: Book | None = None) -> Book:
    return load_book(BaselineConfig(), where="x", storage=storage, host="a", targets=(), before=before)


def test_a_refused_class_file_costs_neither_its_old_figures_nor_the_nodes_own(tmp_path: Path) -> None:
    (tmp_path / "baseline.yaml").write_text(node_text("a", fleet_class="box"))
    (tmp_path / CLASS_FILE).write_text(class_text())
    first = book(tmp_path)
    assert first.class_error is None
    (tmp_path / CLASS_FILE).write_text("entries: no\n")
    after = book(tmp_path, first)
    assert after.recorded_error is None
    assert CLASS_FILE in str(after.class_error)
    assert after.fleet_classes == first.fleet_classes
    assert [source for source, _, _ in book(tmp_path).fleet_classes] == ["measured"]


def test_the_collector_goes_on_and_counts_a_refused_class_file(tmp_path: Path) -> None:
    (tmp_path / CLASS_FILE).write_text("entries: no\n")
    host = SimpleNamespace(
        book=book(tmp_path), baselines=(), parts=SimpleNamespace(latest=Latest({Fingerprint: Fingerprint}))
    )
    skipped: list[tuple[str, str]] = []
    reading = COLLECTOR.read(host, lambda item, reason: skipped.append((item, reason)))  # type: ignore[arg-type]
    assert list(COLLECTOR.samples(reading)) == []
    ((item, reason),) = skipped
    assert CLASS_FILE in item
    assert "\n" not in item
    assert reason in ITEM_REASONS


def test_the_daemon_takes_the_rest_and_says_once_why_not_the_class(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / CLASS_FILE).write_text("entries: no\n")
    world = HostContext(None, tmp_path, Roots.under(tmp_path), {}, "a")
    first = world.prepare(Config())
    world.prepare(Config(), book_before=first.book)
    (said,) = caplog.messages
    assert CLASS_FILE in said
    assert "\n" not in said


def test_a_file_of_another_kind_is_no_class_file(tmp_path: Path) -> None:
    (tmp_path / CLASS_FILE).write_text(node_text("a", fleet_class="box"))
    found = book(tmp_path)
    assert "is not the baseline of a class" in str(found.class_error)
    assert not found.fleet_classes


def test_a_baseline_that_the_daemon_would_not_read_is_not_put_in_place(tmp_path: Path) -> None:
    text = node_text("a", fleet_class="box") + "#" * MAX_BYTES
    data = msgspec.json.encode(Parcel(kind="measured", text=text, signature=""))
    with pytest.raises(BaselineError, match="longer than 1 MiB"):
        install(data, Config(), tmp_path, host="a")


@pytest.mark.parametrize(
    "data", [b'{"kind":"measured","text":"\xff","signature":""}', b'{"text":"\\ud800"}', b"[]", b""]
)
def test_what_is_no_parcel_is_one_line(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BaselineError, match="no baseline of a fleet") as caught:
        install(data, Config(), tmp_path, host="a")
    assert "\n" not in str(caught.value)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system")
def test_a_full_disk_is_one_line_and_the_old_one_stays(tmp_path: Path) -> None:
    old, new = (node_text("a", fleet_class="box", seed=seed) for seed in (0, 1))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", tmp_path], check=True)
    try:
        install(
            msgspec.json.encode(Parcel(kind="measured", text=old, signature=signature_text("x"))),
            Config(),
            tmp_path,
            host="a",
        )
        with contextlib.suppress(OSError):
            (tmp_path / "lost+found").write_bytes(bytes(1 << 17))
        with pytest.raises(StateError, match=r"baseline\.yaml: can't be written: No space left on device") as caught:
            install(
                msgspec.json.encode(Parcel(kind="measured", text=new, signature=signature_text("y"))),
                Config(),
                tmp_path,
                host="a",
            )
        assert "\n" not in str(caught.value)
        assert (tmp_path / "baseline.yaml").read_text() == old
        assert (tmp_path / "baseline.yaml.sig").read_text() == signature_text("x")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_refused_class_file_costs_a_command_its_line_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "baseline.yaml").write_text(node_text(socket.gethostname(), fleet_class="box"))
    (tmp_path / CLASS_FILE).write_text("entries: no\n")
    options = _parser().parse_args(["baseline", "list", "--storage.path", str(tmp_path)])
    assert [site.file.source for site in this_node(options).sites] == ["measured"]
    said = capsys.readouterr().err
    assert said.startswith("left out: ")
    assert CLASS_FILE in said
    assert said.count("\n") == 1


class Answering:
    """A node that has recorded ``text``; ``fails``: node → what happens there instead. ``asked``: each recording."""

    def __init__(self, text: str, fails: Mapping[str, Exception] = {}) -> None:
        self.text, self.fails = text, fails
        self.asked: list[tuple[str, bool]] = []

    def state(self, host: Host, *, text: bool = False) -> NodeState:
        given = self.text if text else ""
        return NodeState(host=host.name, version="1", candidate=FileState(sha256=sha256(self.text), text=given))

    def record(self, host: Host, options: Sequence[str], **_more: object) -> None:
        self.asked.append((host.name, "--restart" in options))
        if (error := self.fails.get(host.name)) is not None:
            raise error


def recording_of(store: Store, nodes: Answering, said: list[str]) -> Recording:
    return Recording(
        store,
        nodes,  # type: ignore[arg-type]
        {name: Host(name) for name in ("a", "b", "c")},
        Limits(),
        Times(),
        threading.Event(),
        lambda _progress: None,
        said.append,
    )


def test_a_node_that_is_gone_keeps_no_other_from_its_turn_and_loses_no_run(tmp_path: Path) -> None:
    """One node a wave: `b` can't be reached, `c` refuses its own figures."""
    store, sizes = Store(tmp_path / "fleet"), {"box": 3}
    nodes = Answering(
        node_text("a", fleet_class="box"), {"b": Unavailable("not reached"), "c": Refused("spread of 4 times")}
    )
    session = Session(started=0.0, turns={name: NodeRecording(fleet_class="box") for name in ("b", "c", "a")})
    recording_of(store, nodes, []).run(session, sizes)
    kept = store.session()
    assert kept is not None
    assert kept.named("recorded") == ("a",)
    assert {name: kept.turns[name].error for name in ("b", "c")} == {"b": "not reached", "c": "spread of 4 times"}
    nodes.fails = {}
    nodes.asked.clear()
    recording_of(store, nodes, []).run(kept, sizes)
    assert nodes.asked == [("b", False), ("c", True)]


@pytest.mark.parametrize("more", [["--node", "a"], ["--all"]])
def test_an_interrupted_recording_takes_no_other_choice_of_nodes(
    tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Store(tmp_path / "fleet").keep_session(Session(started=0.0, turns={"a": NodeRecording(fleet_class="box")}))
    (tmp_path / "list").write_text("a\nb\n")
    argv = ["fleet", "record", "--dir", str(tmp_path / "fleet"), "--inventory", str(tmp_path / "list"), *more]
    assert main(argv) == 1
    said = capsys.readouterr().err
    assert f"{more[0]}: an interrupted recording goes on with all of its nodes" in said
    assert said.count("\n") == 1


def test_of_two_recordings_of_one_fleet_the_second_is_refused(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "fleet").alone(),
        pytest.raises(StateError, match="another `plumbline fleet record` goes on"),
        Store(tmp_path / "fleet").alone(),
    ):
        pass
    with Store(tmp_path / "fleet").alone():
        pass


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (node_text("a", fleet_class="box"), True),
        (node_text("a", fleet_class="../../box"), False),
        (node_text("a", fleet_class=""), False),
        (node_text("b", fleet_class="box"), False),
        (class_text(), False),
    ],
    ids=["as asked", "a path", "no class", "another host", "a class's"],
)
def test_only_what_was_asked_for_is_kept_of_a_node(tmp_path: Path, text: str, kept: bool) -> None:
    store, said = Store(tmp_path / "fleet"), list[str]()
    recording = recording_of(store, Answering(text), said)
    session = Session(started=0.0, turns={"a": NodeRecording(fleet_class="box")})
    after = recording.run(session, {"box": 1})
    assert after.named("recorded" if kept else "failed") == ("a",)
    if not kept:
        assert said[0].startswith("failed: a: ")
        assert "\n" not in said[0]
    assert store.names(RECORDED, ".yaml") == (["a"] if kept else [])


@pytest.mark.parametrize("name", ["accepted/b.yaml.sig", "classes/box.yaml", "classes/box.yaml.sig"])
def test_an_acceptance_writes_nothing_where_a_file_of_others_has_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "fleet")
    for host in ("a", "b"):
        store.write(RECORDED, f"{host}.yaml", node_text(host, fleet_class="box"))
    reviewed = review(store)
    (store.path / name).parent.mkdir(mode=0o700)
    (store.path / name).write_text("somebody's\n")
    before = manifest(store.path)
    with pytest.raises(StateError, match="was not made by Plumbline; move it away") as caught:
        accept(store, reviewed, by="ada", key="k", sign=lambda _: signature_text("x").encode())
    assert str(store.path / name) in str(caught.value)
    after = {path: entry for path, entry in manifest(store.path).items() if entry.kind == "file"}
    assert after == {path: entry for path, entry in before.items() if entry.kind == "file"}
    (store.path / name).unlink()
    accept(store, reviewed, by="ada", key="k", sign=lambda _: signature_text("x").encode())
    assert store.names(RECORDED, ".yaml") == []
