"""``plumbline doctor``: what it makes of the daemon's page, of Prometheus' answers and of links; where it asks."""

from __future__ import annotations

import http.server
import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from plumbline import cli
from plumbline.commands.doctor import draw
from plumbline.commands.doctor_daemon import (
    Answer,
    State,
    address_of,
    ask_baseline,
    ask_daemon,
    only_loopback,
    samples_of,
)
from plumbline.commands.doctor_prometheus import DASHBOARDS, RUNBOOKS, Server, ask_labels, ask_links, ask_prometheus
from plumbline.config.model import Config, WebConfig
from plumbline.errors import ParseError
from plumbline.sources.kernel.installation import Installation
from plumbline.sources.prometheus.access import OPEN
from plumbline.sources.prometheus.api import Series, parse_alertmanagers, parse_rules

PAGE = """\
# HELP plumbline_build_info x
plumbline_build_info{version="0.1.0",python_version="3.11"} 1
plumbline_collector_success{collector="disk"} 1
plumbline_collector_success{collector="nic"} 1
plumbline_config_last_reload_successful 1
plumbline_config_last_reload_success_timestamp_seconds 1.7637264001234567e+09
plumbline_web_info{reach="loopback",encryption="none",authentication="none"} 1
plumbline_baseline_missing{probe="canary",layer="disk",workload="a \\"b\\" \\\\ {c}"} 0
"""
Answers = dict[str, tuple[int, str]]


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """Path → status and text; any other path is 404."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = answers.get(self.path, (404, "not here"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def states(answers: Answers) -> list[tuple[str, State, str]]:
    with serving(answers) as url:
        found, _ = ask_daemon(url, timeout_s=5, access=OPEN, installation=Installation.HOST)
        return [(each.question, each.state, each.says.replace(url, "URL")) for each in found]


def whole(page: str = PAGE) -> Answers:
    return {"/-/ready": (200, "ready\n"), "/metrics": (200, page)}


def test_a_daemon_that_is_well() -> None:
    assert states(whole()) == [
        ("is the daemon up", State.WELL, "version 0.1.0 at URL"),
        ("do all collectors work", State.WELL, "2 collectors, none fails"),
        ("is the configuration file in force", State.WELL, "the last reload succeeded"),
    ]


def test_a_page_that_is_not_whole_and_a_refused_configuration() -> None:
    page = PAGE.replace('{collector="nic"} 1', '{collector="nic"} 0').replace(
        "reload_successful 1", "reload_successful 0"
    )
    assert [(state, says) for _, state, says in states(whole(page))][1:] == [
        (State.MISSING, "collectors that fail: nic"),
        (State.MISSING, "the file was refused; an older configuration is in force"),
    ]


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"/-/ready": (503, "not ready: the disks\n")}, "URL: 503 not ready: the disks"),
        ({"/-/ready": (401, "")}, "URL: it requires credentials"),
        ({"/-/ready": (200, ""), "/metrics": (200, "node_load1 1\n")}, "URL/metrics is not Plumbline's page (200)"),
    ],
)
def test_a_daemon_that_is_not_there_yet(answers: Answers, says: str) -> None:
    assert states(answers) == [("is the daemon up", State.MISSING, says)]


def test_the_samples_of_a_page() -> None:
    samples = samples_of(PAGE)
    assert samples["plumbline_baseline_missing"][0].labels["workload"] == 'a "b" \\ {c}'
    assert samples["plumbline_config_last_reload_success_timestamp_seconds"][0].value == 1763726400.1234567
    assert samples_of("<html>another program's page</html>") == {}
    assert only_loopback(samples)
    assert not only_loopback(samples_of(PAGE.replace("loopback", "network")))


def test_the_baseline() -> None:
    assert ask_baseline(samples_of(PAGE)).says == "every probe is judged: canary"
    partly = ask_baseline(samples_of(PAGE + 'plumbline_baseline_missing{probe="fio"} 1\n'))
    assert (partly.state, partly.says) == (State.MISSING, "no baseline judges: fio")
    assert ask_baseline({}).state is State.MISSING


@pytest.mark.parametrize(
    ("listens", "url"),
    [
        ("127.0.0.1:10047", "http://127.0.0.1:10047"),
        (":10047", "http://127.0.0.1:10047"),
        ("0.0.0.0:1", "http://127.0.0.1:1"),
        ("[::]:10047", "http://[::1]:10047"),
        ("10.0.0.11:10047", "http://10.0.0.11:10047"),
    ],
)
def test_the_daemon_is_asked_where_it_listens(listens: str, url: str) -> None:
    assert address_of(Config(web=WebConfig(listen_address=listens))) == url


def links(question: str, wanted: Callable[[str], list[str]], answers: Answers) -> tuple[State, str]:
    with serving(answers) as url:
        found = ask_links(question, wanted(url), Server(url, 5, OPEN, "http://stor01:10047"))
        return found.state, found.says.replace(url, "URL")


def test_links_that_resolve_and_links_that_do_not() -> None:
    there = {"/runbooks/A": (200, "page"), "/d/x": (401, "log in")}
    assert links(RUNBOOKS, lambda url: [f"{url}/runbooks/A"], there) == (State.WELL, "URL/runbooks/A")
    # Grafana asks for a login: it is there
    assert links(DASHBOARDS, lambda url: [f"{url}/d/x"], there) == (State.WELL, "URL/d/x")
    assert links(RUNBOOKS, lambda url: [f"{url}/runbooks/B"], there) == (State.MISSING, "URL/runbooks/B: 404")
    assert links(DASHBOARDS, lambda _: ["", ""], there) == (State.NOT_ASKED, "alerts have none")
    assert links(RUNBOOKS, lambda _: ["", ""], there) == (State.MISSING, "alerts have none")
    assert links(DASHBOARDS, lambda _: [], there)[0] is State.MISSING
    state, says = links(RUNBOOKS, lambda _: ["alerts/runbooks/A.md"], there)
    assert (state, says[:20]) == (State.MISSING, "alerts/runbooks/A.md")


@pytest.mark.parametrize(
    "link",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1%25eth0]/runbooks/A",
        "http://URL@192.0.2.1/runbooks/A",
        "http://stor01:2379/runbooks/A",
        "http://localhost.localdomain:10047/runbooks/A",
        "http://[::1/runbooks/A",
        "http://192.0.2.1\\@127.0.0.1/",
    ],
)
def test_no_link_to_another_host_is_opened(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.commands.doctor_prometheus.read_page", pytest.fail)
    state, says = links(RUNBOOKS, lambda _: [link], {})
    assert (state, says) == (State.NOT_ASKED, f"{link}: not opened, it is on another host")


def prometheus(page: str, answers: Answers) -> dict[str, tuple[State, str]]:
    with serving(answers) as url:
        found = ask_prometheus(Server(url, 5, OPEN), samples_of(page))
        return {each.question: (each.state, each.says.replace(url, "URL")) for each in found}


SERIES = '{{"status":"success","data":{{"resultType":"vector","result":[{}]}}}}'


def test_what_prometheus_lacks_is_said_for_each_question() -> None:
    rules = '{"status":"success","data":{"groups":[]}}'
    found = prometheus(PAGE, {
        "/api/v1/query": (200, SERIES.format("")),
        "/api/v1/rules": (200, rules),
        "/api/v1/alertmanagers": (200, '{"status":"success","data":{"activeAlertmanagers":[]}}'),
    })  # fmt: skip
    assert found["is it scraped"][1].startswith("URL has no series of this daemon")
    assert found["do rules see it"] == (State.MISSING, "no alert of Plumbline is loaded")
    assert found["does an Alertmanager get its alerts"] == (State.MISSING, "Prometheus sends alerts to no Alertmanager")
    assert found.pop("are the labels of Ceph's metrics what rules take them for") == (
        State.NOT_ASKED, "URL has no metrics of Ceph",
    )  # fmt: skip
    assert {state for state, _ in found.values()} == {State.MISSING}


class Recorded(Server, frozen=True, kw_only=True):
    """A server with these answers, by the start of the question."""

    answers: Mapping[str, tuple[Series, ...]]

    def query(self, text: str) -> tuple[Series, ...]:
        return next((series for start, series in self.answers.items() if text.startswith(start)), ())


@pytest.mark.parametrize(
    ("answers", "state", "says"),
    [
        ({}, State.NOT_ASKED, "http://p has no metrics of Ceph"),
        ({"count(": (Series("", {}, 12),)}, State.WELL, "12 OSDs, each at one address"),
        (
            {"count(": (Series("", {}, 12),), "count by": (Series("", {}, 3),)},
            State.MISSING,
            "3 daemons have two addresses at once: two clusters are mixed",
        ),
        (
            {"count(": (Series("", {}, 12),), "plumbline:": (Series("", {"cluster": "rook"}, 1),)},
            State.MISSING,
            "hostnames of OSDs of cluster rook are not those of their nodes",
        ),
    ],
)
def test_labels_that_rules_take_for_granted(answers: dict[str, tuple[Series, ...]], state: State, says: str) -> None:
    answer = ask_labels(Recorded("http://p", 5, OPEN, answers=answers))
    assert (answer.state, answer.says) == (state, says)


def test_another_jobs_name_is_no_scrape_job_of_ours() -> None:
    labels = '{"metric":{"job":"node","instance":"stor01"},"value":[1,"1"]}'
    found = prometheus(PAGE, {"/api/v1/query": (200, SERIES.format(labels)), "/api/v1/rules": (500, "{}")})
    assert found["is it scraped"] == (
        State.MISSING, "as instance stor01 of the job node; rules look for the job plumbline",
    )  # fmt: skip


def test_the_answers_of_prometheus() -> None:
    text = (
        b'{"status":"success","data":{"groups":[{"name":"g","rules":[{"type":"alerting","name":"A","health":"err",'
        b'"lastError":"why","alerts":[{"annotations":{"runbook_url":"u"}}]},{"type":"recording","name":"r"}]}]}}'
    )
    first, second = parse_rules(text, source="p")
    assert (first.name, first.kind, first.health, first.last_error) == ("A", "alerting", "err", "why")
    assert (first.alerts[0].annotations, second.health) == ({"runbook_url": "u"}, "unknown")
    managers = b'{"status":"success","data":{"activeAlertmanagers":[{"url":"http://a:9093/api/v2/alerts"}]}}'
    assert parse_alertmanagers(managers, source="p") == ("http://a:9093/api/v2/alerts",)
    for parse in (parse_rules, parse_alertmanagers):
        for data in (b"", b"[]", b'{"status":"error","error":"no"}'):
            with pytest.raises(ParseError, match="p"):
                parse(data, source="p")


def test_wrong_usage_is_2_and_a_wrong_configuration_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--timeout", "soon"]) == 2
    assert capsys.readouterr().err.startswith("plumbline: --timeout = 'soon': expected a duration")
    assert cli.main(["doctor", "--http.config.file", "x"]) == 2
    assert cli.main(["doctor", "--config.file", "/nowhere/plumbline.yaml"]) == 1
    assert "is the configuration good" in capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [
        "deploy/debian/README.md", "deploy/rpm/README.md", "systemd/README.md", "deploy/compose/README.md",
        "deploy/kubernetes/README.md", "deploy/ansible/README.md", "deploy/cephadm/README.md", "docs/install.md",
    ],
)  # fmt: skip
def test_every_installation_ends_with_it(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command is one that this program takes; what it would do is run elsewhere."""
    asked: list[str] = []
    monkeypatch.setattr("plumbline.commands.doctor.run", lambda options: asked.append(options.prometheus) or 0)
    text = (Path(__file__).parents[3] / page).read_text("utf-8")
    commands = re.findall(r"plumbline doctor ((?:--[a-z.]+ [^\s`']+ ?)+)", text)
    assert commands
    assert [cli.main(["doctor", *command.split()]) for command in commands] == [0] * len(commands)
    assert any(url and url.startswith("http://") for url in asked)


def test_answers_can_be_read_in_eighty_columns() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    question, says = "are the labels of Ceph's metrics what rules take them for", "http://127.0.0.1:9090 has no metrics"
    mend = "alerts/runbooks/PlumblineCephLabelsWrong.md"
    draw(console, [Answer(question, State.NOT_ASKED, says, mend)])
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert "http://127.0.0.1:9090 " in drawn  # no address in pieces
    assert max(len(line) for line in drawn.splitlines()) <= 80
    assert len(drawn.splitlines()) < 8, drawn
