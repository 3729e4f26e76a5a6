"""What docs/scale.md promises of a node's series, and of how far rules look back, is so. Counts only, no times."""

import re
from collections import Counter

import pytest

from scale.documented import PAGE, blocks, command, configuration
from support.promtool import promtool
from support.rulefiles import names_in
from support.rules import ALERTS, RULES, rules_of
from support.shardable import local_rules
from support.storage_host import CPUS, DISKS, OSDS, PORTS, SUBJECTS, counted, storage_host

SPARE = 0.8
"""A budget that is less used than this is no promise."""
PIECES = {"disk": len(DISKS), "volume": 2 * OSDS, "OSD": OSDS, "port": PORTS, "CPU": CPUS, "canary": 1, "host": 1}
DAY_S = 86400
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": DAY_S, "w": 7 * DAY_S}


def budgets():
    """Subject → series of each, and of the whole host, from the page's table."""
    rows = re.findall(r"^\| (?:each |the )?(\w+)[^|]* \| (\d[\d,]*) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return {subject: int(count.replace(",", "")) for subject, count in rows}


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    return counted(storage_host(tmp_path_factory.mktemp("h")))


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subjects_series_are_within_their_budget(series, subject):
    each = series[subject] / PIECES[subject]
    assert SPARE * budgets()[subject] <= each <= budgets()[subject]


def test_a_nodes_series_are_within_its_budget(series):
    whole = budgets()["node"]
    assert SPARE * whole <= sum(series.values()) <= whole
    assert sum(budgets()[subject] * pieces for subject, pieces in PIECES.items()) <= 1.1 * whole


def test_the_rules_kept_in_shards_are_those_of_the_page():
    """Which groups look at one node at a time."""
    found = local_rules([*rules_of(RULES), *rules_of(ALERTS)])
    groups = Counter()
    for file in (RULES, ALERTS):
        for rule in rules_of(file):
            groups[rule.get("alert") or rule["record"]] += 1
    fleet = sorted(name for name in groups if name not in found and name.startswith("Plumbline"))
    told = re.search(r"^<!-- fleet-wide alerts -->\n(.*?)\n\n", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert told, "the list of fleet-wide alerts is gone from docs/scale.md"
    assert sorted(re.findall(r"`(\w+)`", told[1])) == fleet


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
        windows = [_seconds(each) for each in re.findall(r"\[(\w+)", rule["expr"])]
        offsets = [_seconds(each) for each in re.findall(r"offset (\w+)", rule["expr"])]
        of_rules = not names_in(rule["expr"]).isdisjoint(recorded)
        back[of_rules] = max(back[of_rules], max(windows, default=0) + max(offsets, default=0))
    assert back[True] <= _seconds(ruler[0].partition("=")[2])
    assert back[False] <= _seconds(shards[0].partition("=")[2])


def test_the_shards_configuration_is_one(tmp_path):
    (tmp_path / "prometheus.yml").write_text(
        next(each for each in blocks("yaml") if each.startswith("# prometheus.yml of shard 0"))
    )
    assert configuration("prometheus.yml of shard 0")["global"]["external_labels"].keys() == {
        "prometheus", "prometheus_replica",
    }  # fmt: skip
    done = promtool("check", "config", "--syntax-only", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stderr


def _seconds(duration):
    return sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)([smhdw])", duration))
