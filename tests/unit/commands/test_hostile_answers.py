# ruff: noqa: E501  (answers, one a line)
"""Commands that ask a server or a tool which lies: one line on standard error, the documented exit code, nothing
changed, nothing reported as done. The servers, sockets and programs are real; only what they answer is made up."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from plumbline.claims.api import Api, ApiError, Pod, path_of
from plumbline.cli import main
from support.answering import Request, answering
from support.certificates import Certificates, make_certificates
from support.hostile import ANY, OVER_HTTP, mutations
from support.manifest import manifest

_LIKE = ("many values", "many objects", "a long text", "deep closed lists")  # minutes of the machine, for no new path
_SOME = {name: data for name, data in ANY.items() if name not in _LIKE}
_WITHIN_S = 60.0
"""No measure of speed: what does not end by itself is ended here."""

Ran = tuple[int, str, str]


class _Endless(BaseException):
    """The command did not end. No :class:`Exception`, which it might catch."""


def _end(*_: object) -> None:
    raise _Endless


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str) -> Ran:
        capfd.readouterr()
        before = signal.signal(signal.SIGALRM, _end)
        signal.setitimer(signal.ITIMER_REAL, _WITHIN_S)
        try:
            code = main(arguments)
        except (_Endless, Exception) as error:  # noqa: BLE001  (named by the test)
            code, ended = -1, f"{type(error).__name__}: {error}"
        else:
            ended = ""
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        out, err = capfd.readouterr()
        return code, out, err + ended

    return run


def _offence(ran: Ran, codes: set[int], *, lines: int = 1) -> str:
    """What is wrong with how a command ended; empty: nothing."""
    code, out, err = ran
    if code == -1:
        return "it did not end, or ended by an exception: " + err[-300:]
    if "Traceback" in out + err or code not in codes:
        return f"exit {code}: {err[-300:]}"
    if len(err.splitlines()) > lines or not all(map(str.isprintable, err.splitlines())):
        return f"on standard error: {err[:300]!r}"
    return ""


def _answer_all(data: bytes) -> Callable[[Request], None]:
    return lambda request: request.answer(data)


_PROMETHEUS = {**OVER_HTTP, **{name: _answer_all(data) for name, data in _SOME.items()}}
_VECTOR = (
    b'{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"__name__": "up", "job": "x"},'
    b' "value": [1763726400.1, "1"]}]}}'
)


def test_a_prometheus_that_lies_is_one_line_of_the_review(run: Callable[..., Ran], tmp_path: Path) -> None:
    wrong = []
    before = manifest(tmp_path)
    for name, handle in _PROMETHEUS.items():
        with answering(handle) as url:
            ran = run("report", "--prometheus", url, "--timeout", "300ms", "--output", str(tmp_path / "review.md"))
        if offence := _offence(ran, {1}):
            wrong.append(f"{name}: {offence}")
        if not ran[2].startswith("plumbline: http://127.0.0.1:"):
            wrong.append(f"{name}: does not say where: {ran[2][:200]!r}")
    assert "\n".join(wrong) == ""
    assert manifest(tmp_path) == before


def test_a_prometheus_that_lies_in_one_field_never_ends_the_review_badly(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    """The same answer to all questions, so most are of the wrong type; instant queries get theirs."""
    wrong = []
    for name, data in mutations(_VECTOR):
        matrix = data.replace(b'"vector"', b'"matrix"').replace(b'"value": [1763726400.1, "1"]', b'"values": []')

        def handle(request: Request, vector: bytes = data, matrix: bytes = matrix) -> None:
            request.answer(matrix if "query_range" in request.path else vector)

        with answering(handle) as url:
            ran = run("report", "--prometheus", url, "--timeout", "5s", "--output", str(tmp_path / "r.md"), "--force")
        if offence := _offence(ran, {0, 1}):
            wrong.append(f"{name}: {offence}")
    assert "\n".join(wrong) == ""


_LABELS = dict.fromkeys(
    [
        "__name__",
        "instance",
        "job",
        "host",
        "cluster",
        "probe",
        "layer",
        "operation",
        "device",
        "device_class",
        "target",
        "severity",
        "alertname",
        "source",
        "profile",
        "workload",
        "statistic",
        "model",
        "version",
        "daemon",
        "root",
        "rack",
        "pool",
        "fix",
        "check",
        "subject",
        "fleet_class",
        "quantile",
        "port",
    ],
    "x",
)


def _play(value: str, labels: dict[str, str]) -> Callable[[Request], None]:
    """Every series of every question has this value, over all of the time that is asked for."""

    def handle(request: Request) -> None:
        form = {key: float(text[0]) for key, text in parse_qs(request.body.decode()).items() if key != "query"}
        if "start" in form:
            times = [form["start"] + form["step"] * number for number in range(3)]
            series: dict[str, object] = {"metric": labels, "values": [[at, value] for at in times]}
        else:
            series = {"metric": labels, "value": [form.get("time", 1763726400), value]}
        kind = "matrix" if "start" in form else "vector"
        request.answer(json.dumps({"status": "success", "data": {"resultType": kind, "result": [series]}}).encode())

    return handle


def test_no_figure_and_no_label_breaks_the_review(run: Callable[..., Ran], tmp_path: Path) -> None:
    wrong = []
    hostile = dict.fromkeys(_LABELS, "\x1b[2J\u202e<script>x</script>\n| # `")
    values = ("1", "0", "-1", "+Inf", "-Inf", "NaN", "1e308", "-1e308", "1e29", "-1e29", "1e-300", "0.5")
    played = {value: _play(value, _LABELS) for value in values}
    played |= {"hostile labels": _play("1", hostile), "no labels": _play("1", {})}
    for name, handle in played.items():
        for command in (("report",), ("report", "--beside", "previous")):
            output = tmp_path / "review.md"
            with answering(handle) as url:
                ran = run(*command, "--prometheus", url, "--output", str(output), "--force")
            if offence := _offence(ran, {0, 1}):
                wrong.append(f"{command} {name}: {offence}")
            if output.exists() and re.search(r"\binf\b|\bnan\b|\x1b", output.read_text()):
                wrong.append(f"{name}: not a figure in the review")
    assert "\n".join(wrong) == ""


def test_a_daemon_and_a_prometheus_that_lie_to_the_doctor(run: Callable[..., Ran], tmp_path: Path) -> None:
    wrong = []
    metrics = (
        b'plumbline_collector_success{collector="x"} +Inf\nplumbline_config_last_reload_success_timestamp_seconds %s\n'
    )
    pages = {f"a page of {value!r}": _answer_all(metrics % value) for value in (b"+Inf", b"NaN", b"1e999", b"-1", b"x")}
    some = {
        name: _answer_all(ANY[name]) for name in ("null", "an object", "1e999", "deep lists", "not UTF-8", "a page")
    }
    for name, handle in {**OVER_HTTP, **some, **pages}.items():
        with answering(handle) as url:
            at = ("--daemon", url, "--prometheus", url, "--storage.path", str(tmp_path / "none"))
            if offence := _offence(run("doctor", *at, "--timeout", "300ms"), {1}, lines=0):
                wrong.append(f"{name}: {offence}")
    assert "\n".join(wrong) == ""


_WHY = (
    b'{"host": "s1", "level": "bad", "headline": "disk", "facts_for": [{"about": "disk", "level": "bad", "text": "x",'
    b' "command": "c", "runbook": "/r"}], "against": [], "unknown": [], "notes": ["n"]}'
)


def test_a_daemon_and_a_prometheus_that_lie_about_why(run: Callable[..., Ran], tmp_path: Path) -> None:
    wrong = []
    storage = ("--storage.path", str(tmp_path / "none"), "--timeout", "300ms")
    few = ("null", "an object", "deep lists", "not UTF-8", "1e999")
    lies = {**OVER_HTTP, **{name: _answer_all(ANY[name]) for name in few}}
    for name, handle in lies.items():

        def half(request: Request, lie: Callable[[Request], None] = handle) -> None:
            if request.path.startswith("/why"):
                request.answer(_WHY)
            elif request.path.startswith("/metrics"):
                request.answer(b"plumbline_config_last_reload_success_timestamp_seconds 5\n")
            else:
                lie(request)

        with answering(handle) as daemon, answering(half) as url:
            for asked in (("--daemon", daemon), ("--daemon", url, "--prometheus", url)):
                if offence := _offence(run("why", *asked, *storage), {2}):
                    wrong.append(f"{name}, {asked[-2]}: {offence}")
    answers = [b""]
    with answering(
        lambda request: request.answer(answers[-1])
    ) as url:  # one for all: to end a server takes half a second
        for name, data in mutations(_WHY):
            answers.append(data)
            ran = run("why", "--daemon", url, *storage)
            if offence := _offence(ran, {0, 1, 2}):
                wrong.append(f"{name}: {offence}")
            if ran[0] == 2 and ran[1]:
                wrong.append(f"{name}: half an answer: {ran[1][:200]}")
    assert "\n".join(wrong) == ""


def test_a_prometheus_that_lies_about_capacity(run: Callable[..., Ran]) -> None:
    wrong = []
    for name, handle in _PROMETHEUS.items():
        with answering(handle) as url:
            ran = run("capacity", "what-if", "--prometheus", url, "--timeout", "300ms")
        if offence := _offence(ran, {1, 2, 3}):
            wrong.append(f"{name}: {offence}")
    assert "\n".join(wrong) == ""


# -- Ceph

_CEPH = {
    "osd stat": b'{"num_osds": 3}',
    "osd pool ls detail": b'[{"pool_name": "a", "crush_rule": 0, "application_metadata": {"rbd": {}}}]',
    "osd crush rule dump": b'[{"rule_id": 0, "rule_name": "r", "steps": [{"op": "take", "item_name": "default"}]}]',
    "auth get": b'[{"entity": "client.plumbline", "key": "AQDNEWAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "caps": {"mon": "x"}}]',
    "auth get-or-create": b"[client.plumbline]\n\tkey = AQDNEWAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\n",
}
_PROGRAM = """#!/bin/sh
case "$*" in
  *"auth get-or-create"*) cat "$ANSWERS/auth get-or-create" ;;
  *"auth get "*) [ -e "$ANSWERS/auth get" ] || exit 2; cat "$ANSWERS/auth get" ;;
  *"osd stat"*) cat "$ANSWERS/osd stat" ;;
  *"ls detail"*) cat "$ANSWERS/osd pool ls detail" ;;
  *"rule dump"*) cat "$ANSWERS/osd crush rule dump" ;;
