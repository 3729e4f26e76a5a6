"""The web configuration file and the Authorization header: any text is understood or refused, nothing else."""

from __future__ import annotations

import base64

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.config.web import HEADERS, WebFile, parse
from plumbline.errors import ConfigError
from plumbline.web.access import parse_basic
from plumbline.web.tls import allowed

KEYS = (
    "tls_server_config", "http_server_config", "basic_auth_users", "rate_limit", "cert", "key", "cert_file", "key_file",
    "client_auth_type", "client_allowed_sans", "min_version", "cipher_suites", "headers", "interval", "burst", *HEADERS,
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    | st.sampled_from(("1s", "TLS12", "deny", "RequireAndVerifyClientCert", "$2y$10$" + "a" * 53)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(VALUES)
def test_any_document(value: object) -> None:
    _parse(yaml.safe_dump(value))


@given(st.dictionaries(st.text(), st.text(), min_size=1))
@example({"\n\0": ""})
def test_any_users_and_headers(given: dict[str, str]) -> None:
    _parse(yaml.safe_dump({"basic_auth_users": given}))
    _parse(yaml.safe_dump({"http_server_config": {"headers": given}}))


@given(st.text())
def test_any_text(text: str) -> None:
    _parse(text)


def _parse(text: str) -> None:
    said = ""
    try:
        assert isinstance(parse(text, where="w"), WebFile)
    except ConfigError as error:
        said = str(error)
    assert "\n" not in said


@given(st.text() | st.binary().map(lambda raw: "Basic " + base64.b64encode(raw).decode()))
def test_any_authorization(header: str) -> None:
    found = parse_basic(header)
    assert found is None or (isinstance(found[0], str) and isinstance(found[1], bytes))


@given(st.lists(st.tuples(st.sampled_from(("DNS", "IP Address", "email", "URI", "DirName")), st.text())))
def test_any_alternative_names(names: list[tuple[str, str]]) -> None:
    assert allowed({"subjectAltName": tuple(names)}, ()) is False
