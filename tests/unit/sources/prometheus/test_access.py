"""The file that says how a guarded Prometheus is reached: what goes along, and what is refused in which words."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from plumbline.errors import ConfigError, Unavailable
from plumbline.sources.prometheus.access import OPEN, Access, load_access
from plumbline.sources.prometheus.api import read_vector
from support.answering import Request, answering
from support.certificates import make_certificates

pytestmark = pytest.mark.usefixtures("private_files")

EMPTY = b'{"status": "success", "data": {"resultType": "vector", "result": []}}'


def load(folder: Path, text: str) -> Access:
    file = folder / "http.yaml"
    file.write_text(text)
    return load_access(file)


def seen_by_a_server(access: Access) -> list[str | None]:
    found: list[str | None] = []

    def handle(request: Request) -> None:
        found.append(request.headers["Authorization"])
        request.answer(EMPTY)

    with answering(handle) as url:
        assert read_vector(url, "up", timeout_s=30, access=access) == ()
    return found


def test_user_and_password_from_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("pa:ss\n")
    access = load(tmp_path, "basic_auth: {username: reviews, password_file: secret}")

    assert seen_by_a_server(access) == ["Basic " + base64.b64encode(b"reviews:pa:ss").decode()]
    assert "pa:ss" not in repr(access)
    assert "Basic" not in repr(access)


def test_a_token(tmp_path: Path) -> None:
    assert seen_by_a_server(load(tmp_path, "authorization: {credentials: abc}")) == ["Bearer abc"]
    assert seen_by_a_server(load(tmp_path, "authorization: {type: Token, credentials: abc}")) == ["Token abc"]


@pytest.mark.parametrize("text", ["", "{}", "tls_config: {}"])
def test_nothing_asked_for_is_nothing_sent(tmp_path: Path, text: str) -> None:
    assert seen_by_a_server(load(tmp_path, text)) == [None]
    assert seen_by_a_server(OPEN) == [None]


def test_it_is_not_sent_on_to_where_an_answer_points(tmp_path: Path) -> None:
    found: list[str | None] = []

    def elsewhere(request: Request) -> None:
        found.append(request.headers["Authorization"])
        request.send_response(404)
        request.end_headers()

    access = load(tmp_path, "authorization: {credentials: abc}")
    with answering(elsewhere) as other:

        def handle(request: Request) -> None:
            request.send_response(302)
            request.send_header("Location", other)
            request.end_headers()

        with answering(handle) as url, pytest.raises(Unavailable):
            read_vector(url, "up", timeout_s=30, access=access)
    assert found == []


def test_who_is_not_let_in_is_told_what_to_do(tmp_path: Path) -> None:
    def handle(request: Request) -> None:
        request.send_response(401)
        request.end_headers()

    with answering(handle) as url:
        with pytest.raises(Unavailable, match=r"HTTP 401 Unauthorized; it requires credentials: --http\.config\.file"):
            read_vector(url, "up", timeout_s=30)
        with pytest.raises(Unavailable, match="HTTP 401 Unauthorized; it rejected these credentials"):
            read_vector(url, "up", timeout_s=30, access=load(tmp_path, "authorization: {credentials: abc}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("basic_auth: {username: u}", "basic_auth.password is missing"),
        ("basic_auth: {username: 'a:b', password: geheim}", "can't contain a colon"),
        ("basic_auth: {username: u, password: geheim, password_file: f}", "conflicts with its file"),
        ("basic_auth: {username: u, password_file: nowhere}", "nowhere can't be read"),
        ("basic_auth: {username: u, password_file: empty}", "empty is empty"),
        ("basic_auth: {username: u, password: geheim}\nauthorization: {credentials: geheim}", "give only one"),
        ('authorization: {credentials: "geheim\\n"}', "not allowed in a header"),
        ("basic_auth: {username: u, password: 7}", "expected text"),
        ("oauth2: {client_secret: geheim}", "oauth2"),
        ("tls_config: {ca_file: nowhere}", "tls_config.ca_file can't be read"),
        ("tls_config: {ca_file: empty}", "tls_config.ca_file not PEM"),
        ("tls_config: {key_file: empty}", "no effect without cert_file"),
        ("basic_auth: [geheim", "not valid YAML"),
    ],
)
def test_mistakes_are_one_line_without_the_secret(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    line = str(caught.value)
    assert said in line.replace(":", ""), line
    assert "\n" not in line
    assert "geheim" not in line


def test_a_certificate_with_a_key_that_is_another_ones(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    text = "tls_config: {{ca_file: '{}', cert_file: '{}', key_file: '{}'}}"
    good = text.format(certificates.crt("ca"), certificates.crt("client"), certificates.key("client"))
    assert load(tmp_path, good).context is not None
    bad = text.format(certificates.crt("ca"), certificates.crt("client"), certificates.key("ca"))
    with pytest.raises(ConfigError, match="not PEM, or not the key of the certificate"):
        load(tmp_path, bad)
