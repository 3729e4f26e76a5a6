"""The web configuration file: TLS, client certificates, users, headers, a limit on requests.

The format is shared by exporters (``--web.config.file``), so one file serves node_exporter and Plumbline:
https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md ::

    tls_server_config:
      cert_file: server.crt        # relative to this file
      key_file: server.key
    basic_auth_users:
      prometheus: $2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG

Unknown keys and unsupported settings are refused. Errors never show the value, which may be a secret.
:mod:`~plumbline.web.tls` reads the files that it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from plumbline.config.types import Secret, Strict
from plumbline.config.yaml import convert_secret, read_text, read_yaml
from plumbline.core.escape import visible
from plumbline.core.keyfiles import read_anchor, read_secret
from plumbline.errors import ConfigError

MAX_BYTES = 1 << 20
"""Certificates may be embedded in it."""
MIN_COST, MAX_COST = 4, 14
"""Limits of bcrypt's cost: one check takes about 2^cost x 50 µs. Above 14 it takes longer than a scrape may."""

_ONE_VALUE = {"X-Content-Type-Options": ("nosniff",), "X-Frame-Options": ("deny", "sameorigin")}
HEADERS = (*_ONE_VALUE, "Content-Security-Policy", "Strict-Transport-Security", "X-XSS-Protection")
"""The headers that the toolkit lets a file set."""

