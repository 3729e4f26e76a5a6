"""Admin sockets: many at once, and those that don't answer cost the deadline and nothing else."""

import os
import socket
import struct
import threading
import time

import pytest

from plumbline.errors import ParseError, Unavailable
from plumbline.sources.ceph.adminsocket import MAX_BYTES, Question, ask, find_sockets
from support.admin_sockets import Garbled, serving
from support.descriptors import open_descriptors


@pytest.fixture
def folder(tmp_path):
    """Below a name longer than a socket's address may be."""
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    return deep


@pytest.fixture
def short(tmp_path_factory):
    return tmp_path_factory.mktemp("s")


def test_each_gets_its_own_answer_in_order(short):
    a, b = short / "a", short / "b"
    with serving(a, {"version": b'"16"', "status": b'"active"'}) as server, serving(b, {"version": b'"17"'}):
        questions = [Question(b, "version"), Question(a, "status"), Question(a, "version")]
        assert ask(questions, timeout_s=30) == [b'"17"', b'"active"', b'"16"']
    assert {"prefix": "status", "format": "json"} in server.asked


def test_arguments_go_with_the_command(short):
    with serving(short / "a", {}) as server:
        ask([Question(short / "a", "dump_osd_network", {"value": 0})], timeout_s=30)
    assert server.asked == [{"prefix": "dump_osd_network", "value": 0, "format": "json"}]


def test_more_questions_than_connections_at_once(short):
    with serving(short / "a", {"version": b"1"}):
        assert ask([Question(short / "a", "version")] * 200, timeout_s=60) == [b"1"] * 200


def test_a_path_longer_than_a_sockets_address(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with serving(os.path.relpath(folder / "osd.asok"), {"version": b"1"}):
        assert len(str(folder / "osd.asok")) > 107
        assert ask([Question(folder / "osd.asok", "version")], timeout_s=30) == [b"1"]


@pytest.mark.parametrize("length", [106, 107, 108])
def test_a_path_about_as_long_as_a_sockets_address(length, short, monkeypatch):
    path = short / ("x" * (length - len(f"{short}/")))
    monkeypatch.chdir(short)
    with serving(path.name, {"version": b"1"}):
        assert ask([Question(path, "version")], timeout_s=30) == [b"1"]


def test_a_big_answer_comes_whole(short):
    text = b'"' + b"x" * 3_000_000 + b'"'
    with serving(short / "a", {"dump": text}):
        assert ask([Question(short / "a", "dump")], timeout_s=60) == [text]


def test_one_that_never_answers_costs_the_deadline_and_no_other_its_answer(short):
    with serving(short / "hangs", {}, silent=True), serving(short / "works", {"version": b"1"}):
        began = time.monotonic()
        hung, answer = ask([Question(short / "hangs", "version"), Question(short / "works", "version")], timeout_s=1)
        assert 0.9 < time.monotonic() - began < 30
    assert isinstance(hung, Unavailable)
    assert "no answer within 1 s" in str(hung)
    assert answer == b"1"


def test_one_that_accepts_nothing(short):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as full:
        full.bind(str(short / "a"))
        full.listen(0)
        answers = ask([Question(short / "a", "version")] * 8, timeout_s=0.5)
    said = {str(each).split(": ", 1)[1] for each in answers}
    assert said == {"the daemon hangs: it accepts no connection", "no answer within 0.5 s"}


def test_a_backlog_that_is_full_for_a_moment_costs_no_answer(short):
    """Ceph's own is 5: the ceph-exporter and a person ask as well."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as busy:
        busy.bind(str(short / "a"))
        busy.listen(0)

        def serve():
            time.sleep(0.5)
            for _ in range(8):
                with busy.accept()[0] as client:
                    client.recv(4096)
                    client.sendall(struct.pack(">I", 1) + b"1")

        answering = threading.Thread(target=serve, daemon=True)
        answering.start()
        answers = ask([Question(short / "a", "version")] * 8, timeout_s=60)
        assert answers == [b"1"] * 8
        answering.join()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "the daemon is gone"),
        (lambda path: socket.socket(socket.AF_UNIX).bind(str(path)), "ended without removing its socket"),
        (lambda path: path.write_text("no socket"), "ended without removing its socket"),
    ],
)
def test_nobody_there(short, make, why):
    make(short / "a")
    (answer,) = ask([Question(short / "a", "version")], timeout_s=5)
    assert isinstance(answer, Unavailable)
    assert why in str(answer)


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (b"", "ended after 0 bytes"),
        (b"\0\0", "ended after 2 bytes"),
        (struct.pack(">I", 10) + b"{}", "ended after 6 bytes"),
        (struct.pack(">I", MAX_BYTES + 1), "at most"),
    ],
)
def test_what_is_no_answer(short, wire, why):
    server = Garbled(short / "a", {"version": wire})
    try:
        (answer,) = ask([Question(short / "a", "version")], timeout_s=30)
    finally:
        server.close()
    assert isinstance(answer, ParseError)
    assert why in str(answer)


def test_no_descriptor_is_left_open(short):
    with serving(short / "hangs", {}, silent=True), serving(short / "works", {"version": b"1"}):
        ask([Question(short / "works", "version")], timeout_s=30)
        before = open_descriptors()
        for _ in range(3):
            ask([Question(short / name, "version") for name in ("hangs", "works", "none")], timeout_s=0.3)
        # the server's side of the silent one stays open: three times one question
        assert open_descriptors() <= before + 3


def test_sockets_are_found_once_and_in_order(tmp_path):
    for name in ("ceph-osd.1.asok", "ceph-osd.0.asok", "ceph-mon.a.asok"):
        (tmp_path / name).touch()
    patterns = [f"{tmp_path}/*-osd.*.asok", f"{tmp_path}/ceph-osd.1.asok", f"{tmp_path}/no/*"]
    assert [path.name for path in find_sockets(patterns)] == ["ceph-osd.0.asok", "ceph-osd.1.asok"]
