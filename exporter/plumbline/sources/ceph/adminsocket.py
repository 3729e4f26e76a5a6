"""Query Ceph daemons through their admin sockets: many at once, in one thread, within one deadline.

``src/common/admin_socket.cc`` of Ceph: a client connects to a Unix stream socket and sends one command as JSON and a
NUL byte. It receives the length of the answer (4 bytes, big-endian) and the answer; then the daemon closes::

    {"prefix": "perf histogram dump", "format": "json"}\\0   →   00 00 48 6a { "osd": … }

A daemon that hangs either doesn't accept (the backlog fills up: EAGAIN), or accepts and never answers. Neither takes
longer than the deadline, and neither affects the answers of other daemons. The backlog is short (5): when other clients
fill it for a moment, the question is sent again until the deadline.

A daemon that ended leaves its socket behind, whether it was stopped (``osd_fast_shutdown``) or crashed. Then the kernel
refuses the connection at once (ECONNREFUSED), or closes one that was open (ECONNRESET, EPIPE).
"""

from __future__ import annotations

import errno
import json
import os
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import field

from plumbline.core.foreign import decode_json
from plumbline.errors import ParseError, PlumblineError, Unavailable

T = TypeVar("T")

MAX_BYTES = 8 << 20  # a dump of all performance counters is 20 KiB, one of twenty slow operations 100 KiB
AT_ONCE = 32  # limit of open connections: each occupies the daemon's only admin thread, and one of our descriptors
AGAIN_S = 0.1  # delay between attempts to connect to a full backlog
_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_CHUNK = 1 << 16
_ENDED = {
    errno.ECONNREFUSED: "the daemon ended without removing its socket",
    errno.ENOENT: "the daemon is gone",
    errno.ECONNRESET: "the daemon ended before it answered",
    errno.EPIPE: "the daemon ended before it answered",
}
_MOST_BYTES = 107  # sockaddr_un's path (unix(7)) without its final zero


class Question(msgspec.Struct, frozen=True):
    """One command for one socket. ``arguments`` are those of the command (``{"value": 0}``)."""

    path: Path
    prefix: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The name used in errors."""
        return f"{self.path} {self.prefix}"


class NotAllowed(Unavailable):
    """Permission to query is missing, which says nothing about the daemon."""


class Ended(Unavailable):
    """No process listens on the socket."""


class Hung(Unavailable):
    """A process listens, but did not accept or answer before the deadline."""


Answer = bytes | PlumblineError
"""The daemon's JSON, unparsed, or the reason for its absence: :class:`Ended`, :class:`Hung`, :class:`NotAllowed`,
:class:`ParseError` when the reply is malformed, or :class:`Unavailable` when the question was not sent, which says
nothing about the daemon."""


def ask(questions: Sequence[Question], *, timeout_s: float, pids: dict[Path, int] | None = None) -> list[Answer]:
    """An answer to each question, in the same order, after at most ``timeout_s`` seconds.

    ``pids`` takes the process behind each socket that accepts a connection, where this PID namespace has it."""
    pending = deque(enumerate(questions))
    full: list[tuple[int, Question]] = []
    again = 0.0
    answers: list[Answer] = [Unavailable(f"{question.source}: not queried in time") for question in questions]
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        talks: dict[int, _Talk] = {}
        try:
            while True:
                while pending and len(talks) < AT_ONCE:
                    index, question = pending.popleft()
                    try:
                        talk = _Talk(question)
                    except OSError as error:
                        answers[index] = _refused(question, error)
                        if isinstance(error, BlockingIOError):
                            again = again if full else time.monotonic() + AGAIN_S
                            full.append((index, question))
                        continue
                    talks[index] = talk
                    if pids is not None and (pid := talk.pid()):
                        pids[question.path] = pid
                    selector.register(talk.socket, talk.wants, index)
                now = time.monotonic()
                if now >= deadline or not (talks or full):
                    break
                for key, _ in selector.select(max(0.0, min(deadline, again if full else deadline) - now)):
                    index, talk = key.data, talks[key.data]
                    answer = talk.go_on()
                    if answer is None:
                        selector.modify(talk.socket, talk.wants, index)
                        continue
                    answers[index] = answer
                    selector.unregister(talk.socket)
                    talk.socket.close()
                    del talks[index]
                if full and time.monotonic() >= again:
                    pending.extend(full)
                    full.clear()
        finally:
            for index, talk in talks.items():
                answers[index] = Hung(f"{talk.question.source}: no answer within {timeout_s:g} s")
                talk.socket.close()
    return answers


def decode(kind: type[T], data: bytes, *, source: str) -> T:
    """Decode an answer as ``kind``; :class:`ParseError` when it has another form."""
    return decode_json(data, kind, source=source, what="not in the format of this command")


class _Talk:
    """One non-blocking connection."""

    def __init__(self, question: Question) -> None:
        self.question = question
        command = json.dumps({"prefix": question.prefix, **question.arguments, "format": "json"})
        self._unsent = command.encode() + b"\0"
        self._received = bytearray()
        self._step: Callable[[], Answer | None] = self._send
        self.wants = selectors.EVENT_WRITE
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            _connect(self.socket, question.path)
        except BaseException:
            self.socket.close()
            raise

    def pid(self) -> int:
        """The process that listens (``SO_PEERCRED``, unix(7)); 0 where it is in no PID namespace of ours."""
        credentials = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(credentials)[0])

    def go_on(self) -> Answer | None:
        """Take the next step; return the answer once it is complete."""
        try:
            return self._step()
        except BlockingIOError:
            return None
        except OSError as error:
            return _refused(self.question, error)

    def _send(self) -> None:
        self._unsent = self._unsent[self.socket.send(self._unsent) :]
        if not self._unsent:
            self._step, self.wants = self._receive, selectors.EVENT_READ

    def _receive(self) -> Answer | None:
        chunk = self.socket.recv(_CHUNK)
        self._received += chunk
        if len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            if length > MAX_BYTES:
                return ParseError(self.question.source, f"announces {length} bytes; at most {MAX_BYTES} are read")
            if len(self._received) >= _LENGTH.size + length:
                return bytes(self._received[_LENGTH.size : _LENGTH.size + length])
        if not chunk:
            return ParseError(self.question.source, f"ended after {len(self._received)} bytes")
        return None


def _connect(connection: socket.socket, path: Path) -> None:
    """A socket's path has at most :data:`_MOST_BYTES`; where a cluster's directory makes it longer, by the directory's
    descriptor."""
    if len(os.fsencode(path)) <= _MOST_BYTES:
        connection.connect(str(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _refused(question: Question, error: OSError) -> Unavailable:
    if error.errno in (errno.EACCES, errno.EPERM):
        return NotAllowed(f"{question.path}: permission denied; querying it needs write permission, see docs/ceph.md")
    if error.errno == errno.EAGAIN:
        return Hung(f"{question.source}: the daemon hangs: it accepts no connection")
    why = _ENDED.get(error.errno or 0)
    return Ended(f"{question.source}: {why}") if why else Unavailable(f"{question.source}: {error.strerror or error}")


def find_sockets(patterns: Sequence[str]) -> Iterator[Path]:
    """Matching files, sorted per pattern, without duplicates; ``patterns`` are absolute globs."""
    yield from dict.fromkeys(path for pattern in patterns for path in sorted(Path("/").glob(pattern.lstrip("/"))))
