"""``plumbline why``: what it asks, what it prints, and its exit codes, of real servers with given answers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from plumbline.cli import main
from plumbline.core.roots import Roots
from plumbline.sources.kernel.installation import Need, read_installation
from plumbline.status.model import Level
from plumbline.status.why import Explanation, Fact
from support.answering import Request, answering

FACT = Fact("disk", Level.BAD, "p50 4× slower", "plumbline probe list", "/runbooks/PlumblineCanaryLatencyHigh?probe=c")
BAD = Explanation(
    "stor01", Level.BAD, "disk is suspected", (FACT,), (Fact("network", Level.GOOD, "as accepted"),), (), ("a note",)
)
GOOD = Explanation("stor01", Level.GOOD, "Nothing is wrong")


def alert(severity: str, summary: str, **labels: str) -> dict[str, object]:
    annotations = {"summary": summary, "runbook_url": f"http://books/{summary}"}
    return {"state": "firing", "labels": {"severity": severity, **labels}, "annotations": annotations}


ALERTS = [
    alert("warning", "mine", cluster="east", instance="stor01:10047"),
    alert("critical", "the cluster", cluster="east"),
    alert("critical", "another cluster", cluster="west"),
    alert("warning", "another host", cluster="east", instance="stor02:10047", ceph_daemon="osd.9"),
    alert("info", "information", cluster="east"),
    {**alert("critical", "pending", cluster="east"), "state": "pending"},
]


def handle(explanation: Explanation) -> object:
    def answer(request: Request) -> None:
        url = urlsplit(request.path)
        if url.path == "/why":
            if parse_qs(url.query).get("of", [""])[0] == "nix":
                request.answer(b"nothing of that name is known here\n", status=404)
            else:
                request.answer(msgspec.json.encode(explanation))
        elif url.path == "/metrics":
            request.answer(b"plumbline_config_last_reload_success_timestamp_seconds 5\n")
        elif url.path == "/api/v1/rules":
            rules = [{"type": "alerting", "name": "PlumblineX", "alerts": ALERTS}]
            request.answer(json.dumps({"status": "success", "data": {"groups": [{"rules": rules}]}}).encode())
        else:
            metric = {"__name__": "x", "cluster": "east", "instance": "stor01:10047"}
            result = [{"metric": metric, "value": [1, "5"]}]
            request.answer(
                json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
            )

    return answer


@pytest.fixture
def storage(tmp_path: Path) -> tuple[str, str]:
    return "--storage.path", str(tmp_path / "none")


def test_the_facts_and_the_first_step(storage: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with answering(handle(BAD)) as url:  # type: ignore[arg-type]
        assert main(["why", "--daemon", url, *storage]) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.replace(url, "URL").splitlines() if line]
    assert lines == [
        "stor01: disk is suspected",
        "For it First",
        "disk p50 4× slower plumbline probe list",
        "runbook: URL/runbooks/PlumblineCanaryLatencyHigh?probe=c",
        "Against it",
        "network as accepted",
        "● a note",
        "What Prometheus knows beyond this node: --prometheus http://HOST:9090",
    ]


@pytest.mark.parametrize(
    ("explanation", "what", "code", "titles"),
    [
        (GOOD, [], 1, ["the cluster", "mine"]),
        (GOOD, ["osd.9"], 1, ["another host"]),
        (GOOD, ["9"], 1, ["another host"]),
        (GOOD, ["sdq"], 0, []),
        (BAD, ["sdq"], 1, []),
    ],
)
def test_the_alerts_about_it_pages_first(
    explanation: Explanation,
    what: list[str],
    code: int,
    titles: list[str],
    storage: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with answering(handle(explanation)) as url:  # type: ignore[arg-type]
        assert main(["why", *what, "--daemon", url, "--prometheus", url, "--json", *storage]) == code
    found = json.loads(capsys.readouterr().out)
    assert [each["title"] for each in found["alerts"]] == titles


def test_the_runbooks_prometheus_is_asked_without_a_flag(
    storage: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(handle(BAD)) as url:  # type: ignore[arg-type]
        main(["why", "--daemon", url, "--json", *storage])
        assert json.loads(capsys.readouterr().out)["alerts"] is None
        monkeypatch.setenv("PROMETHEUS", url)
        main(["why", "--daemon", url, "--json", *storage])
        assert json.loads(capsys.readouterr().out)["alerts"]


def test_nobody_could_tell(storage: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with answering(handle(GOOD)) as url:  # type: ignore[arg-type]
        assert main(["why", "--daemon", url, *storage]) == 0
        assert main(["why", "nix", "--daemon", url, *storage]) == 2
        assert "knows no layer, probe, OSD, disk or port 'nix'" in capsys.readouterr().err
    assert main(["why", "--daemon", url, *storage]) == 2
    log = read_installation(Roots.under(Path("/")), environment=os.environ).step(Need.LOG)
    assert f"is the daemon up? {log}; or --daemon URL" in capsys.readouterr().err
