"""The few questions that a claim of a volume asks the API server of Kubernetes, from inside a pod.

https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ says where address, token and certificate are;
https://kubernetes.io/docs/reference/kubernetes-api/ has the objects, of which only what is used here is read.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from plumbline.claims.claim_file import KUBERNETES_VERSION
from plumbline.core.answers import in_memory
from plumbline.core.foreign import Limits, decode_json, one_line
from plumbline.core.keyfiles import read_anchor, read_secret
from plumbline.errors import ConfigError, ParseError, PlumblineError
from plumbline.sources.http import NO_ANSWER, exchange, why
from plumbline.sources.prometheus.access import Access

MAX_BYTES = 4 << 20  # An object has 1.5 MiB at most; a list of a few hundred events of one object is smaller
ANSWER_WITHIN_S = 10.0
_LIMITS = Limits(MAX_BYTES)
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LONGEST_NAME = 253
_BAD_REQUEST = 400  # to ask again would not help
_CAN_PASS = frozenset({0, 429, 500, 502, 503, 504})  # 0: no answer

T = TypeVar("T")


class ApiError(PlumblineError):
    """The API server refused, or did not answer (``status`` 0)."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message)

    @property
    def can_pass(self) -> bool:
        """Whether the same question may be answered a moment later."""
        return self.status in _CAN_PASS


class Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] = {}


class _Terminated(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class _Waiting(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct, frozen=True):
    waiting: _Waiting | None = None
    running: dict[str, Any] | None = None
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, frozen=True):
    state: _State = _State()


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def state(self) -> _State:
        """Of its only container."""
        return self.status.container_statuses[0].state if self.status.container_statuses else _State()


class Pods(msgspec.Struct, frozen=True):
    items: tuple[Pod, ...] = ()


class _ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    storage_class_name: str = ""


class _ClaimStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class Claim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: Metadata = Metadata()
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    last_observed_time: str | None = None


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """What a part of Kubernetes said of an object: the scheduler in `events.k8s.io`'s form, others in the older one."""

    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None

    @property
    def last(self) -> str:
        """When it was said last, in RFC 3339, to the second: finer only in one of the forms."""
        return ((self.series and self.series.last_observed_time) or self.last_timestamp or self.event_time or "")[:19]


class Events(msgspec.Struct, frozen=True):
    items: tuple[Event, ...] = ()


class PodTemplate(msgspec.Struct, frozen=True):
    """``template`` as it is: a pod is made of it."""

    template: dict[str, Any]


class Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


def parse(data: bytes, kind: type[T], *, source: str) -> T:
    """An object of the API; :class:`ParseError` if it is none."""
    return decode_json(data, kind, source=source, limits=_LIMITS, what="not an answer of Kubernetes")


def path_of(namespace: str, kind: str, name: str | None = None) -> str:
    """The path of one object, or of all of its kind; it can't leave the namespace. :class:`ApiError` for a name that no
    object can have: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""
    parts = [namespace, kind] if name is None else [namespace, kind, name]
    for part in parts:
        if len(part) > _LONGEST_NAME or not _NAME.fullmatch(part):
            raise ApiError(f"{kind}: {one_line(part)!r} is not a name of Kubernetes; nothing was asked", _BAD_REQUEST)
    return "/api/v1/namespaces/" + "/".join(quote(part, safe="") for part in parts)


class Api:
    """One namespace, as seen with the token of this pod. The token is read anew each time: Kubernetes renews it."""

    def __init__(self, environment: Mapping[str, str], namespace: str, account: Path) -> None:
        """:class:`ConfigError` outside a pod, or in one without a token."""
        host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port.isascii() or not port.isdigit():
            raise ConfigError("KUBERNETES_SERVICE_HOST", "is not set; this command runs in a pod of Kubernetes")
        self._server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        self._namespace, self._token = namespace, account / "token"
        try:
            with in_memory(read_anchor(account / "ca.crt", MAX_BYTES)) as issuers:
                self._context = ssl.create_default_context(cafile=issuers)
            self._authorization()
        except (OSError, ValueError) as error:
            raise ConfigError(str(account), f"has no token: {error}; see automountServiceAccountToken") from None

    def ask(
        self,
        method: str,
        what: str,
        kind: type[T],
        *,
        name: str | None = None,
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> T:
        """``what``: ``pods``; ``name``: one of them. Raises :class:`ApiError`, for a name that can't be one, too."""
        return self._ask(method, path_of(self._namespace, what, name), kind, body, query)

    def version(self) -> str:
        """As the server says it; empty if it does not, or says something else than a version."""
        try:
            version = self._ask("GET", "/version", Version, None, None).git_version
        except ApiError:
            return ""
        return version if KUBERNETES_VERSION.fullmatch(version) else ""

    def _authorization(self) -> str:
        return f"Bearer {read_secret(self._token, MAX_BYTES).decode('ascii').strip()}"

    def _ask(self, method: str, path: str, kind: type[T], body: object, query: Mapping[str, str] | None) -> T:
        where = f"{method} {path}"
        url = f"{self._server}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            access = Access(self._authorization(), self._context)
            page = exchange(
                url,
                None if body is None else msgspec.json.encode(body),
                timeout_s=ANSWER_WITHIN_S,
                access=access,
                max_bytes=MAX_BYTES + 1,
                proxies=False,
                method=method,
                content_type="application/json",
            )
        except NO_ANSWER as error:
            raise ApiError(f"{where}: {why(error)}") from error
        try:
            if page.status >= 300:
                refused = parse(page.body, _Status, source=where).message
                raise ApiError(f"{where}: HTTP {page.status}: {one_line(refused or page.reason)}", page.status)
            if len(page.body) > MAX_BYTES:
                raise ApiError(f"{where}: the answer has more than {MAX_BYTES} bytes", page.status)
            return parse(page.body, kind, source=where)
        except ParseError as error:
            raise ApiError(str(error), page.status) from error


class _Status(msgspec.Struct, frozen=True):
    message: str = ""


Clock = Callable[[], float]


def answered(
    ask: Callable[[], T], *, until: float, pause: Callable[[float], object], clock: Clock = time.monotonic
) -> T:
    """What ``ask`` returns, tried again until ``until`` while its error can pass (the API server restarts)."""
    while True:
        try:
            return ask()
        except ApiError as error:
            if not error.can_pass or clock() >= until:
                raise
        pause(1.0)
