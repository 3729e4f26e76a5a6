"""The worker of a canary at an S3 endpoint: the requests of :mod:`.s3_worker`, one at a time, for ever.

An object goes through put, get, list and delete, a request per arrival; then comes the next object. So every kind is as
frequent as the others, and at most one object of ours exists. When the daemon ends the worker, it removes that object;
what a killed worker left goes at the next start.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable
from random import Random
from typing import TypeAlias

from plumbline.core.jsontext import convert
from plumbline.core.memory import keep_memory_private, limit_memory
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.canary.canary_worker import Operator, operate, read_order, settle, until_refused
from plumbline.probes.canary.memory import PREPARING, RUNNING, WorkerMemory, WorkerStream
from plumbline.probes.object.s3_credentials import open_credentials
from plumbline.probes.object.s3_worker import (
    Client,
    RequestError,
    Task,
    claim_bucket,
    connect,
    most_memory,
    read_credentials,
    sweep,
)

ERRORS = ("4xx", "5xx", "timeout", "connection", "content", "other")
"""Kinds of failed requests: the class of the HTTP status, no answer in time, no connection, another content than was
put (or an object that is not listed)."""
ADVICE = {
    "credentials": "see credentials_file",
    "not-ours": "name a bucket that does not exist yet or is empty",
    "permission": "check the user's keys and its policy",
    "tool-missing": "install plumbline[s3], or on Debian python3-botocore",
    "unreachable": "is the server running, and the network to it up?",
    "versioned": "suspend the bucket's versioning, or name another",
}
"""Every reason for which the worker refuses (a label value), and what an operator can do about it."""
LEAVE_WITHIN_S = 0.7  # the daemon ends a worker that is not gone by then

Act: TypeAlias = Callable[[], None]


def main(argv: list[str]) -> int:
    """Work until ended."""
    keep_memory_private()  # it will hold a key
    order = read_order(argv[1])
    ((memory_fd, _),) = order["targets"]
    memory, task = WorkerMemory(memory_fd), convert(order["task"], Task)
    limit_memory(most_memory(task))
    pause = settle(argv[0], lambda: sys.exit(0))  # which removes the object on the way
    return until_refused(memory, lambda: work(memory, task, pause))


def work(memory: WorkerMemory, task: Task, pause: Callable[[float], None]) -> None:
    """Take the bucket, and operate for ever. Raises :class:`ProbeRefused` if it can't go on."""
    memory.say(PREPARING)
    memory.preparing(time.monotonic_ns())
    try:
        credentials = open_credentials(task.credentials_name, task.ca_file)
        client = connect(task, read_credentials(credentials, task.credentials_name))
        claim_bucket(task, client, make=True)
        sweep(task, client, time.monotonic() + task.timeout_s)
    except ParseError as error:
        raise ProbeRefused("credentials", str(error)) from error
    except RequestError as error:
        raise refused_by(error) from error
    memory.preparing(0)
    memory.say(RUNNING)
    cycle = Cycle(task, client, memory.streams)
    try:
        operate(
            memory,
            cycle.requests,
            Random(),  # noqa: S311
            look=lambda _: None,
            pause=pause,
            choose=cycle.choose,
            errors=ERRORS,
        )
    except RequestFailed as failed:  # many in a row: begin anew, it may be the bucket that is gone
        raise refused_by(failed.error) from failed
    finally:
        cycle.end()


class RequestFailed(OSError):
    """A failed request as :func:`.operate` counts it."""

    def __init__(self, error: RequestError) -> None:
        self.error, self.kind = error, kind_of(error)
        super().__init__(str(error))


class Request(Operator):
    """One kind of request."""

    def __init__(self, stream: WorkerStream, act: Act, get_ready: Act = lambda: None) -> None:
        super().__init__(stream)
        self._act, self._get_ready = act, get_ready

    def get_ready(self) -> None:
        self._get_ready()

    def run(self) -> int:
        try:
            self._act()
        except RequestError as error:
            raise RequestFailed(error) from error
        return self.stream.block_bytes


class Cycle:
    """One object after the other: put, get, list, delete."""

    def __init__(self, task: Task, client: Client, streams: list[WorkerStream]) -> None:
        self._task, self._client = task, client
        self._number, self._key, self._content, self._digest = 0, "", b"", b""
        # what the worker before this one, or another host of the same name, put late is no content of ours
        self._token = os.urandom(4).hex()
        put, get, names, delete = streams
        self.requests = [
            Request(put, self._put, self._next_object),
            Request(get, self._get),
            Request(names, self._list),
            Request(delete, self._delete),
        ]
        self._current = len(self.requests) - 1

    def choose(self) -> Request:
        """A put and a delete are repeated until they succeed."""
        current = self.requests[self._current]
        if not (current.failures and self._current in (0, len(self.requests) - 1)):
            self._current = (self._current + 1) % len(self.requests)
        return self.requests[self._current]

    def end(self) -> None:
        """Remove the object, if the server answers at once."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        self._client.request_timeout_s = LEAVE_WITHIN_S
        if self._key:
            with contextlib.suppress(RequestError):
                self._client.ask("delete_object", Key=self._key)

    def _next_object(self) -> None:
        if self._key:
            return  # once more the same: a put that timed out may still arrive, even after the one that succeeds
        self._number = (self._number + 1) % 1_000_000
        self._key = f"{self._task.prefix}{self._token}-{self._number:06d}"
        self._content = os.urandom(self._task.object_size)
        self._digest = hashlib.sha256(self._content).digest()

    def _put(self) -> None:
        self._client.ask("put_object", Key=self._key, Body=self._content)

    def _get(self) -> None:
        if hashlib.sha256(self._client.read(self._key, self._task.object_size)).digest() != self._digest:
            raise self._wrong("its content is not what was put")

    def _list(self) -> None:
        if self._key not in self._client.names(self._task.prefix):
            raise self._wrong("is not listed after it was put")

    def _delete(self) -> None:
        self._client.ask("delete_object", Key=self._key)
        self._key = ""

    def _wrong(self, what: str) -> RequestError:
        return RequestError(f"{self._task.endpoint}: {self._task.bucket}/{self._key}: {what}", code=WRONG)


WRONG = "content"


def kind_of(error: RequestError) -> str:
    """One of :data:`ERRORS`."""
    if error.timeout:
        return "timeout"
    if error.code == WRONG:
        return "content"
    if error.status:
        return f"{error.status // 100}xx"  # 3xx and others: other
    return "connection"


def refused_by(error: RequestError) -> ProbeRefused:
    reason = "permission" if kind_of(error) == "4xx" else "unreachable"
    return ProbeRefused(reason, f"{error}; {ADVICE[reason]}")
