"""Questions to the API server over real HTTPS: the token, the methods, and every kind of bad answer."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plumbline.claims import api
from plumbline.claims.api import Api, ApiError, Pod, answered
from plumbline.errors import ConfigError
from support.answering import Request, answering
from support.certificates import Certificates, make_certificates

pytestmark = pytest.mark.usefixtures("private_files")

SEEN: list[tuple[str, str, str, str, bytes]] = []


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("kube"))


@contextmanager
def server(certificates: Certificates, body: bytes, status: int = 200) -> Iterator[Api]:
    """An API server that answers everything alike."""
    SEEN.clear()

    def handle(request: Request) -> None:
        head = request.headers
        SEEN.append((request.command, request.path, head["Authorization"], head["Content-Type"] or "", request.body))
        request.answer(body, status=status)

    account = certificates.folder
    (account / "token").write_text("a-token\n")
    with answering(handle, context=serving(certificates)) as url:
        host, _, port = url.removeprefix("https://").partition(":")
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        yield Api(environment, "plumbline-claims", account)


def serving(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.crt("server"), certificates.key("server"))
    return context


def test_what_is_asked(certificates: Certificates) -> None:
    with server(certificates, b'{"metadata": {"name": "x"}, "kind": "Pod"}') as asked:
        assert asked.ask("POST", "pods", Pod, body={"a": 1}).metadata.name == "x"
        asked.ask("DELETE", "pods", Pod, name="x", body={"b": 2})
        asked.ask("GET", "pods", Pod, query={"labelSelector": "plumbline/claim=x"})
    space = "/api/v1/namespaces/plumbline-claims"
    assert [
        ("POST", f"{space}/pods", "Bearer a-token", "application/json", b'{"a":1}'),
        ("DELETE", f"{space}/pods/x", "Bearer a-token", "application/json", b'{"b":2}'),
        ("GET", f"{space}/pods?labelSelector=plumbline%2Fclaim%3Dx", "Bearer a-token", "", b""),
    ] == SEEN


def test_a_renewed_token_is_used(certificates: Certificates) -> None:
    with server(certificates, b"{}") as asked:
        asked.ask("GET", "pods", Pod)
        (certificates.folder / "token").write_text("the-next")
        asked.ask("GET", "pods", Pod)
    assert [each[2] for each in SEEN] == ["Bearer a-token", "Bearer the-next"]


@pytest.mark.parametrize(
    ("status", "body", "said", "can_pass"),
    [
        (403, b'{"message": "pods is forbidden"}', "HTTP 403: pods is forbidden", False),
        (404, b'{"message": ""}', "HTTP 404: Not Found", False),
        (503, b"{}", "HTTP 503: Service Unavailable", True),
        (500, b"<html>", "not an answer of Kubernetes", True),
        (200, b"no JSON", "not an answer of Kubernetes", False),
        (200, b"[1]", "not an answer of Kubernetes", False),
        (200, b'{"metadata": {"name": 7}}', "not an answer of Kubernetes", False),
    ],
)
def test_a_bad_answer(certificates: Certificates, status: int, body: bytes, said: str, can_pass: bool) -> None:
    with server(certificates, body, status) as asked, pytest.raises(ApiError, match=said) as error:
        asked.ask("GET", "pods", Pod, name="x")
    assert error.value.can_pass is can_pass


def test_an_answer_without_end_is_refused(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_BYTES", 1000)
    body = json.dumps({"metadata": {"name": "x" * 2000}}).encode()
    with server(certificates, body) as asked, pytest.raises(ApiError, match="more than 1000 bytes"):
        asked.ask("GET", "pods", Pod, name="x")


def test_a_server_that_is_not_there_may_come_back(certificates: Certificates) -> None:
    with server(certificates, b"{}") as asked:
        pass
    with pytest.raises(ApiError) as error:
        asked.ask("GET", "pods", Pod)
    assert error.value.can_pass
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    with pytest.raises(ApiError):
        answered(lambda: asked.ask("GET", "pods", Pod), until=5.0, pause=pause, clock=lambda: now[0])
    assert now[0] == 5.0


def test_a_stranger_with_another_authority_gets_no_token(certificates: Certificates, tmp_path: Path) -> None:
    with server(certificates, b"{}") as asked:
        (tmp_path / "token").write_text("secret")
        (tmp_path / "ca.crt").write_bytes(certificates.crt("stranger").read_bytes())
        host, _, port = asked._server.removeprefix("https://").partition(":")
        other = Api({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}, "x", tmp_path)
        with pytest.raises(ApiError, match="certificate"):
            other.ask("GET", "pods", Pod)
    assert SEEN == []


@pytest.mark.parametrize("environment", [{}, {"KUBERNETES_SERVICE_HOST": "x"}, {"KUBERNETES_SERVICE_PORT": "1"}])
def test_outside_a_pod_it_says_so(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this command runs in a pod of Kubernetes"):
        Api(environment, "x", tmp_path)


def test_a_pod_without_a_token_says_so(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "x", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(ConfigError, match="has no token"):
        Api(environment, "x", tmp_path)
