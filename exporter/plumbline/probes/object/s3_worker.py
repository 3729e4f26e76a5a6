"""Requests to an S3 endpoint, in a separate process: the client library is big, and a server may never answer.

``main([task])`` takes a JSON :class:`Task` and prints a JSON :data:`Answer`. The keys come through an inherited
descriptor of their file; they appear in no argument, environment or message. The library is botocore: Ceph tests its
own gateway with it, it is released every week, and it supports path-style addresses, signature version 4 and private
certificates. https://botocore.amazonaws.com/v1/documentation/api/latest/index.html
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from plumbline.core.foreign import decode_json
from plumbline.core.memory import keep_memory_private, limit_memory
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.object.s3_credentials import MAX_BYTES, Credentials, parse_credentials
from plumbline.probes.run.child_task import Failed, Refused, Timed
from plumbline.probes.run.guard import MARKER, MARKER_TEXT

SWEEP_MAX = 10_000  # Leftovers removed in one go; a run leaves one at most
BODY_MAX_BYTES = 4 << 20
"""Limit for an answer other than an object; a listing of a thousand keys of maximum length is smaller."""
MEMORY_MAX_BYTES = 512 << 20  # Five times what this process needs, not counting its objects
_COPIES = 8  # of an object: the one put, the one read, the library's own
_SWEEP_PAGE = 1000  # what S3 lists and deletes at once
_NOT_THERE = frozenset({"404", "NoSuchBucket", "NoSuchKey", "NotFound"})
_JUST_MADE = "BucketAlreadyOwnedByYou"  # by another host of ours
_UNKNOWN_REQUEST = frozenset({400, 404, 405, 501})  # how servers without versions of objects answer when asked for them
_DENIED = "does the user have this permission? Check its keys and its policy"
_BY_CODE = {
    "AccessDenied": _DENIED,
    "403": _DENIED,
    "InvalidAccessKeyId": "the server does not know the access key",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key",
    "RequestTimeTooSkewed": "the clocks differ too much",
    "TooManyBuckets": "this user has reached its limit of buckets; create the bucket by hand",
    "QuotaExceeded": "the quota of the user or the bucket is exhausted",
}

_ENDLESS = f"the answer is longer than {BODY_MAX_BYTES >> 20} MiB; is this an S3 server?"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """``operations`` of each kind below ``prefix``; 0: only remove leftovers. ``credentials_fd`` is the file that
    ``credentials_name`` names, already open."""

    endpoint: str
    bucket: str
    prefix: str
    region: str
    ca_file: str | None
    credentials_name: str
    object_size: int
    credentials_fd: int = -1
    operations: int = 0
    request_timeout_s: float
    timeout_s: float


Answer: TypeAlias = Timed | Refused | Failed


class RequestError(Exception):
    """A failed request; ``code`` and ``status`` are the server's, empty and 0 without an answer."""

    def __init__(self, message: str, *, code: str = "", status: int = 0, timeout: bool = False) -> None:
        self.code, self.status, self.timeout = code, status, timeout
        super().__init__(message)


def main(argv: list[str]) -> int:
    keep_memory_private()  # it will hold a key
    task = decode_json(argv[0], Task, source="the task")
    limit_memory(most_memory(task))
    answer: Answer
    try:
        answer = work(task, connect(task, read_credentials(task.credentials_fd, task.credentials_name)))
    except ParseError as error:
        answer = Refused("credentials", str(error))
    except ProbeRefused as refusal:
        answer = Refused(refusal.reason, str(refusal))
    except RequestError as error:
        answer = Failed(str(error), timeout=error.timeout)
    except MemoryError:
        answer = Failed(f"{task.endpoint}: its answer does not fit in memory; is this an S3 server?")
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


def most_memory(task: Task) -> int:
    """Bytes that this process may use."""
    return MEMORY_MAX_BYTES + _COPIES * task.object_size


def read_credentials(fd: int, name: str) -> Credentials:
    with os.fdopen(fd, "rb") as file:
        return parse_credentials(file.read(MAX_BYTES).decode("utf-8", "replace"), source=name)


