"""No link of an alert is dead: a real Prometheus renders each, a running daemon and the rendered dashboards answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from plumbline.config.types import Duration
from support import dashboards
from support.daemon import Daemon, eventually, running
from support.grafana_links import Grafana
from support.metrics import known_metrics
from support.programs import need
from support.prometheus import CLUSTER, prometheus
from support.promtool import run_tests
from support.rulefiles import LINKS, RuleSet, always_firing, load, names_in
from support.rules import ALERTS, ROOT, RULES

GRAFANA = "https://grafana.example.org"
NODE = "stor01.example:10047"
"""What most tests of the rules call the node that fires."""
CARRIED = {"cluster", "instance", "device", "ceph_daemon", "probe", "pool"}
"""Labels that say which one it is, where the page has a variable of that name."""
OF_EVERY_ALERT = {"alertname", "severity", "signal"}
"""Labels that a runbook has no use for."""
SUBJECT = {
    "plumbline-disk": "device",
    "plumbline-nic": "device",
    "plumbline-osd": "ceph_daemon",
    "plumbline-node": "instance",
}
"""Pages about one thing."""
ONLY_LISTED = {
    "PlumblineAlertsDropped", "PlumblineConfigReloadFailed", "PlumblineNotificationsFailing", "PlumblineRuleFailing",
    "PlumblineRulesLate", "PlumblineScrapeRejected", "PlumblineScrapeSlow", "PlumblineStateNotSaved",
    "PlumblineThreadFailing", "PlumblineWatchdog", "PlumblineWebGuardsLost",
    "PlumblineCephMonitorDown", "PlumblineCephUnreachable", "PlumblineMountDead",
}  # fmt: skip
"""No page draws their figure yet: the monitoring itself, and three others. The page they open lists what fires."""

IDENTITY = ("_info", ":info", "_metadata", "ceph_daemon")
"""How names end that say which one it is; the last is a label, which looks like a metric of Ceph."""

Labels = Mapping[str, str]


def site(folder: Path, config: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Alert → its rules as a site with this configuration renders them."""
    (folder / "site.libsonnet").write_text(f"{{ _config+:: {json.dumps(config)} }}", "utf-8")
    argv = [sys.executable, ROOT / "render.py", "--only", "rules", "--site", folder / "site.libsonnet"]
    subprocess.run([*argv, "--out", folder / "out"], check=True, capture_output=True, text=True)
    found: dict[str, list[dict[str, Any]]] = {}
    for group in load(folder / "out" / "plumbline-alerts.yaml")["groups"]:
        for rule in group["rules"]:
            found.setdefault(rule["alert"], []).append(rule)
    return found


@pytest.fixture(scope="module")
def of_site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    return site(tmp_path_factory.mktemp("site"), {"dashboardBaseUrl": GRAFANA})


def page_of(rule: Mapping[str, Any]) -> str:
    uid = urlsplit(rule["annotations"]["dashboard_url"]).path.removeprefix("/d/")
    assert uid
    return uid


# --- rendered and followed ------------------------------------------------------------------------------------------


def firing_as(labels: Labels, annotations: Labels, name: str) -> dict[str, Any]:
    """A rule of this name that always fires with these labels, its links and its first step."""
    given = {link: annotations[link] for link in LINKS}
    return always_firing(name, labels, given | {"description": annotations.get("description", "").rpartition("\n")[2]})


