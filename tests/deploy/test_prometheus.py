"""deploy/prometheus: configurations that Prometheus takes, and keep-lists that keep exactly what is read."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.prometheus import keeplist

from plumbline.capacity import facts
from plumbline.core.words import DAY_S
from plumbline.metrics.default_page import REDUCTIONS
from plumbline.report import classes
from plumbline.report.period import Period
from plumbline.report.queries import Queries
from support import promql
from support.dashboards import DASHBOARDS, expressions, label_values, load, variables
from support.metrics import FOREIGN, OF_PROMETHEUS, ROOT, SNMP, known_metrics
from support.native_histograms import HISTOGRAMS
from support.programs import need
from support.promtool import need_prometheus_3
from support.rulefiles import RuleSet, metric_of, names_in
from support.rulefiles import load as load_yaml
from support.rules import ALERTS, NATIVE, RULES, TEST_FILES, rules_of

FOLDER = ROOT / "deploy" / "prometheus"
CONFIGS = sorted(FOLDER.glob("*.yml"))
LISTS = keeplist.names(ROOT)
KEPT = {name for names in LISTS.values() for name in names}
OF_PROMETHEUS_ITSELF = {"ALERTS", "ALERTS_FOR_STATE", "up", "scrape_duration_seconds"}
"""No relabelling touches them."""


def installed(config: Path, folder: Path, *, lists: bool = True) -> Path:
    """As README.md says: the file, its lists put in, beside targets, rules and secrets."""
    text = config.read_text("utf-8")
    (folder / config.name).write_text(keeplist.into(text, LISTS) if lists else text)
    shutil.copytree(FOLDER / "targets", folder / "targets", dirs_exist_ok=True)
    shutil.copytree(ROOT / "alerts" / "out", folder / "plumbline", dirs_exist_ok=True)
    (folder / "tls").mkdir(exist_ok=True)
    for name in re.findall(r"tls/([\w.-]+)", text):
        (folder / "tls" / name).write_text("not a real one\n")
    return folder / config.name


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_prometheus_takes_it(config: Path, tmp_path: Path) -> None:
    for lists in (False, True):
        file = installed(config, tmp_path, lists=lists)
        if config.stem == "rook":  # Debian builds Prometheus without Kubernetes
            text = re.sub(
                r"kubernetes_sd_configs:\n(\s+)- role: pod\n\s+namespaces: .*", r"file_sd_configs:\n\1- files: [x.yml]",
                file.read_text(),
            )  # fmt: skip
            assert "kubernetes_sd" not in text
            file.write_text(text)
        argv = [need("promtool"), "check", "config", *(["--agent"] if config.stem == "agent" else []), file]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "FAILED" not in done.stdout + done.stderr


def jobs(config: Path, folder: Path) -> dict[str, dict[str, Any]]:
    content = yaml.safe_load(installed(config, folder).read_text())
    return {job["job_name"]: job for job in content["scrape_configs"]}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_job_is_as_the_rules_expect_it(config: Path, tmp_path: Path) -> None:
    found = jobs(config, tmp_path)
    assert "plumbline" in found  # common.libsonnet's plumblineSelector
    for name, job in found.items():
        kept = [each for each in job.get("metric_relabel_configs", []) if each["action"] == "keep"]
        wanted = {"plumbline": "plumbline", "ceph": "ceph", "ceph-exporter": "ceph", "prometheus": "prometheus"}
        assert [each["regex"].split("|") for each in kept] == ([LISTS[wanted[name]]] if name in wanted else [])
        assert job.get("honor_labels", False) == name.startswith("ceph"), name
        targets = {each.get("target_label") for each in job.get("relabel_configs", [])}
        if name in {"plumbline", "ceph-exporter", "node"} and "http_sd_configs" not in job:
            assert "instance" in targets, name
        if "http_sd_configs" in job or "kubernetes_sd_configs" in job:
            assert "cluster" in targets, name


@pytest.mark.parametrize(
    ("address", "given", "instance"),
    [
        ("stor01.example:10047", "", "stor01.example"),
        ("stor01:10047", "", "stor01"),
        ("192.0.2.14:10047", "stor04.example", None),
        ("[2001:db8::1]:10047", "", None),  # no name to be had: Prometheus' own way, address and port
    ],
)
def test_a_node_is_called_by_its_host_name(address: str, given: str, instance: str | None, tmp_path: Path) -> None:
    (relabelling,) = jobs(FOLDER / "package.yml", tmp_path)["plumbline"]["relabel_configs"]
    found = re.fullmatch(relabelling["regex"], relabelling["separator"].join([given, address]))
    assert (found and found[1]) == instance


def test_committed_lists_are_fresh() -> None:
    assert keeplist.main(["--check"]) == 0
    for path, text in keeplist.rendered(ROOT).items():
        if path == keeplist.DEFAULT:
            continue
        (only,) = yaml.safe_load(text)["metric_relabel_configs"]
        assert only == {"source_labels": ["__name__"], "action": "keep", "regex": "|".join(LISTS[path.stem])}


def read_by_queries() -> set[str]:
    """By the parser of the tests: what rules, templates and panels read, recorded series left out."""
    queries = [rule["expr"] for rule in RuleSet.read(RULES, ALERTS).rules()]
    for path in DASHBOARDS:
        page = load(path)
        queries += [expr for _, expr in expressions(page)]
        queries += [label_values(each["query"])[0] for each in variables(page).values() if each["type"] == "query"]
    found = {each.metric for query in queries for each in promql.selectors(promql.parse(query))}
    assert "" not in found  # by __name__ alone: the list could not know
    return {name for name in found if ":" not in name}


def test_the_lists_have_what_is_read_and_nothing_else() -> None:
    texts = [text for rule in RuleSet.read(RULES, ALERTS).rules() for text in rule.get("annotations", {}).values()]
    assert [text for text in texts if "__name__" in text] == []  # nor could the list know these
    templates = {word for text in texts for query in re.findall(r"`([^`]+)`", text) for word in names_in(query)}
    sources = "".join((ROOT / each).read_text() for each in keeplist.COMMANDS)
    commands = set(re.findall(r"\b(?:plumbline|ceph)_\w+", sources))
    read = read_by_queries() - OF_PROMETHEUS_ITSELF - SNMP.keys()  # switches are another job, without lists
    assert read - KEPT == set()
    assert KEPT - read - templates - commands == keeplist.ASKED_FOR
    ours = {name for name in KEPT if name.startswith(("plumbline_", "process_"))}
    known = known_metrics() | OF_PROMETHEUS.keys() | FOREIGN.keys()
    assert {name for name in ours if name not in known} == set()


def read_by_reviews() -> set[str]:
    """By the parser of the tests: what `plumbline report` and `plumbline capacity what-if` ask for."""
    asked = Queries(Period(0, 90 * DAY_S))
    sizes = {each.key.removeprefix("size of "): 1 for each in asked.sizes()}
    every = (*asked.coverage(), *asked.everything(sizes), *classes.queries(asked), *facts.queries(0, None))
    return {each.metric for query in {one.query for one in every} for each in promql.selectors(promql.parse(query))}


def test_the_lists_and_the_remote_storage_of_the_docs_keep_what_reviews_read() -> None:
    read = read_by_reviews()
    assert {name for name in read if ":" not in name} - KEPT - OF_PROMETHEUS_ITSELF == set()
    (block,) = re.findall(r"```yaml\n(# prometheus\.yml\n.*?)```", (ROOT / "docs/report.md").read_text(), re.DOTALL)
    (rule,) = yaml.safe_load(block)["remote_write"][0]["write_relabel_configs"]
    assert {name for name in read if not re.fullmatch(rule["regex"], name)} == set()


def test_no_rule_test_needs_what_the_lists_drop() -> None:
    rules = RuleSet.read(RULES, ALERTS)
    read = set().union(*(names_in(rule["expr"]) for rule in rules.rules()))
    given = {
        metric_of(series["series"])
        for file in TEST_FILES
        for test in load_yaml(file)["tests"]
        for series in test["input_series"]
    }
    dropped = {name for name in given if ":" not in name} - KEPT - OF_PROMETHEUS_ITSELF - SNMP.keys()
    assert dropped & read == set()
    assert len(given & KEPT) > 100


def test_a_list_can_be_put_into_any_configuration() -> None:
    text = keeplist.into("a:\n  # keep-list: ceph\nb: 1\n", {"ceph": ["ceph_x"]}, ["node_.*"])
    (only,) = yaml.safe_load(text)["a"]["metric_relabel_configs"]
    assert only["regex"] == "ceph_x|node_.*"
    with pytest.raises(KeyError):
        keeplist.into("# keep-list: nonsense\n", {})


def test_a_mistake_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text("# keep-list: nonsense\n")
    assert keeplist.main(["--into", str(tmp_path / "x.yml")]) == 2
    assert "nonsense" in capsys.readouterr().err


# --- the default page -----------------------------------------------------------------------------------------------


def read_by_alerts_and_upper_pages() -> set[str]:
    """By the parser of the tests: scraped metrics, those of recorded series included."""
    rules = list(RuleSet.read(RULES, ALERTS).rules())
    asked = [rule["expr"] for rule in rules if "alert" in rule]
    for path in DASHBOARDS:
        page = load(path)
        if not {"plumbline-l0", "plumbline-l1"}.isdisjoint(page["tags"]):
            asked += [expr for _, expr in expressions(page)]
            asked += [label_values(each["query"])[0] for each in variables(page).values() if each["type"] == "query"]
    found, done = set[str](), set[str]()
    while asked:
        for each in promql.selectors(promql.parse(asked.pop())):
            if each.metric not in done and ":" in each.metric:
                asked += [rule["expr"] for rule in rules if rule.get("record") == each.metric]
            done.add(each.metric)
            found |= {each.metric} - {name for name in done if ":" in name}
    return found


def test_the_default_page_has_what_alerts_and_upper_pages_read() -> None:
    shown = set(keeplist.default_names(ROOT))
    stems = {re.sub("_(bucket|sum|count)$", "", name) for name in read_by_alerts_and_upper_pages()}
    read = {name for name in stems if name.startswith(("plumbline_", "process_"))}
    assert len(read) > 100
    assert read - shown == set()
    everything = {re.sub("_(bucket|sum|count)$", "", name) for name in KEPT}
    assert shown < everything
    assert not shown & {"plumbline_disk_io_weighted_seconds_total", "plumbline_osd_fragmentation_ratio"}


def test_no_test_of_an_alert_needs_what_the_default_page_leaves_out_of_a_metric() -> None:
    """A volume's bytes, say. Where a disk has a histogram, its seconds are in it."""
    given, lost = 0, []
    for file in TEST_FILES:
        for test in load_yaml(file)["tests"]:
            if not test.get("alert_rule_test"):
                continue
            for series in test["input_series"]:
                less = REDUCTIONS.get(metric_of(series["series"]))
                given += less is not None
                labels = dict(re.findall(r'(\w+)="([^"]*)"', series["series"]))
                if less and any(pattern.fullmatch(labels.get(label, "")) for label, pattern in less.without):
                    lost.append((file.name, series["series"]))
    assert given > 50
    assert lost == []


