"""Questions that are never answered hold nobody, and files that people name are read to their end or refused."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core.answers import ThreadedCall, ask_in_time, in_memory, read_named, stat_named
from support.daemon import eventually

SOON_S = 30.0
"""Far below for ever, far above what a busy machine takes."""


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    (tmp_path / "link").symlink_to("file")
    assert read_named(tmp_path / "link", 3_000_000) == b"x" * 3_000_000
    assert stat_named(tmp_path / "link").st_size == 3_000_000
    assert read_named("/proc/self/comm", 100).strip(), "a file without a size, too"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def socket_file(path: Path) -> None:
    os.mknod(path, 0o140600)


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "fifo": (fifo, "not a regular file"),
    "socket": (socket_file, "not a regular file"),
    "directory": (Path.mkdir, "Is a directory"),
    "endless device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "terminal": (lambda path: path.symlink_to("/dev/ptmx"), "not a regular file"),
    "missing": (lambda _path: None, "No such file or directory"),
    "loop of links": (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
    "huge": (lambda path: path.write_bytes(b"x" * 101), "is longer than 100 bytes"),
    "huge and sparse": (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40), "is longer than"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_readable_file_is_refused_in_a_few_words(tmp_path: Path, kind: str) -> None:
    make, words = KINDS[kind]
    make(tmp_path / "it")
    with pytest.raises(OSError, match=words) as refused:
        read_named(tmp_path / "it", 100)
    assert words in (refused.value.strerror or "")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_file_can_have(name: str) -> None:
    with pytest.raises(OSError, match="no file can have this name"):
        read_named(name, 100)
    with pytest.raises(OSError, match="no file can have this name"):
        stat_named(name)


def test_no_answer_in_time_and_one_thread_is_left_behind() -> None:
    going, answered = threading.Event(), threading.Event()
    before = set(threading.enumerate())  # one of an earlier test may end meanwhile

    def hang() -> str:
        going.wait(SOON_S)
        answered.set()
        return "late"

    late: list[str] = []
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        ask_in_time("/some/file", hang, 0.05, late=late.append)
    for _ in range(20):
        with pytest.raises(TimeoutError, match="still no answer"):
            ask_in_time("/some/file", hang, 3600.0)
    (left,) = set(threading.enumerate()) - before
    assert ask_in_time("/another/file", lambda: 7, SOON_S) == 7
    going.set()
    eventually(lambda: not left.is_alive())
    assert answered.is_set()
    assert late == ["late"], "what nobody waits for can be put away"
    assert ask_in_time("/some/file", lambda: 8, SOON_S) == 8


def test_what_a_question_raises_is_raised() -> None:
    def fail() -> None:
        raise ZeroDivisionError("x")

    with pytest.raises(ZeroDivisionError):
        ask_in_time("/some/file", fail)


def test_beside_the_asker() -> None:
    ready, going = threading.Event(), threading.Event()
    threaded = ThreadedCall[int](ready.set)
    assert threaded.idle
    threaded.ask(lambda: 7 if going.wait(SOON_S) else 0, name="seven")
    assert (threaded.idle, threaded.fetch()) == (False, None)
    going.set()
    assert ready.wait(SOON_S)
    found: list[int] = []
    eventually(lambda: found.append(answer) or True if (answer := threaded.fetch()) else False)
    assert found == [7]
    assert threaded.idle


def test_what_fails_beside_fails_where_it_is_fetched() -> None:
    threaded = ThreadedCall[int](lambda: None)
    threaded.ask(lambda: 1 // 0, name="fail")

    def fetched() -> bool:
        try:
            threaded.fetch()
        except ZeroDivisionError:
            return True
        return False

    eventually(fetched)
    assert threaded.idle


def test_a_path_for_what_is_in_memory() -> None:
    with in_memory(b"abc") as path:
        assert Path(path).read_bytes() == b"abc"
        assert Path(path).read_bytes() == b"abc", "each opening begins at the start"