_HASH = re.compile(r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")
_INTERVAL = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_UNVERIFIED = ("RequireAnyClientCert", "RequireClientCert")

TlsVersion = Literal["TLS10", "TLS11", "TLS12", "TLS13"]


class HeaderValue(str):
    """Text; also accepts the number in ``X-XSS-Protection: 1``, as Go's YAML does."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> HeaderValue:
        if not isinstance(text, str) and (not isinstance(text, int) or isinstance(text, bool)):
            raise ValueError("expected text")
        return cls(text)


class Interval(float):
    """Seconds, written like Go durations: ``500ms``, ``1s``, ``1m30s``; 0 means none."""

    @classmethod
    def parse(cls, text: object) -> Interval:
        if text in (0, "0") and not isinstance(text, bool):
            return cls(0)
        if not isinstance(text, str) or not _INTERVAL.fullmatch(text):
            raise ValueError("expected a duration such as 500ms, 1s or 1m30s")
        return cls(sum(float(number) * _UNITS_S[unit] for number, unit in re.findall(r"([\d.]+)([a-zµ]+)", text)))


class TlsServerConfig(Strict, frozen=True):
    """``tls_server_config``. Takes exactly one of ``cert`` (PEM text) and ``cert_file``; the same for the key; at most
    one for the CA."""

    cert: str | None = None
    key: Secret | None = None
    client_ca: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    client_ca_file: str | None = None
    client_auth_type: Literal[
        "",
        "NoClientCert",
        "RequestClientCert",
        "RequireAnyClientCert",
        "RequireClientCert",
        "VerifyClientCertIfGiven",
        "RequireAndVerifyClientCert",
    ] = "NoClientCert"
    client_allowed_sans: tuple[str, ...] | None = None
    min_version: TlsVersion = "TLS12"
    max_version: TlsVersion = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[str, ...] = ()

    @property
    def verifies(self) -> bool:
        return self.client_auth_type in ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")

    @property
    def requires(self) -> bool:
        return self.client_auth_type == "RequireAndVerifyClientCert"


class HttpServerConfig(Strict, frozen=True):
    """``http_server_config``. ``http2`` is accepted, because other exporters may share the file; only HTTP/1.1 is
    served."""

    http2: bool = True
    headers: dict[str, HeaderValue] = msgspec.field(default_factory=dict)


class RateLimit(Strict, frozen=True):
    """``rate_limit``, a token bucket: one request each ``interval``, bursts of up to ``burst``. 0: no limit."""

    interval: Interval = Interval(0.0)
    burst: Annotated[int, Meta(ge=0)] = 0


class WebFile(Strict, frozen=True):
    """The whole file."""

    tls_server_config: TlsServerConfig | None = None
    http_server_config: HttpServerConfig = HttpServerConfig()
    rate_limit: RateLimit = RateLimit()
    basic_auth_users: dict[str, Secret] = msgspec.field(default_factory=dict)


def load(path: Path) -> WebFile:
    """Read and check a file and resolve its relative paths. Any error is one :class:`ConfigError`."""
    web_file = parse(read_text(path, max_bytes=MAX_BYTES, read=read_anchor), where=str(path))
    tls = web_file.tls_server_config
    if web_file.basic_auth_users or (tls and tls.key):  # it holds hashes, or a key
        read_text(path, max_bytes=MAX_BYTES, read=read_secret)
    if tls is None:
        return web_file
    fields = ("cert_file", "key_file", "client_ca_file")
    files = {field: str(path.parent / value) for field in fields if (value := getattr(tls, field))}
    return msgspec.structs.replace(web_file, tls_server_config=msgspec.structs.replace(tls, **files))


def parse(text: str, *, where: str) -> WebFile:
    """Check the file's text; ``where`` names it in errors. ``{}`` is valid and sets nothing; an empty file is refused,
    because a full disk or an editor may have truncated it."""
    data = read_yaml(text, where=where)
    if data is None:
        raise ConfigError(where, "is empty; write {} to set nothing")
    if isinstance(data, dict):  # Go treats ``tls_server_config:`` with nothing below it as absent
        data = {key: value for key, value in data.items() if value is not None}
    web_file = convert_secret(WebFile, data, where=where, reference="docs/web.md")
    if web_file.tls_server_config == TlsServerConfig():
        web_file = msgspec.structs.replace(web_file, tls_server_config=None)  # as the toolkit does
    if web_file.tls_server_config is not None:
        _check_tls(web_file.tls_server_config, where)
    _check_headers(web_file.http_server_config.headers, where)
    _check_users(web_file.basic_auth_users, where)
    if web_file.rate_limit.interval and not web_file.rate_limit.burst:
        raise ConfigError(where, "at least 1, or every request is refused", key="rate_limit.burst", value=0)
    return web_file


def _check_tls(tls: TlsServerConfig, where: str) -> None:
    def mistake(field: str, reason: str, *, shown: bool = False) -> ConfigError:
        value = getattr(tls, field) if shown else None
        return ConfigError(where, reason, key=f"tls_server_config.{field}", value=value)

    for text, file in (("cert", "cert_file"), ("key", "key_file")):
        given = [field for field in (text, file) if getattr(tls, field)]
        if not given:
            raise mistake(file, "is missing")
        if len(given) > 1:
            raise mistake(text, f"give either {text} or {file}, not both")
    if tls.client_ca and tls.client_ca_file:
        raise mistake("client_ca", "give either client_ca or client_ca_file, not both")
    if tls.client_auth_type in _UNVERIFIED:
        reason = "unverified certificates prove nothing; set RequireAndVerifyClientCert, with client_ca_file"
        raise mistake("client_auth_type", reason, shown=True)
    has_ca = bool(tls.client_ca or tls.client_ca_file)
    if tls.requires and not has_ca:
        raise mistake("client_auth_type", "needs client_ca_file, which verifies the clients", shown=True)
    if has_ca and not tls.verifies:
        raise mistake("client_ca_file", "has no effect without client_auth_type: RequireAndVerifyClientCert")
    if tls.client_allowed_sans is not None and not tls.verifies:
        reason = "names in an unverified certificate prove nothing; set RequireAndVerifyClientCert"
        raise mistake("client_allowed_sans", reason)
    for field in ("min_version", "max_version"):
        if getattr(tls, field) in ("TLS10", "TLS11"):
            raise mistake(field, "use TLS12 or TLS13; older versions are broken (RFC 8996)", shown=True)
    if tls.min_version > tls.max_version:
        raise mistake("min_version", "is above max_version", shown=True)


def _check_headers(headers: Mapping[str, str], where: str) -> None:
    for name, value in headers.items():
        key = f"http_server_config.headers.{visible(name)}"
        if name not in HEADERS:
            raise ConfigError(where, f"can't be set; possible: {', '.join(HEADERS)}", key=key)
        if value and value not in _ONE_VALUE.get(name, (value,)):
            raise ConfigError(where, f"expected {' or '.join(_ONE_VALUE[name])}", key=key, value=value)
        if not value.isascii() or not (value.isprintable() or not value):
            raise ConfigError(where, "contains a character that headers do not allow", key=key, value=value)


def _check_users(users: Mapping[str, Secret], where: str) -> None:
    for name, hashed in users.items():
        key = f"basic_auth_users.{visible(name)}"
        if not name or ":" in name:  # RFC 7617: the name ends at the first colon
            raise ConfigError(where, "a user name must not be empty or contain a colon", key=key)
        match = _HASH.fullmatch(hashed)
        if not match:
            reason = "not a bcrypt hash; create one with `htpasswd -nBC 10 NAME`: it starts with $2y$"
            raise ConfigError(where, reason, key=key)
        if not MIN_COST <= cost_of(hashed) <= MAX_COST:
            reason = (
                f"cost {cost_of(hashed)}: use {MIN_COST} to {MAX_COST}, or one check takes longer than a scrape may"
            )
            raise ConfigError(where, reason, key=key)


def cost_of(hashed: str) -> int:
    return int(hashed.split("$")[2])