def connect(task: Task, credentials: Credentials) -> Client:
    """A client that takes keys, settings and proxy from nowhere else, and never retries. :class:`ProbeRefused` without
    the library, :class:`RequestError` for an address that can't be one."""
    os.environ |= {  # for this process only: files in a home directory must not change the experiment
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "*",
    }
    try:
        import botocore  # noqa: PLC0415
        from botocore import awsrequest  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415
        from botocore.session import Session  # noqa: PLC0415
    except ImportError as error:
        raise ProbeRefused(
            "tool-missing", "botocore is not installed; install plumbline[s3], or the package python3-botocore"
        ) from error
    awsrequest.AWSResponse = _bounded(awsrequest.AWSResponse)  # the class whose body the HTTP layer reads whole
    settings = Config(
        signature_version="s3v4",
        connect_timeout=task.request_timeout_s,
        read_timeout=task.request_timeout_s,
        retries={"total_max_attempts": 1},
        proxies={},
        s3={"addressing_style": "path"},
        # checksums beyond the signature's are Amazon's alone since 2025: other servers refuse them
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        max_pool_connections=1,
    )
    try:
        client = Session().create_client(
            "s3",
            region_name=task.region,
            endpoint_url=task.endpoint.rstrip("/"),
            aws_access_key_id=credentials.access_key,
            aws_secret_access_key=credentials.secret_key,
            verify=task.ca_file or True,
            config=settings,
        )
    except ValueError:  # a region or host with two dots in a row
        raise RequestError(f"{task.endpoint}: no valid host name, or no valid region; see endpoint, region") from None
    return Client(client, task, botocore.__version__)


class _TooLong(Exception):
    """An answer longer than the limit."""


class _TooSlow(BaseException):
    """A request longer than its timeout. No :class:`Exception`: the library would turn it into one of its own."""


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise :class:`_TooSlow` when the time is over. The library only bounds the wait for each piece of an answer: a
    server that sends a byte a second would hold it for ever."""

    def expired(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, expired)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _bounded(response: Any) -> Any:
    """The library's response class, with a body that raises :class:`_TooLong` beyond the limit."""

    class Bounded(response):  # type: ignore[misc]
        _content: bytes | None

        @property
        def content(self) -> bytes:
            if self._content is None:
                parts, length = [], 0
                for part in self.raw.stream(1 << 16):
                    parts.append(part)
                    length += len(part)
                    if length > BODY_MAX_BYTES:
                        self.raw.close()
                        raise _TooLong
                self._content = b"".join(parts)
            return self._content

    return Bounded


class Client:
    """The few requests we need; every error becomes a :class:`RequestError` with our own message."""

    def __init__(self, client: Any, task: Task, version: str) -> None:
        self._client, self._task, self.version = client, task, version
        self.request_timeout_s = task.request_timeout_s

    def ask(self, operation: str, **arguments: Any) -> Any:
        """One request on our bucket; ``operation`` is botocore's name (``put_object``)."""
        try:
            with _within(self.request_timeout_s):
                return self._ask(operation, arguments)
        except _TooSlow:
            raise self._late(operation) from None

    def _ask(self, operation: str, arguments: dict[str, Any]) -> Any:
        from botocore import exceptions  # noqa: PLC0415

        try:
            return getattr(self._client, operation)(Bucket=self._task.bucket, **arguments)
        except exceptions.ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
            code = str(error.response.get("Error", {}).get("Code") or status)[:60]
            advice = f"; {_BY_CODE[code]}" if code in _BY_CODE else ""
            what = f"{code} (HTTP {status}){advice}"
            raise self._error(operation, what, code=code, status=int(status or 0)) from None
        except (exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError):
            raise self._late(operation) from None
        except exceptions.SSLError:
            raise self._error(operation, "its certificate is not trusted; name the issuer in ca_file") from None
        except exceptions.EndpointConnectionError:
            raise self._error(operation, "connection failed; is the server running, and the name right?") from None
        except _TooLong:
            raise self._error(operation, _ENDLESS) from None
        except (exceptions.BotoCoreError, exceptions.HTTPClientError, OSError) as error:
            if isinstance(getattr(error, "kwargs", {}).get("error"), _TooLong):
                raise self._error(operation, _ENDLESS) from None
            # without its text, which may contain anything
            raise self._error(operation, f"the request failed ({type(error).__name__})") from None

    def read(self, key: str, size: int) -> bytes:
        """The object, cut off at ``size`` + 1 bytes."""
        try:
            with _within(self.request_timeout_s):
                return self._read(key, size)
        except _TooSlow:
            raise self._late("get_object") from None

    def _read(self, key: str, size: int) -> bytes:
        from botocore import exceptions  # noqa: PLC0415

        body = self._ask("get_object", {"Key": key})["Body"]
        try:
            return bytes(body.read(size + 1))
        except exceptions.ReadTimeoutError:
            raise self._late("get_object") from None
        except (exceptions.BotoCoreError, exceptions.HTTPClientError, OSError) as error:
            raise self._error("get_object", f"the transfer broke off ({type(error).__name__})") from None
        finally:
            body.close()

    def names(self, prefix: str) -> list[str]:
        """The first keys below ``prefix``, in one request."""
        page = self.ask("list_objects_v2", Prefix=prefix, MaxKeys=_SWEEP_PAGE)
        return [item["Key"] for item in page.get("Contents", ()) if item["Key"].startswith(prefix)]

    def _late(self, operation: str) -> RequestError:
        return self._error(operation, f"no answer, or not all of it, within {self.request_timeout_s:g} s", timeout=True)

    def _error(
        self, operation: str, message: str, *, code: str = "", status: int = 0, timeout: bool = False
    ) -> RequestError:
        what = operation.replace("_", " ")
        return RequestError(f"{self._task.endpoint}: {what}: {message}", code=code, status=status, timeout=timeout)


