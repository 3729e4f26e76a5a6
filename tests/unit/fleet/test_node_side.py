"""What a node accepts of a fleet, and what the control host accepts of a node."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from plumbline.baseline.book import Book, load_book
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.text import format_record
from plumbline.baseline.site import MAX_BYTES, parse_site
from plumbline.collectors.baseline import COLLECTOR
from plumbline.commands.fleet_node import install
from plumbline.config.model import BaselineConfig, Config
from plumbline.core.roots import Roots
from plumbline.core.storage_names import CLASS_FILE
from plumbline.daemon.running import World
from plumbline.errors import BaselineError
from plumbline.fleet.classes import class_file
from plumbline.fleet.inventory import Host
from plumbline.fleet.node import FileState, NodeState, Parcel
from plumbline.fleet.recording import Recording, Times
from plumbline.fleet.store import RECORDED, Session, Store, Turn, sha256
from plumbline.fleet.waves import Limits
from plumbline.metrics.guard import ITEM_REASONS
from support.fleet_files import CATALOGUE, node_text


def class_text() -> str:
    site = parse_site(node_text("a", fleet_class="box"), where="a", host=None, catalogue=CATALOGUE)
    when = datetime(2026, 11, 25, tzinfo=UTC)
    return format_record(class_file("box", {"a": site}, when=when, by="ada"), CATALOGUE)


def book(storage: Path, before: Book | None = None) -> Book:
    return load_book(
        BaselineConfig(), where="x", storage=storage, host="a", catalogue=CATALOGUE, targets=(), before=before
    )


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
    host = SimpleNamespace(book=book(tmp_path), baselines=(), parts=SimpleNamespace(fingerprint=Fingerprint))
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
    world = World(None, tmp_path, Roots.under(tmp_path), CATALOGUE, {}, "a")
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


class Answering:
    """A node that has recorded ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def state(self, _host: Host, *, text: bool = False) -> NodeState:
        given = self.text if text else ""
        return NodeState(host="a", version="1", candidate=FileState(sha256=sha256(self.text), text=given))

    def record(self, *_args: object, **_more: object) -> None: ...


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
    recording = Recording(
        store,
        Answering(text),  # type: ignore[arg-type]
        {"a": Host("a")},
        Limits(),
        Times(),
        CATALOGUE,
        threading.Event(),
        lambda _progress: None,
        said.append,
    )
    session = Session(started=0.0, turns={"a": Turn(fleet_class="box")})
    if kept:
        recording.run(session, {"box": 1})
    else:
        with pytest.raises(Exception, match="no node of the wave"):
            recording.run(session, {"box": 1})
        assert said
        assert "\n" not in said[0]
    assert store.names(RECORDED, ".yaml") == (["a"] if kept else [])
