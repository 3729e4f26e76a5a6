"""What protects the site from clients: made from the web configuration file, replaced as a whole at a reload. And how
exposed that leaves the daemon."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from plumbline.config import web as webfile
from plumbline.config.web import RateLimit, WebFile
from plumbline.errors import ConfigError, PlumblineError
from plumbline.web.routes import Request, Response, text_response
from plumbline.web.turns import Turns

if TYPE_CHECKING:
    import ssl

    from plumbline.web.access import Passwords

_CHALLENGE = ("WWW-Authenticate", 'Basic realm="plumbline", charset="UTF-8"')
_LATER = ("Retry-After", "1")
_RESTART = "; restart the daemon to do that. Currently active: "


class Bucket:
    """A token bucket: one request per ``interval``, up to ``burst`` at once."""

    def __init__(self, limit: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._tokens, self._since = float(limit.burst), clock()
        self._lock = threading.Lock()

    def acquire(self) -> bool:
        """Take a token; ``False`` when there is none."""
        with self._lock:
            now = self._clock()
            self._tokens = min(float(self.limit.burst), self._tokens + (now - self._since) / self.limit.interval)
            self._since = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """The default admits everybody, unencrypted. ``digest`` covers all that the guard was made from, and is empty for
    nothing; the context is reused while ``tls_digest`` stays the same."""

    turns: Turns = field(default_factory=Turns)
    file: WebFile = field(default_factory=WebFile, repr=False)
    context: ssl.SSLContext | None = None
    passwords: Passwords | None = None
    bucket: Bucket | None = None
    lost: frozenset[str] = frozenset()  # Guards that were active since the start and no longer are
    digest: bytes = field(default=b"", repr=False)
    tls_digest: bytes = field(default=b"", repr=False)

    @property
    def sans(self) -> tuple[str, ...] | None:
        """Names, one of which a client's certificate must have; ``None``: any name."""
        tls = self.file.tls_server_config
        return None if tls is None else tls.client_allowed_sans

    @property
    def encrypts(self) -> bool:
        return self.context is not None

    @property
    def asks_password(self) -> bool:
        return self.passwords is not None

    @property
    def asks_certificate(self) -> bool:
        tls = self.file.tls_server_config
        return tls is not None and tls.requires

    @property
    def authenticates(self) -> bool:
        return self.asks_password or self.asks_certificate

    @property
    def guards(self) -> frozenset[str]:
        """Names of the guards that protect the port."""
        there = {
            "TLS": self.encrypts,
            "client certificates": self.asks_certificate,
            "client_allowed_sans": self.sans is not None,
            "passwords": self.asks_password,
            "rate_limit": self.bucket is not None,
        }
        return frozenset(name for name, stands in there.items() if stands)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers for every response that does not set them itself."""
        return tuple((name, value) for name, value in self.file.http_server_config.headers.items() if value)

    def refuse(self, request: Request, peer: str, gone: Callable[[], bool] = lambda: False) -> Response | None:
        """Check a request (health and readiness too, as in the toolkit); ``None`` admits it. The bucket comes after the
        password, unlike in the toolkit: a client without a password must not be able to empty it."""
        if self.passwords is not None:
            from plumbline.web.access import AuthResult  # noqa: PLC0415

            result = self.passwords.look(request.headers.get("authorization"), peer, gone)
            if result is AuthResult.TOO_MANY:
                return text_response(429, "too many passwords are being checked; try again later", _LATER)
            if result is AuthResult.REFUSED:
                return text_response(401, "user and password required", _CHALLENGE)
        if self.bucket is not None and not self.bucket.acquire():
            return text_response(429, "request rate above rate_limit in the web configuration file", _LATER)
        return None


def files_of(path: Path | None) -> list[Path]:
    """The files that :func:`make_guard` reads, as far as they are known: a rejected file may name more."""
    if path is None:
        return []
    try:
        tls = webfile.load(path).tls_server_config
    except PlumblineError:
        return [path]
    named = (tls.cert_file, tls.key_file, tls.client_ca_file) if tls else ()
    return [path, *(Path(path) for path in named if path)]


def make_guard(path: Path | None, before: Guard | None = None) -> Guard:
    """Read the file and those it names; a :class:`ConfigError` leaves everything as it was. ``before`` itself when
    nothing changed; otherwise takes over its accepted users and what its bucket has spent. Refuses to remove all guards
    or all authentication, and lists other removed guards in :attr:`Guard.lost`."""
    turns = before.turns if before else Turns()
    if path is None:
        if before and not before.digest:
            return before
        return _still_shut(Guard(turns), before, "web.config_file")
    file, where = webfile.load(path), str(path)
    tls, pems = file.tls_server_config, None
    if tls is not None:
        from plumbline.web import tls as webtls  # noqa: PLC0415

        pems = webtls.read_pems(tls, where=where)
    tls_digest = _digest(tls, *((pems.cert, pems.key, pems.client_ca) if pems else ()))
    digest = _digest(file, tls_digest)
    if before and before.digest == digest:
        return before
    if tls is None or pems is None:
        context = None
    elif before and before.tls_digest == tls_digest:
        context = before.context
    else:
        context = webtls.make_context(tls, pems, where=where)
    users, limit, passwords = file.basic_auth_users, file.rate_limit, None
    if users:
        from plumbline.web.access import Passwords  # noqa: PLC0415

        passwords = Passwords(users, turns, before.passwords if before else None)
    kept = before.bucket if before and before.bucket and before.bucket.limit == limit else None
    made = Guard(
        turns=turns,
        file=file,
        context=context,
        passwords=passwords,
        bucket=(kept or Bucket(limit)) if limit.interval else None,
        digest=digest,
        tls_digest=tls_digest,
    )
    return _still_shut(made, before, where)


def _still_shut(made: Guard, before: Guard | None, where: str) -> Guard:
    """A file truncated by a full disk or an editor must not open the port; restart the daemon to open it on purpose."""
    if before is None:
        return made
    active = ", ".join(sorted(before.guards))
    if before.authenticates and not made.authenticates:
        raise ConfigError(where, f"a reload cannot remove all authentication{_RESTART}{active}")
    if before.guards and not made.guards:
        raise ConfigError(where, f"a reload cannot remove all protection of the port{_RESTART}{active}")
    return replace(made, lost=(before.lost | before.guards) - made.guards)


def _digest(struct: msgspec.Struct | None, *more: bytes) -> bytes:
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(b"\0".join((msgspec.json.encode(struct, enc_hook=str), *more))).digest()


class Exposure(msgspec.Struct, frozen=True):
    """``reach``: ``loopback`` or ``network``; ``encryption``: ``tls`` or ``none``; ``authentication``: ``none``,
    ``password``, ``certificate`` or both (``certificate+password``)."""

    reach: str
    encryption: str
    authentication: str
    lost: tuple[str, ...] = ()  # Guards that were active since the start and no longer are

    @classmethod
    @lru_cache(maxsize=1)  # for each page of metrics
    def of(cls, host: str, guard: Guard) -> Exposure:
        """``host``: the numeric address listened on; empty: all addresses."""
        questions = (("certificate", guard.asks_certificate), ("password", guard.asks_password))
        return cls(
            reach="loopback" if _is_loopback(host) else "network",
            encryption="tls" if guard.encrypts else "none",
            authentication="+".join(name for name, asks in questions if asks) or "none",
            lost=tuple(sorted(guard.lost)),
        )

    @property
    def warning(self) -> str:
        """What an operator should know; empty: nothing. An open port is common among exporters, and no mistake."""
        warnings = []
        if self.reach == "network" and self.authentication == "none":
            warnings.append(
                "anyone who can reach this port can read everything here; "
                "configure users or client certificates with --web.config.file (docs/web.md)"
            )
        elif self.reach == "network" and self.encryption == "none":
            warnings.append(
                "passwords cross the network unencrypted; add tls_server_config to the web configuration file"
            )
        if self.lost:
            warnings.append(f"a reload removed {', '.join(self.lost)}; restart the daemon if this is intended")
        return "; ".join(warnings)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
