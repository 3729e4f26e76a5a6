"""``plumbline probe claim`` as its pod runs it: the API server is played, over HTTPS; the first write is real."""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline import cli
from plumbline.claims import first_write
from plumbline.claims.claim_file import read_claims
from plumbline.probes.run.result import Outcome
from plumbline.probes.run.state import StateStore
from support.answering import Request, answering
from support.certificates import make_certificates
from support.metrics import ROOT

pytestmark = pytest.mark.usefixtures("private_files")

MANIFEST = ROOT / "deploy" / "kubernetes" / "claims" / "standard.yaml"
TEMPLATE = next(each for each in yaml.safe_load_all(MANIFEST.read_text()) if each["kind"] == "PodTemplate")
SPACE = "/api/v1/namespaces/plumbline-claims/"


class Cluster:
    """Binds the claim at once (or never), then runs the pod's program in ``volume``."""

    def __init__(self, volume: Path, *, binds: bool = True, allowed: bool = True) -> None:
        self.volume, self.binds, self.allowed = volume, binds, allowed
        self.pod: dict[str, Any] | None = None
        self.looks = 0
        self.asked: list[str] = []

    def __call__(self, request: Request) -> None:
        path = request.path.removeprefix(SPACE).partition("?")[0]
        self.asked.append(f"{request.command} {path}")
        if not self.allowed:
            request.answer(b'{"message": "pods is forbidden: User cannot create resource"}', status=403)
            return
        found = self.answer(request.command, path, request.body)
        if found is None:
            request.answer(b'{"message": "not found"}', status=404)
        else:
            request.answer(json.dumps(found).encode())

    def answer(self, method: str, path: str, body: bytes) -> dict[str, Any] | None:
        match method, path:
            case "GET", "/version":
                return {"gitVersion": "v1.34.4"}
            case "GET", "podtemplates/standard":
                return TEMPLATE
            case "GET", "pods" | "events":
                return {"items": []}
            case "POST", "pods":
                self.pod = json.loads(body)
                self.pod["metadata"] |= {"name": "standard-abc12", "uid": "u1"}
                return self.pod
            case "DELETE", "pods/standard-abc12":
                self.pod = None
                return {"kind": "Status"}
            case "GET", "pods/standard-abc12" if self.pod is not None:
                return self.pod | {"status": self.status()}
            case "GET", "persistentvolumeclaims/standard-abc12-claimed" if self.pod is not None:
                return {"status": {"phase": "Bound" if self.binds else "Pending"}}
        return None

    def status(self) -> dict[str, Any]:
        self.looks += 1
        if not self.binds or self.looks < 2:
            return {"phase": "Pending"}
        said = self.volume.parent / "said"
        code = first_write.main([str(self.volume)], str(said)) if not said.exists() else 0
        ended = {"exitCode": code, "reason": "Completed", "message": said.read_text()}
        return {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": ended}}]}


@contextmanager
def in_a_pod(cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The command's flags; the daemon of this node has its state in ``folder/state``."""
    certificates = make_certificates(folder / "account")
    (folder / "account" / "token").write_text("a-token")
    store = StateStore(folder / "state")
    store.open()
    store.close()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.crt("server"), certificates.key("server"))
    with answering(cluster, context=context) as url:
        host, _, port = url.removeprefix("https://").partition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        yield ["--account", str(folder / "account"), "--storage.path", str(folder / "state")]


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    return tmp_path / "volume"


def test_a_claim_is_measured_and_left_to_the_daemon(
    volume: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(volume)
    before = time.time()
    with in_a_pod(cluster, tmp_path, monkeypatch) as flags:
        assert cli.main(["probe", "claim", "standard", *flags]) == 0
    assert capsys.readouterr().out.startswith("claim/standard: bind ")
    ((found,), wrong) = read_claims(tmp_path / "state")
    assert (found.name, found.storage_class, found.interval_s, wrong) == ("standard", "standard", 6 * 3600, ())
    result = found.record.success
    assert result is not None
    assert before <= result.started <= time.time()
    assert (result.tool, result.tool_version) == ("kubernetes", "v1.34.4")
    times = {each.operation: each.latency["mean"] for each in result.operations}
    assert times.keys() == {"bind", "mount", "write", "total"}
    assert 0 < times["write"] < times["total"]
    assert list(volume.iterdir()) == []
    assert cluster.pod is None
    assert cluster.asked[-3:] == [
        "DELETE pods/standard-abc12",
        "GET pods/standard-abc12",
        "GET persistentvolumeclaims/standard-abc12-claimed",
    ]


def test_a_claim_that_is_not_bound_is_a_result_too(
    volume: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with in_a_pod(Cluster(volume, binds=False), tmp_path, monkeypatch) as flags:
        assert cli.main(["probe", "claim", "standard", "--timeout", "1s", *flags]) == 1
    assert capsys.readouterr().err == "plumbline: claim/standard: timeout: not bound within 1 s\n"
    ((found,), _) = read_claims(tmp_path / "state")
    assert found.record.runs == {Outcome.TIMEOUT: 1}


def test_without_the_rights_it_says_which(
    volume: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with in_a_pod(Cluster(volume, allowed=False), tmp_path, monkeypatch) as flags:
        assert cli.main(["probe", "claim", "standard", *flags]) == 3
    assert "HTTP 403: pods is forbidden" in capsys.readouterr().err
    assert read_claims(tmp_path / "state") == ((), ())


def _of_another_user(state: Path) -> None:
    """Of a daemon with the component disk-latency, which is root, as the job of another user sees it."""
    os.chown(state, 4711, 4711)


def _marker_of_another_user(state: Path) -> None:
    os.chown(state / ".plumbline-storage", 4711, 4711)


def _result_of_another_user(state: Path) -> None:
    (state / "volume-claim.standard.json").touch()
    os.chown(state / "volume-claim.standard.json", 4711, 4711)


def _without_a_daemon(state: Path) -> None:
    (state / ".plumbline-storage").unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="other users' files need root")
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_of_another_user, "STATE: belongs to user 4711, not to user 0"),
        (_marker_of_another_user, "STATE/.plumbline-storage: belongs to user 4711, not to user 0"),
        (_result_of_another_user, "STATE/volume-claim.standard.json: belongs to user 4711, not to user 0"),
        (_without_a_daemon, "STATE: no daemon has marked it"),
    ],
)
def test_a_result_that_can_not_be_kept_is_refused_before_anything_is_claimed(
    spoil: Callable[[Path], None], why: str, volume: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    cluster = Cluster(volume)
    with in_a_pod(cluster, tmp_path, monkeypatch) as flags:
        spoil(tmp_path / "state")
        assert cli.main(["probe", "claim", "standard", *flags]) == 3
    assert capsys.readouterr().err.startswith(f"plumbline: {why.replace('STATE', str(tmp_path / 'state'))}; ")
    assert not [question for question in cluster.asked if question.startswith("POST")]


@pytest.mark.parametrize("name", ["Standard", "a.b", "x" * 41, "-a"])
def test_a_name_that_no_object_can_have(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probe", "claim", "--", name]) == 3
    assert "lower-case letters, digits and '-'" in capsys.readouterr().err
