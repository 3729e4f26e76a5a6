"""Buckets that hosts take at once or that keep versions, puts that arrive late, and addresses that are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from plumbline.errors import ProbeRefused
from plumbline.probes.object.s3_canary_worker import Cycle, RequestFailed
from plumbline.probes.object.s3_credentials import Credentials
from plumbline.probes.object.s3_worker import RequestError, Task, claim_bucket, connect
from plumbline.probes.run.guard import MARKER, MARKER_TEXT

TASK = Task(
    endpoint="http://s3", bucket="probe", prefix="plumbline-probe/stor01/s3/", region="default", ca_file=None,
    credentials_name="keys", object_size=4096, request_timeout_s=1.0, timeout_s=1.0,
)  # fmt: skip
MISSING = RequestError("no such bucket", code="404", status=404)


class Bucket:
    """Answers requests from memory. ``before``: what happens before a request's answer, once."""

    def __init__(self, **objects: bytes) -> None:
        self.objects = dict(objects)
        self.before: dict[str, Callable[[], None]] = {}
        self.puts: list[tuple[str, bytes]] = []

    def ask(self, operation: str, **arguments: Any) -> Any:
        if operation in self.before:
            self.before.pop(operation)()
        if operation == "put_object":
            self.puts.append((arguments["Key"], arguments["Body"]))
            self.objects[arguments["Key"]] = arguments["Body"]
        if operation == "delete_object":
            self.objects.pop(arguments["Key"], None)
        return {"Contents": [{"Key": key} for key in self.objects]} if operation == "list_objects_v2" else {}

    def read(self, key: str, _size: int) -> bytes:
        if key not in self.objects:
            raise RequestError(f"no {key}", code="NoSuchKey", status=404)
        return self.objects[key]

    def names(self, prefix: str) -> list[str]:
        return [key for key in self.objects if key.startswith(prefix)]


def failing(error: RequestError) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def take(bucket: Bucket) -> bool:
    return claim_bucket(TASK, bucket, make=True)  # type: ignore[arg-type]


def test_another_host_marks_the_empty_bucket_meanwhile() -> None:
    bucket = Bucket()
    bucket.before["list_objects_v2"] = lambda: bucket.objects.update({MARKER: MARKER_TEXT, "plumbline-probe/x": b"x"})
    assert take(bucket)
    assert not bucket.puts


def test_another_host_makes_the_bucket_meanwhile() -> None:
    bucket = Bucket()
    bucket.before["head_bucket"] = failing(MISSING)
    bucket.before["create_bucket"] = failing(RequestError("yours", code="BucketAlreadyOwnedByYou", status=409))
    assert take(bucket)
    assert bucket.puts == [(MARKER, MARKER_TEXT)]


def test_a_bucket_of_somebody_else() -> None:
    with pytest.raises(ProbeRefused, match="holds objects but no") as refusal:
        take(Bucket(letter=b"words"))
    assert refusal.value.reason == "not-ours"
    taken = Bucket()
    taken.before["head_bucket"] = failing(MISSING)
    taken.before["create_bucket"] = failing(RequestError("theirs", code="BucketAlreadyExists", status=409))
    with pytest.raises(RequestError, match="theirs"):
        take(taken)


@pytest.mark.parametrize(("status", "known"), [(403, True), (500, True), (0, True), (501, False), (405, False)])
def test_whether_every_version_is_kept_has_to_be_known(status: int, known: bool) -> None:
    """A canary puts 40,000 objects a day."""
    bucket = Bucket(**{MARKER: MARKER_TEXT})
    bucket.before["get_bucket_versioning"] = failing(RequestError("no answer", status=status))
    if known:
        with pytest.raises(RequestError, match="no answer"):
            take(bucket)
    else:
        assert take(bucket)


@pytest.mark.parametrize(
    ("changes", "says"), [({"endpoint": "http://s3..example"}, "http://s3..example: "), ({"region": "a b"}, "region")]
)
def test_what_can_be_no_address_is_said(changes: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    awsrequest = pytest.importorskip("botocore.awsrequest")
    # what a worker changes for itself alone
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr("botocore.awsrequest.AWSResponse", awsrequest.AWSResponse)
    with pytest.raises(RequestError, match="see endpoint, region") as error:
        connect(msgspec.structs.replace(TASK, **changes), Credentials("AKIA", "secret"))
    assert says in str(error.value)
    assert "secret" not in str(error.value)


def cycle(bucket: Bucket) -> Cycle:
    streams = [SimpleNamespace(block_bytes=TASK.object_size) for _ in range(4)]
    return Cycle(TASK, bucket, streams)  # type: ignore[arg-type]


def step(which: Cycle) -> None:
    """As :func:`.operate` does."""
    request = which.choose()
    request.get_ready()
    try:
        request.run()
        request.failures = 0
    except RequestFailed:
        request.failures += 1


def test_a_put_that_timed_out_may_arrive_after_the_next() -> None:
    bucket = Bucket()
    which = cycle(bucket)
    bucket.before["put_object"] = failing(RequestError("late", timeout=True))
    late: list[tuple[str, bytes]] = []
    ask = bucket.ask

    def noted(operation: str, **arguments: Any) -> Any:
        if operation == "put_object":
            late.append((arguments["Key"], arguments["Body"]))
        return ask(operation, **arguments)

    bucket.ask = noted  # type: ignore[method-assign]
    step(which)
    assert not bucket.objects
    step(which)
    bucket.objects.update([late[0]])  # the first arrives
    for _ in range(3):
        step(which)
    assert not [request.failures for request in which.requests if request.failures]
    assert not bucket.objects


def test_two_daemons_of_one_name_do_not_read_each_others_objects() -> None:
    bucket = Bucket()
    first, second = cycle(bucket), cycle(bucket)
    for which in (first, second, first, second, first, second, first, second):
        step(which)
    assert not [request.failures for each in (first, second) for request in each.requests if request.failures]
    assert len({key for key, _ in bucket.puts}) == 2
    assert not bucket.objects
