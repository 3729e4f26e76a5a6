"""TLS from the web configuration file: reads certificates, makes one ``SSLContext``, shakes hands within a deadline.

Imported where a file asks for TLS only: OpenSSL takes 2 MiB.

Cipher suites have Go's names in the file and OpenSSL's here. Both lists name TLS 1.2 suites only, as those of TLS 1.3
can't be chosen (https://pkg.go.dev/crypto/tls#CipherSuites, openssl-ciphers(1)).
"""

import ipaddress
import socket
import ssl
from dataclasses import dataclass, field
from typing import Any

from plumbline.config.web import TlsServerConfig
from plumbline.core.answers import in_memory
from plumbline.core.keyfiles import read_anchor, read_secret
from plumbline.errors import ConfigError
from plumbline.web.http1 import TlsRefused, linger

MAX_PEM_BYTES = 1 << 20
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
CIPHERS = {
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
# TLS 1.3 suites: on whatever a file says, as in Go
_ALWAYS = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_HANDSHAKE_RECORD = b"\x16"
_NO_PLAIN_HTTP = (
    b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"this port requires HTTPS; use https://\n"
)


@dataclass(frozen=True, slots=True)
class Pems:
    """Contents of the files; never shown."""

    cert: bytes = field(repr=False)
    key: bytes = field(repr=False)
    client_ca: bytes = field(repr=False)


def read_pems(tls: TlsServerConfig, *, where: str) -> Pems:
    """Read certificate, key and CA; raises :class:`ConfigError` for what can't be read."""
    return Pems(
        _pem(tls.cert, tls.cert_file, where, "cert"),
        _pem(tls.key, tls.key_file, where, "key"),
        _pem(tls.client_ca, tls.client_ca_file, where, "client_ca"),
    )


def make_context(tls: TlsServerConfig, pems: Pems, *, where: str) -> ssl.SSLContext:
    """A context set as the file says; raises :class:`ConfigError` for what can't be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[tls.min_version]
    context.maximum_version = _VERSIONS[tls.max_version]
    # a client could otherwise ask for any number of new handshakes within one connection
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not tls.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0  # scrapes keep their connections
    context.set_alpn_protocols(["http/1.1"])
    _choose_ciphers(context, tls, where)
    _choose_curve(context, tls, where)
    _load_identity(context, tls, pems, where)
    if tls.verifies:
        _load_client_ca(context, tls, pems, where)
        context.verify_mode = ssl.CERT_REQUIRED if tls.requires else ssl.CERT_OPTIONAL
    return context


def await_hello(sock: socket.socket, *, timeout_s: float) -> None:
    """Wait for a handshake's first byte. Raises :class:`TlsRefused` without one; an HTTP client is first told why."""
    sock.settimeout(timeout_s)
    try:
        first = sock.recv(1, socket.MSG_PEEK)
        if first == _HANDSHAKE_RECORD:
            return
        if first:
            sock.send(_NO_PLAIN_HTTP)
            linger(sock)
    except OSError as error:
        raise _refused_for(error) from None
    raise TlsRefused("no TLS handshake")


def wrap(sock: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
    """The encrypted side of a connection, before its handshake; ``sock`` itself is unusable afterwards."""
    try:
        return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
    except OSError as error:
        raise _refused_for(error) from None


def handshake(encrypted: ssl.SSLSocket, sans: tuple[str, ...] | None, *, timeout_s: float) -> None:
    """Do the handshake within one deadline; raises :class:`TlsRefused` if it fails or no name matches."""
    try:
        encrypted.settimeout(timeout_s)
        encrypted.do_handshake()
    except OSError as error:
        raise _refused_for(error) from None
    if sans is not None and not allowed(encrypted.getpeercert(), sans):
        raise TlsRefused("the client's certificate matches none of client_allowed_sans")


def _refused_for(error: OSError) -> TlsRefused:
    """With OpenSSL's reason, such as CERTIFICATE_VERIFY_FAILED."""
    return TlsRefused(getattr(error, "reason", None) or error.strerror or str(error))


def allowed(certificate: Any, sans: tuple[str, ...]) -> bool:
    """Whether one of the certificate's alternative names (DNS, IP, e-mail, URI) is in the list, letter by letter.
    ``True`` without a certificate, as in the toolkit: client_auth_type decides whether one is required."""
    if not certificate:
        return True
    return any(_name(kind, value) in sans for kind, value in certificate.get("subjectAltName", ()))


def _name(kind: str, value: str) -> str:
    """OpenSSL writes ``0:0:0:0:0:0:0:1`` where the file has ``::1``."""
    if kind == "IP Address":
        try:
            return str(ipaddress.ip_address(value.strip()))
        except ValueError:
            return ""
    return value if kind in ("DNS", "email", "URI") else ""


def _choose_ciphers(context: ssl.SSLContext, tls: TlsServerConfig, where: str) -> None:
    key = "tls_server_config.cipher_suites"
    for name in tls.cipher_suites:
        if name not in CIPHERS and name not in _ALWAYS:
            raise ConfigError(where, f"unknown cipher suite; known: {', '.join(CIPHERS)}", key=key, value=name)
    names = [CIPHERS[name] for name in tls.cipher_suites if name in CIPHERS]
    if not names:
        return
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        raise ConfigError(where, "OpenSSL here supports none of these", key=key) from None


def _choose_curve(context: ssl.SSLContext, tls: TlsServerConfig, where: str) -> None:
    key = "tls_server_config.curve_preferences"
    if not tls.curve_preferences:
        return
    for name in tls.curve_preferences:
        if name not in _CURVES:
            raise ConfigError(where, f"unknown curve; known: {', '.join(_CURVES)}", key=key, value=name)
    if len(tls.curve_preferences) > 1:
        reason = "only one curve is supported; name one, or none to let OpenSSL choose"
        raise ConfigError(where, reason, key=key, value=[*tls.curve_preferences])
    try:
        context.set_ecdh_curve(_CURVES[tls.curve_preferences[0]])
    except (ssl.SSLError, ValueError):
        raise ConfigError(where, "OpenSSL here does not support it", key=key, value=tls.curve_preferences[0]) from None


def _load_identity(context: ssl.SSLContext, tls: TlsServerConfig, pems: Pems, where: str) -> None:
    if b"ENCRYPTED" in pems.key:
        raise ConfigError(where, "is encrypted; the daemon cannot ask for its password", key=_key(tls.key, "key"))
    try:
        # From memory: inline text must never reach a disk, and a file may have changed since it was read. Without a
        # password function OpenSSL would ask on the terminal
        with in_memory(pems.cert) as cert_path, in_memory(pems.key) as key_path:
            context.load_cert_chain(cert_path, key_path, password=lambda: "")
    except ssl.SSLError as error:
        reason = {
            "KEY_VALUES_MISMATCH": "does not match the certificate's key",
            "EE_KEY_TOO_SMALL": "is too weak for OpenSSL's security level; use RSA with at least 2048 bits, or P-256",
            "CA_MD_TOO_WEAK": "is signed with a broken hash; have it signed with SHA-256",
        }.get(error.reason or "", f"not a certificate and its key in PEM format ({error.reason or 'unreadable'})")
        raise ConfigError(where, reason, key=_key(tls.cert, "cert")) from None


def _load_client_ca(context: ssl.SSLContext, tls: TlsServerConfig, pems: Pems, where: str) -> None:
    if not pems.client_ca:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)  # as Go does: the system's authorities
        return
    try:
        context.load_verify_locations(cadata=pems.client_ca.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(where, "contains no PEM certificate", key=_key(tls.client_ca, "client_ca")) from None


def _pem(text: str | None, file: str | None, where: str, what: str) -> bytes:
    if text:
        return text.encode()
    if not file:
        return b""
    try:
        return (read_secret if what == "key" else read_anchor)(file, MAX_PEM_BYTES)
    except OSError as error:
        raise ConfigError(where, f"can't be read: {error.strerror}", key=_key(text, what), value=file) from None


def _key(text: str | None, what: str) -> str:
    return f"tls_server_config.{what if text else what + '_file'}"