ASKED = re.compile(r"^( +)# (params: \{profile: \[full\]\})$", re.MULTILINE)


def test_one_line_asks_for_the_full_page(tmp_path: Path) -> None:
    for config in OFFERED:
        text, lines = ASKED.subn(r"\1\2", config.read_text("utf-8"))
        assert lines == 1, config
        if config.suffix == ".yml":
            jobs = yaml.safe_load(text)["scrape_configs"]
            assert [job["job_name"] for job in jobs if "params" in job] == ["plumbline"]
    file = installed(FOLDER / "package.yml", tmp_path)
    file.write_text(ASKED.sub(r"\1\2", file.read_text("utf-8")))
    done = subprocess.run([need("promtool"), "check", "config", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# --- native histograms ------------------------------------------------------------------------------------------------

SWITCH = re.compile(r"^( +)# (convert_classic_histograms_to_nhcb: true)$", re.MULTILINE)
OFFERED = [*CONFIGS, ROOT / "deploy" / "compose" / "prometheus.yml", ROOT / "deploy" / "cephadm" / "prometheus.yml.j2"]


@pytest.mark.parametrize("config", OFFERED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_one_line_makes_histograms_native(config: Path, tmp_path: Path) -> None:
    """It stands in the daemons' job and in no other: Ceph's histograms are read by others, too."""
    text, lines = SWITCH.subn(r"\1\2", config.read_text("utf-8"))
    assert lines == 1
    if config.suffix == ".yml":
        jobs = yaml.safe_load(text)["scrape_configs"]
        assert [job["job_name"] for job in jobs if "convert_classic_histograms_to_nhcb" in job] == ["plumbline"]
    else:
        assert (
            text.index("job_name: plumbline") < text.index("convert_classic") < text.index("job_name: plumbline") + 250
        )


def test_prometheus_3_takes_the_line(tmp_path: Path) -> None:
    need_prometheus_3()
    file = installed(FOLDER / "package.yml", tmp_path)
    file.write_text(SWITCH.sub(r"\1\2", file.read_text("utf-8")))
    shutil.copytree(ROOT / "alerts" / "out-native", tmp_path / "plumbline", dirs_exist_ok=True)
    done = subprocess.run([need("promtool"), "check", "config", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_keep_list_has_what_rules_for_native_histograms_read() -> None:
    read = {name for path in NATIVE for rule in rules_of(path) for name in names_in(rule["expr"])}
    histograms = read & HISTOGRAMS
    assert histograms
    assert histograms <= KEPT