@pytest.fixture(scope="module")
def followed(
    tmp_path_factory: pytest.TempPathFactory, firing: dict[str, list[dict[str, str]]], of_site: dict[str, Any]
) -> Iterator[tuple[Daemon, dict[str, list[tuple[Labels, Labels]]]]]:
    """A daemon, and alert → (labels, rendered links) for each label set that the tests of the rules have proven."""
    need("prometheus")
    folder = tmp_path_factory.mktemp("links")
    with running(folder, config={"probes": []}) as daemon:
        address = urlsplit(daemon.url).netloc
        rules = []
        for name, sets in firing.items():
            for labels in sets:
                # the node is the daemon here; what else has an `instance` (a dead node, Prometheus) stays another
                here = {"instance": address} if labels.get("instance") == NODE else {}
                here |= {"cluster": CLUSTER} if "cluster" in labels else {}
                without = {key: value for key, value in labels.items() if key not in ("alertname", "severity")}
                rules.append(firing_as(without | here, of_site[name][0]["annotations"], name))
        (folder / "rules").mkdir()
        groups = {"groups": [{"name": "links", "rules": rules}]}
        (folder / "rules" / "links.yaml").write_text(yaml.safe_dump(groups))
        with prometheus(folder, target=address, rules=folder / "rules") as server:
            eventually(lambda: server.query("plumbline_build_info"))

            def rendered() -> list[dict[str, Any]]:
                alerts = [alert for rule in server.rules() for alert in rule["alerts"]]
                known = all(each["annotations"]["runbook_url"].startswith("http") for each in alerts)
                return alerts if known and len(alerts) == len(rules) else []

            found: dict[str, list[tuple[Labels, Labels]]] = {}
            for alert in eventually(rendered):
                found.setdefault(alert["labels"]["alertname"], []).append((alert["labels"], alert["annotations"]))
        yield daemon, found


def test_every_runbook_link_opens_that_runbook(followed: Any, alerts: list[dict[str, Any]]) -> None:
    daemon, found = followed
    assert found.keys() == {rule["alert"] for rule in alerts}
    for name, each in found.items():
        urls = {urlsplit(links["runbook_url"]) for _, links in each}
        # also of alerts without a node, of dead nodes and of Prometheus: a node of the cluster answers
        assert {f"{url.scheme}://{url.netloc}{url.path}" for url in urls} == {f"{daemon.url}/runbooks/{name}"}
        for labels, links in each:
            url = urlsplit(links["runbook_url"])
            answer = daemon.get(f"{url.path}?{url.query}")
            assert answer.status == 200
            assert f"<h1>{name}</h1>" in answer.text
            given = dict(parse_qsl(url.query, strict_parsing=True))
            assert given.pop("prometheus").startswith("http://")
            # those of an alert that is made from others' alerts are in the link, too: the page has no use for them
            own = {label: value for label, value in given.items() if label not in OF_EVERY_ALERT}
            assert own == {label: labels[label] for label in labels.keys() - OF_EVERY_ALERT}


def test_every_dashboard_link_opens_a_page_with_what_the_alert_is_about(followed: Any) -> None:
    grafana = Grafana(lambda _query: [], lambda _query: set())
    _, found = followed
    for name, each in found.items():
        for labels, links in each:
            url = links["dashboard_url"]
            assert url.startswith(GRAFANA)
            page = grafana.open(url.removeprefix(GRAFANA))
            given = {
                key.removeprefix("var-"): value
                for key, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)
                if key.startswith("var-")
            }
            wanted = CARRIED & page.variables.keys() & labels.keys()
            assert given == {label: labels[label] for label in wanted}, (name, url)
            if page.uid in SUBJECT:
                assert SUBJECT[page.uid] in given, (name, url)
            began = float(page.time_range[0]) / 1000
            assert Duration.parse("3h") - 5 < time.time() - began < Duration.parse("3h") + 600, url
            assert page.time_range[1] == "now"


def test_what_to_do_first_is_complete_for_all_that_an_alert_may_be_about(followed: Any) -> None:
    _, found = followed
    for name, each in found.items():
        for labels, texts in each:
            first = texts["description"]
            assert re.fullmatch(r"First: [^{}]+[.?]", first), (name, labels, first)
            assert "<no value>" not in first
            # a label that the alert has not leaves a hole
            assert not re.search(r"  | (on|of) [.,:;?]", first), (name, labels, first)
            assert all(command == command.strip() for command in re.findall(r"`([^`]*)`", first)), (name, labels, first)


# --- the page shows the alert's figure ------------------------------------------------------------------------------


