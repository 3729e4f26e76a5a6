"""What docs/scale.md promises of a node's series, and of how far rules look back, is so. Counts only, no times."""

import re
import subprocess

import pytest
import yaml

from scale.documented import PAGE, blocks, command
from support.native_histograms import HISTOGRAMS
from support.paces import seconds
from support.programs import need
from support.rulefiles import names_in
from support.rules import ALERTS, RULES, rules_of
from support.shardable import local_rules
from support.storage_host import CPUS, DISKS, OSDS, PORTS, SUBJECTS, counted, storage_host

SPARE = 0.8
"""A budget that is less used than this is no promise."""
PIECES = {"disk": len(DISKS), "volume": 2 * OSDS, "OSD": OSDS, "port": PORTS, "CPU": CPUS, "canary": 1, "host": 1}
DAY_S = 86400


def budgets():
    """Subject → series of each, and of the whole host, from the page's table."""
    rows = re.findall(r"^\| (?:each |the )?(\w+)[^|]* \| (\d[\d,]*) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return {subject: int(count.replace(",", "")) for subject, count in rows}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Text of a host's page, by the name that the documents give it."""
    return {name: storage_host(tmp_path_factory.mktemp("h"), full=name == "full") for name in ("full", "default")}


@pytest.fixture(scope="module")
def series(pages):
    return counted(pages["full"])


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subjects_series_are_within_their_budget(series, subject):
    each = series[subject] / PIECES[subject]
    assert SPARE * budgets()[subject] <= each <= budgets()[subject]


def test_a_nodes_series_are_within_its_budget(series):
    whole = budgets()["node"]
    assert SPARE * whole <= sum(series.values()) <= whole
    assert sum(budgets()[subject] * pieces for subject, pieces in PIECES.items()) <= 1.1 * whole


@pytest.mark.parametrize(("name", "limits"), [("full", (4500, 2450)), ("default", (2500, 1200))])
def test_a_page_is_within_its_budget_in_both_forms(name, limits, pages):
    """And as the documents say."""
    forms = (pages[name], as_native(pages[name]))
    for page in (PAGE, PAGE.with_name("sizing.md")):
        assert told(page, f"the {name} page") == [round(with_osds(form, OSDS)) for form in forms]
    for form, limit in zip(forms, limits, strict=True):
        assert with_osds(form, OSDS) <= limit


@pytest.mark.parametrize("osds", [6, 12])
def test_hosts_with_fewer_and_more_osds_have_what_is_told_of_them(osds, pages):
    forms = (pages["default"], as_native(pages["default"]))
    words = f"the default page with {osds} OSDs on {osds} disks, and two disks more (calculated)"
    assert told(PAGE.with_name("sizing.md"), words) == [round(with_osds(form, osds)) for form in forms]


def told(page, words):
    (counts,) = re.findall(rf"^\| {re.escape(words)} \| ([\d,]+) \| ([\d,]+) \|", page.read_text("utf-8"), re.MULTILINE)
    return [int(count.replace(",", "")) for count in counts]


def as_native(page):
    """The page with one series for each histogram."""
    parts = {f"{histogram}_{part}" for histogram in HISTOGRAMS for part in ("bucket", "sum")}
    return "".join(line for line in page.splitlines(keepends=True) if re.split(r"[ {]", line)[0] not in parts)


def with_osds(page, osds):
    """Series of such a host with so many OSDs: each has a disk of its own and a volume on each of its two disks."""
    series = counted(page)
    each = sum(series[subject] / PIECES[subject] * count for subject, count in (("OSD", 1), ("disk", 1), ("volume", 2)))
    return sum(series.values()) + (osds - OSDS) * each


def test_the_groups_that_may_move_into_shards_are_those_of_the_page():
    local = local_rules([*rules_of(RULES), *rules_of(ALERTS)])
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    wanted = {group["name"] for group in groups if all(rule["record"] in local for rule in group["rules"])}
    (told,) = re.findall(r"^- the groups of recording rules.*?^- ", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(plumbline-[\w.-]+\.rules)`", told)) == wanted


@pytest.mark.parametrize(
    ("expr", "local"),
    [
        ("plumbline_disk_present == 0", True),
        ("max by (instance) (plumbline_disk_present)", True),
        ("max by (cluster) (plumbline_disk_present)", False),
        ("max without (instance) (plumbline_disk_present)", False),
        ("max without (device) (plumbline_disk_present)", True),
        ("plumbline_disk_present and on (instance) up", True),
        ("plumbline_disk_present and on (cluster) up", False),
        ("plumbline_disk_present unless ignoring (instance) up", False),
        ("absent(up)", False),
        ("vector(1)", True),
        ("ceph_osd_up == 0", False),
        ("plumbline:below:x > 0", False),
        ('label_replace(up, "instance", "$1", "job", "(.*)")', False),
    ],
)
def test_a_rule_that_looks_beyond_its_node_is_told(expr, local):
    rules = [{"alert": "X", "expr": expr}, {"record": "plumbline:below:x", "expr": "sum(up)"}]
    assert ("X" in local_rules(rules)) == local


def test_the_ruler_keeps_what_rules_look_back_at():
    """Its own default is two days."""
    ruler = [each for each in command("thanos rule") if each.startswith("--tsdb.retention=")]
    shards = [each for each in command("prometheus --config.file") if each.startswith("--storage.tsdb.retention.time=")]
    recorded = {rule["record"] for rule in rules_of(RULES)}
    back = {True: 0, False: 0}
    for rule in (*rules_of(RULES), *rules_of(ALERTS)):
        spans = re.findall(r"\[(\w+)[^]]*\](?:\s*offset (\w+))?", rule["expr"])
        spans += [("", offset) for offset in re.findall(r"offset (\w+)", rule["expr"])]
        of_rules = not names_in(rule["expr"]).isdisjoint(recorded)
        back[of_rules] = max(back[of_rules], *(seconds(each) + seconds(offset) for each, offset in spans), 0)
    assert back[True] <= seconds(ruler[0].partition("=")[2])
    assert back[False] <= seconds(shards[0].partition("=")[2])


@pytest.mark.parametrize("kind", [[], ["--agent"]], ids=["shard", "agent"])
def test_the_configurations_are_such(tmp_path, kind):
    name = "prometheus.yml of an agent" if kind else "prometheus.yml of shard 0"
    (tmp_path / "prometheus.yml").write_text(next(each for each in blocks("yaml") if each.startswith(f"# {name}")))
    argv = [need("promtool"), "check", "config", *kind, "--syntax-only", tmp_path / "prometheus.yml"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_groups_fit_into_mimirs_defaults():
    """-ruler.max-rules-per-rule-group and -ruler.max-rule-groups-per-tenant."""
    groups = [group for file in (RULES, ALERTS) for group in yaml.safe_load(file.read_text("utf-8"))["groups"]]
    assert max(len(group["rules"]) for group in groups) <= 20
    assert len(groups) <= 70