esac
"""


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of what ``ceph`` answers, by command. No user exists."""
    programs, answers = tmp_path / "bin", tmp_path / "answers"
    for folder in (programs, answers, tmp_path / "keys"):
        folder.mkdir()
    for name in ("ceph", "rados", "rbd"):
        (programs / name).write_text(_PROGRAM.replace("$ANSWERS", str(answers)))
        (programs / name).chmod(0o755)
    for command, answer in _CEPH.items():
        (answers / command).write_bytes(answer)
    (answers / "auth get").unlink()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return answers


def test_what_ceph_answers_is_shown_and_done(run: Callable[..., Ran], ceph: Path) -> None:
    keys = ceph.parent / "keys"
    code, out, err = run("ceph", "setup", "--key-dir", str(keys), "--apply")
    assert (code, err) == (0, "")
    assert out.endswith("# done\n")
    assert (keys / "ceph.client.plumbline.keyring").read_bytes() == _CEPH["auth get-or-create"]


@pytest.mark.parametrize("command", _CEPH)
def test_a_ceph_that_lies_is_one_line_and_nothing_is_done(run: Callable[..., Ran], ceph: Path, command: str) -> None:
    wrong = []
    keys = ceph.parent / "keys"
    named = ("nothing", "null", "a list", "an object", "a text", "1e999", "NaN", "2^64", "deep lists", "deep objects",
             "not UTF-8", "half a surrogate", "a page", "escape sequences", "two documents")  # fmt: skip
    answers = {name: ANY[name] for name in named}
    if command.startswith("auth"):
        answers |= {
            "another user": _CEPH[command].replace(b"plumbline", b"admin"),
            "two users": _CEPH[command] * 2,
            "no key": _CEPH[command].replace(b"AQDN", b"\x1b[2J"),
            "an empty key": b"[client.plumbline]\n\tkey = \n",
        }
    flags = ("--apply",) if command == "auth get-or-create" else ()
    for name, data in answers.items():
        if command == "osd pool ls detail" and name == "a list":
            continue  # a cluster without pools
        (ceph / command).write_bytes(data)
        ran = run("ceph", "setup", "--key-dir", str(keys), *flags)
        if offence := _offence(ran, {1}):
            wrong.append(f"{name}: {offence}")
        if "# done" in ran[1] or ("Ceph" not in ran[2] and command.split(maxsplit=1)[0] not in ran[2]):
            wrong.append(f"{name}: said {ran[1][-100:]!r}, {ran[2][:200]!r}")
        if sorted(keys.iterdir()):
            wrong.append(f"{name}: a key was written")
    assert "\n".join(wrong) == ""


