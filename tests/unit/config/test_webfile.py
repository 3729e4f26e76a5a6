"""The web configuration file: what is understood, what is refused and in which words, and that no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.config.web import HEADERS, WebFile, load, parse
from plumbline.errors import ConfigError
from support.offenders import for_every

HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"  # from the format's documentation
TLS = "tls_server_config: {cert_file: c, key_file: k"


def test_everything_the_format_has() -> None:
    found = parse(
        f"""
tls_server_config:
  cert_file: server.crt
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example]
  min_version: TLS12
  max_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [X25519]
http_server_config:
  http2: true
  headers: {{X-Frame-Options: deny, X-Content-Type-Options: nosniff, X-XSS-Protection: 1}}
basic_auth_users:
  alice: {HASH}
rate_limit: {{interval: 1m30s, burst: 20}}
""",
        where="web.yaml",
    )
    tls = found.tls_server_config
    assert tls is not None
    assert (tls.cert_file, tls.client_allowed_sans, tls.requires, tls.verifies) == (
        "server.crt",
        ("prometheus.example",),
        True,
        True,
    )
    assert found.http_server_config.headers["X-XSS-Protection"] == "1"
    assert found.basic_auth_users["alice"] == HASH
    assert (found.rate_limit.interval, found.rate_limit.burst) == (90.0, 20)


@pytest.mark.parametrize("text", ["{}", "tls_server_config:\nbasic_auth_users:\n", "tls_server_config: {}"])
def test_nothing_asked_for_is_nothing(text: str) -> None:
    assert parse(text, where="w") == WebFile()


@for_every(
    ("text", "says"),
    [
        ("tls_server_confg: {}", "w: tls_server_confg: no such key; see docs/web.md"),
        ("tls_server_config: {cert_filse: x}", "w: tls_server_config.cert_filse: no such key; see docs/web.md"),
        ("tls_server_config: {cert_file: x}", "w: tls_server_config.key_file: is missing"),
        ("tls_server_config: {key_file: x}", "w: tls_server_config.cert_file: is missing"),
        ("tls_server_config: {min_version: TLS13}", "w: tls_server_config.cert_file: is missing"),
        (TLS + ", cert: x}", "w: tls_server_config.cert: give either cert or cert_file, not both"),
        (TLS + ", client_auth_type: Sometimes}", "client_auth_type: invalid enum value 'Sometimes'"),
        (
            TLS + ", client_auth_type: RequireAnyClientCert}",
            "unverified certificates prove nothing; set RequireAndVerifyClientCert",
        ),
        (TLS + ", client_auth_type: RequireAndVerifyClientCert}", "needs client_ca_file, which verifies the clients"),
        (TLS + ", client_ca_file: ca}", "has no effect without client_auth_type: RequireAndVerifyClientCert"),
        (TLS + ", client_allowed_sans: [a]}", "names in an unverified certificate prove nothing"),
        (TLS + ", min_version: TLS11}", "min_version = 'TLS11': use TLS12 or TLS13"),
        (TLS + ", min_version: TLS13, max_version: TLS12}", "min_version = 'TLS13': is above max_version"),
        (
            "http_server_config: {headers: {Server: x}}",
            f"Server: can't be set; possible: {', '.join(HEADERS)}",
        ),
        ("http_server_config: {headers: {X-Frame-Options: some}}", "= 'some': expected deny or sameorigin"),
        (
            'http_server_config: {headers: {X-XSS-Protection: "1\\r\\nSet-Cookie: x"}}',
            "contains a character that headers do not allow",
        ),
        (
            "basic_auth_users: {a: hunter2}",
            "w: basic_auth_users.a: not a bcrypt hash; create one with `htpasswd -nBC 10 NAME`",
        ),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "a user name must not be empty or contain a colon"),
        (f"basic_auth_users: {{a: {HASH.replace('$10$', '$15$')}}}", "cost 15: use 4 to 14, or one check takes longer"),
        (f"basic_auth_users: {{a: {HASH.replace('$2y$', '$2x$')}}}", "not a bcrypt hash"),
        ("rate_limit: {interval: 1}", "rate_limit.interval: expected a duration such as 500ms, 1s or 1m30s"),
        ("rate_limit: {interval: 1s}", "rate_limit.burst = 0: at least 1, or every request is refused"),
        ("", "w: is empty; write {} to set nothing"),
        ("# a comment\n---\n", "w: is empty; write {} to set nothing"),
        ("- a", "w: expected `object`, got `array`"),
        ("a: [", ": not valid YAML: "),
        (f"basic_auth_users:\n  a: {HASH}\n  a: {HASH}\n", "w:3: not valid YAML: duplicate key 'a'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, where="w")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "basic_auth_users: {a: hunter2}",
        "basic_auth_users: hunter2",
        "basic_auth_users: [hunter2]",
        "basic_auth_users: {a: [hunter2]}",
        "tls_server_config: {cert: c, key: [hunter2]}",
        "tls_server_config: {cert: c, key: hunter2, key_file: k}",
        "tls_server_config: {cert: c, key: {hunter2: 1}}",
        "tls_server_config: {key: hunter2}",
        "basic_auth_users: {a: 'hunter2",
    ],
)
def test_no_error_shows_a_secret(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, where="w")
    error: BaseException | None = caught.value
    assert "hunter2" not in str(error)


def test_nor_does_the_understood_file() -> None:
    found = parse(f"basic_auth_users: {{a: {HASH}}}\ntls_server_config: {{cert: c, key: hunter2}}", where="w")
    assert HASH not in repr(found)
    assert "hunter2" not in repr(found)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("tls_server_config: {cert_file: tls/a.crt, key_file: /b.key}")
    tls = load(file).tls_server_config
    assert tls is not None
    assert (tls.cert_file, tls.key_file) == (str(tmp_path / "tls/a.crt"), "/b.key")


@pytest.mark.parametrize(
    ("data", "says"), [(b"\xff", "is not UTF-8 at byte 0"), (b"#" * (1 << 20) + b"#", "is longer than 1048576 bytes")]
)
def test_what_is_no_text(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "w").write_bytes(data)
    with pytest.raises(ConfigError, match=says):
        load(tmp_path / "w")
    with pytest.raises(ConfigError, match="can't be read: No such file"):
        load(tmp_path / "none")