def work(task: Task, client: Client) -> Timed:
    """Create or check the bucket, remove an earlier run's leftovers, then measure."""
    deadline = time.monotonic() + task.timeout_s
    spent: dict[str, list[int]] = {"put": [], "get": [], "list": [], "delete": []}
    if claim_bucket(task, client, make=task.operations > 0):
        sweep(task, client, deadline)
        for number in range(task.operations):
            if time.monotonic() > deadline:
                raise RequestError(
                    f"only {number} of {task.operations} objects within the timeout; raise it", timeout=True
                )
            measure(task, client, f"{task.prefix}{number:06d}", spent)
    return Timed({name: tuple(ns) for name, ns in spent.items()}, client.version)


def measure(task: Task, client: Client, key: str, spent: dict[str, list[int]]) -> None:
    """Put, get, list and delete one object; it is removed even after a failure."""
    content = os.urandom(task.object_size)
    digest = hashlib.sha256(content).digest()

    def timed(name: str, act: Callable[[], Any]) -> Any:
        started = time.perf_counter_ns()
        result = act()
        spent[name].append(time.perf_counter_ns() - started)
        return result

    try:
        timed("put", lambda: client.ask("put_object", Key=key, Body=content))
        if hashlib.sha256(timed("get", lambda: client.read(key, task.object_size))).digest() != digest:
            raise RequestError(f"{task.endpoint}: {task.bucket}/{key}: its content is not what was put")
        if key not in timed("list", lambda: client.names(task.prefix)):
            raise RequestError(f"{task.endpoint}: {task.bucket}/{key}: is not listed after it was put")
    except RequestError:
        with contextlib.suppress(RequestError):  # the first error is the one to report
            client.ask("delete_object", Key=key)
        raise
    timed("delete", lambda: client.ask("delete_object", Key=key))


def claim_bucket(task: Task, client: Client, *, make: bool) -> bool:
    """Whether there is a bucket that we may write to: created by us, or found empty, and marked. Raises
    :class:`ProbeRefused`: ``not-ours`` for a bucket with objects but no marker, ``versioned`` for one that keeps every
    version. :class:`RequestError`, also if it can't be learnt whether it does."""
    where = f"{task.endpoint}: bucket {task.bucket}"
    try:
        client.ask("head_bucket")
    except RequestError as error:
        if error.code not in _NOT_THERE:
            raise
        if not make:
            return False
        try:
            client.ask("create_bucket")
        except RequestError as taken:
            if taken.code != _JUST_MADE:
                raise
    marker = _marker(client)
    if marker is None and client.ask("list_objects_v2", MaxKeys=1).get("Contents"):
        marker = _marker(client)  # another host may have put it just now
        if marker is None:
            advice = "name one that does not exist yet or is empty"
            raise ProbeRefused("not-ours", f"{where} holds objects but no {MARKER}; {advice}")
    if marker is None:
        if not make:
            return False
        client.ask("put_object", Key=MARKER, Body=MARKER_TEXT)
    elif marker != MARKER_TEXT:
        raise ProbeRefused("not-ours", f"{where}: its {MARKER} is not ours; name another bucket")
    if _keeps_versions(client):
        raise ProbeRefused(
            "versioned", f"{where} keeps old versions of objects; suspend its versioning, or name another"
        )
    return True


def _keeps_versions(client: Client) -> bool:
    """Whether every object ever put is kept. :class:`RequestError` if that can't be learnt."""
    try:
        return bool(client.ask("get_bucket_versioning").get("Status") == "Enabled")
    except RequestError as error:
        if error.status not in _UNKNOWN_REQUEST:
            raise
        return False


def _marker(client: Client) -> bytes | None:
    """The content of the bucket's marker; ``None`` if it has none."""
    try:
        return client.read(MARKER, len(MARKER_TEXT))
    except RequestError as error:
        if error.code not in _NOT_THERE:
            raise
        return None


def sweep(task: Task, client: Client, deadline: float) -> None:
    for key in _keys(task, client):
        if time.monotonic() > deadline:
            message = "removing an earlier run's objects took all the time; the next run continues"
            raise RequestError(message, timeout=True)
        client.ask("delete_object", Key=key)


def _keys(task: Task, client: Client) -> Iterator[str]:
    for _ in range(SWEEP_MAX // _SWEEP_PAGE):
        keys = client.names(task.prefix)
        if not keys:
            return
        yield from keys