def test_every_page_shows_the_figure_of_its_alert(of_site: dict[str, list[dict[str, Any]]]) -> None:
    rules = RuleSet.read(RULES, ALERTS)
    everything = known_metrics()
    shown = {}
    for path in dashboards.DASHBOARDS:
        page = dashboards.load(path)
        queries = [target["expr"] for panel in dashboards.data_panels(page) for target in panel["targets"]]
        shown[page["uid"]] = set().union(*map(names_in, queries))

    def figures(names: set[str]) -> set[str]:
        """Metrics, and what they are recorded from; what only says which one it is isn't a figure."""
        names = rules.below(names) | names
        metrics = {name for name in names if name in everything or ":" in name or name.startswith("ceph_")}
        below = set().union(*(rules.leaves(name, ()) for name in metrics if name in rules.names()), metrics)
        # one series has all checks of Ceph
        return {name for name in below if not name.endswith(IDENTITY)} - {"up", "ALERTS", "plumbline_ceph_health_check"}

    missing = set()
    for name, each in of_site.items():
        names = set().union(*(names_in(rule["expr"]) for rule in each))
        # what only holds it back is not its figure
        read = figures({word for word in names if not word.startswith("plumbline:maintenance_")} or names)
        verdicts = {word for rule in each for word in names_in(rule["expr"]) if ":" in word or word in ("up", "ALERTS")}
        page = shown[page_of(each[0])]
        if not (read & figures(page) or verdicts & page):
            missing.add(name)
            assert "ALERTS" in page, name
            assert not any(read & figures(other) for other in shown.values()), f"{name}: another page shows its figure"
    assert missing == ONLY_LISTED


# --- what a site says ------------------------------------------------------------------------------------------------


def test_without_grafanas_address_there_is_no_link_to_it() -> None:
    for group in load(ALERTS)["groups"]:
        assert all("dashboard_url" not in rule["annotations"] for rule in group["rules"])


def test_one_setting_points_all_runbooks_at_a_wiki(tmp_path: Path) -> None:
    for name, rules in site(tmp_path, {"runbookBaseUrl": "https://wiki.example.org/plumbline"}).items():
        assert {rule["annotations"]["runbook_url"] for rule in rules} == {
            f"https://wiki.example.org/plumbline/{name}.md"
        }


@pytest.fixture(scope="module")
def by_https(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    return site(tmp_path_factory.mktemp("https"), {"runbookScheme": "https"})


@pytest.mark.parametrize(
    ("series", "link"),
    [
        (('cluster="north",instance="a:10047"', 'cluster="north",instance="b:10047"'), "https://b:10047/runbooks/{}"),
        (('cluster="north",instance="c:10047"', 'cluster="north",instance="a:10047"'), "https://a:10047/runbooks/{}"),
        (('cluster="north",instance="stor01"',), "https://stor01:10047/runbooks/{}"),
        (('cluster="south",instance="a:10047"',), "https://a:10047/runbooks/{}"),
        ((), "alerts/runbooks/{}.md"),
    ],
    ids=["the node itself", "a node of its cluster", "a name without a port", "any node", "no node at all"],
)
def test_which_node_a_runbook_is_asked_of(by_https: Any, tmp_path: Path, series: tuple[str, ...], link: str) -> None:
    name = "PlumblineCollectorFailing"
    (rule,) = by_https[name]
    labels = {"cluster": "north", "instance": "b:10047"}
    fires = firing_as(labels, rule["annotations"] | {"dashboard_url": ""}, name)
    del fires["annotations"]["dashboard_url"], fires["annotations"]["description"]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "one", "rules": [fires]}]}))
    url = link.format(name) + ("?cluster=north&instance=b%3A10047" if series else "")
    expected = {"exp_labels": labels, "exp_annotations": {"runbook_url": url}}
    test = {
        "interval": "1m",
        "input_series": [{"series": f"plumbline_build_info{{{each}}}", "values": "1x3"} for each in series],
        "alert_rule_test": [{"eval_time": "1m", "alertname": name, "exp_alerts": [expected]}],
    }
    (tmp_path / "test.json").write_text(json.dumps({"rule_files": ["rules.json"], "tests": [test]}))
    assert run_tests(tmp_path / "test.json") == ""