# -- Kubernetes

_TEMPLATE = (
    b'{"template": {"spec": {"containers": [{"name": "w"}], "volumes": [{"name": "claimed", "ephemeral":'
    b' {"volumeClaimTemplate": {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}}}}]}}}'
)
_NAMES = ["", ".", "..", "../../kube-system/pods/x", "x/../../y", "x?dryRun=All", "x#", "%2e%2e", "a%2fb", "X", "x\n", "é", "-x",
          "x" * 254, "a b", "pods/x/eviction", "x/", "/x", "\x1b[2J"]  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("kube"))


@pytest.fixture
def account(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> Path:
    (certificates.folder / "token").write_text("a-token")
    (certificates.folder / "token").chmod(0o600)
    return certificates.folder


def _serve(stack: ExitStack, certificates: Certificates, handle: Callable[[Request], None]) -> dict[str, str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.crt("server"), certificates.key("server"))
    host, _, port = stack.enter_context(answering(handle, context=context)).removeprefix("https://").partition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def test_no_name_leaves_its_namespace(account: Path, certificates: Certificates) -> None:
    asked: list[str] = []

    def handle(request: Request) -> None:
        asked.append(request.path)
        request.answer(b"{}")

    with ExitStack() as stack:
        api = Api(_serve(stack, certificates, handle), "mine", account)
        for name in _NAMES:
            with pytest.raises(ApiError, match="is not a name of Kubernetes"):
                api.ask("DELETE", "pods", Pod, name=name)
    assert asked == []
    assert path_of("mine", "pods", "a-1.b") == "/api/v1/namespaces/mine/pods/a-1.b"


def test_pods_that_an_api_server_names_are_deleted_nowhere_else(
    run: Callable[..., Ran], account: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed: list[str] = []
    wrong = []

    def handle(request: Request) -> None:
        if request.command == "DELETE":
            changed.append(request.path)
        labels = b'{"plumbline/claim": "fast"}'
        pod = b'{"metadata": {"name": %s, "uid": "u", "labels": %s}}' % (json.dumps(name).encode(), labels)
        request.answer(_TEMPLATE if "podtemplates" in request.path else b'{"items": [' + pod + b"]}")

    for name in _NAMES:
        with ExitStack() as stack:
            for key, value in _serve(stack, certificates, handle).items():
                monkeypatch.setenv(key, value)
            ran = run(
                "probe", "claim", "fast", "--account", str(account), "--timeout", "1s", "--storage.path", str(tmp_path)
            )
        if offence := _offence(ran, {1, 3}):
            wrong.append(f"{name!r}: {offence}")
    assert "\n".join(wrong) == ""
    assert changed == []


def _quoted(name: str) -> bytes:
    import json

    return json.dumps(name).encode()


def test_an_api_server_that_lies_is_one_line(
    run: Callable[..., Ran], account: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """First to the template, and then to all else."""
    wrong = []
    before = manifest(tmp_path)
    slow = {
        name: OVER_HTTP[name]
        for name in ("broken chunks", "a longer length", "no HTTP", "to another host", "to a file")
    }
    for name, lie in {**{name: _answer_all(data) for name, data in _SOME.items()}, **slow}.items():
        for template in (True, False):

            def handle(request: Request, lie: Callable[[Request], None] = lie, keep: bool = not template) -> None:
                if keep and "podtemplates" in request.path:
                    request.answer(_TEMPLATE)
                else:
                    lie(request)

            with ExitStack() as stack:
                for key, value in _serve(stack, certificates, handle).items():
                    monkeypatch.setenv(key, value)
                options = ("--account", str(account), "--timeout", "300ms", "--storage.path", str(tmp_path))
                ran = run("probe", "claim", "fast", *options)
            if offence := _offence(ran, {1, 3}):
                wrong.append(f"{name}: {offence}")
    assert "\n".join(wrong) == ""
    assert manifest(tmp_path) == before
