"""Access to a protected Prometheus: a file in its own ``<http_config>`` format, as promtool's ``--http.config.file``.

https://prometheus.io/docs/prometheus/latest/configuration/configuration/#http_config ::

    basic_auth: {username: reviews, password_file: prometheus.password}    # or authorization: {credentials_file: token}
    tls_config: {ca_file: ca.crt, cert_file: reviews.crt, key_file: reviews.key}

Paths are relative to the file. Other keys of that format are rejected, because ignoring one would be a surprise. A
secret never appears in an error, a ``repr`` or the process list.
"""

import base64
import ssl
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from plumbline.config.types import Secret, Strict
from plumbline.config.yaml import convert_secret, read_text, read_yaml
from plumbline.core.answers import in_memory
from plumbline.core.keyfiles import read_anchor, read_secret
from plumbline.errors import ConfigError

MAX_BYTES = 1 << 20
_Read = Callable[[Path, int], bytes]


class _BasicAuth(Strict, frozen=True):
    username: str
    password: Secret | None = None
    password_file: str | None = None


class _Authorization(Strict, frozen=True):
    type: str = "Bearer"
    credentials: Secret | None = None
    credentials_file: str | None = None


class _TlsConfig(Strict, frozen=True):
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    insecure_skip_verify: bool = False


class _HttpConfig(Strict, frozen=True):
    basic_auth: _BasicAuth | None = None
    authorization: _Authorization | None = None
    tls_config: _TlsConfig | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Credentials and TLS settings for every request. By default none, with the system's certificate authorities."""

    authorization: str | None = field(default=None, repr=False)  # the value of the ``Authorization`` header
    context: ssl.SSLContext | None = field(default=None, repr=False)


OPEN = Access()


def load_access(path: Path | None) -> Access:
    """Read the file, if any, and the files it names; :class:`ConfigError` in one line, without their content."""
    if path is None:
        return OPEN
    where = str(path)
    data = read_yaml(read_text(path, max_bytes=MAX_BYTES, read=read_anchor), where=where)
    config = convert_secret(_HttpConfig, data, where=where, reference="docs/report.md")
    inline = (
        config.basic_auth and config.basic_auth.password,
        config.authorization and config.authorization.credentials,
    )
    if any(secret is not None for secret in inline):
        read_text(path, max_bytes=MAX_BYTES, read=read_secret)
    if config.basic_auth and config.authorization:
        raise ConfigError(where, "conflicts with basic_auth; give only one", key="authorization")
    return Access(_header(config, path), _context(config.tls_config, path) if config.tls_config else None)


def _header(config: _HttpConfig, path: Path) -> str | None:
    if basic := config.basic_auth:
        password = _secret(basic.password, basic.password_file, path, "basic_auth.password")
        if ":" in basic.username:  # RFC 7617
            raise ConfigError(str(path), "a user name can't contain a colon", key="basic_auth.username")
        return "Basic " + base64.b64encode(f"{basic.username}:{password}".encode()).decode("ascii")
    if given := config.authorization:
        credentials = _secret(given.credentials, given.credentials_file, path, "authorization.credentials")
        value = f"{given.type} {credentials}"
        if not value.isascii() or not value.isprintable():
            raise ConfigError(str(path), "contains characters that are not allowed in a header", key="authorization")
        return value
    return None


def _secret(text: Secret | None, file: str | None, path: Path, key: str) -> str:
    if (text is None) == (file is None):
        reason = (
            "is missing; give it or name a file that contains it"
            if text is None
            else "conflicts with its file; give only one"
        )
        raise ConfigError(str(path), reason, key=key)
    if file is None:
        return str(text)
    secret = read_text(path.parent / file, max_bytes=MAX_BYTES, read=read_secret).strip()
    if not secret:
        raise ConfigError(str(path.parent / file), "is empty")
    return secret


def _context(tls: _TlsConfig, path: Path) -> ssl.SSLContext:
    where = str(path)
    if tls.key_file and not tls.cert_file:
        raise ConfigError(where, "has no effect without cert_file", key="tls_config.key_file")
    context = ssl.create_default_context()
    if tls.insecure_skip_verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if ca := tls.ca_file:
        _loaded(context.load_verify_locations, {path.parent / ca: read_anchor}, where, "tls_config.ca_file")
    if cert := tls.cert_file:
        # without a file of its own, the key stands in that of the certificate
        files = {path.parent / cert: read_anchor if tls.key_file else read_secret}
        files |= {path.parent / tls.key_file: read_secret} if tls.key_file else {}
        # an empty password: without one, OpenSSL would ask for it on the terminal
        _loaded(partial(context.load_cert_chain, password=""), files, where, "tls_config.cert_file")
    return context


def _loaded(load: Callable[..., None], files: Mapping[Path, _Read], where: str, key: str) -> None:
    try:
        with ExitStack() as held:
            load(*(held.enter_context(in_memory(read(file, MAX_BYTES))) for file, read in files.items()))
    except ssl.SSLError as error:
        raise ConfigError(where, f"not PEM, or not the key of the certificate: {error.reason}", key=key) from None
    except OSError as error:
        raise ConfigError(where, f"can't be read: {error.strerror}", key=key) from None
