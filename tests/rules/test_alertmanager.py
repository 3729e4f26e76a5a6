"""The example of an Alertmanager: where each alert goes, and which one speaks when several fire."""

import itertools
import subprocess

import pytest
import yaml

from support.inhibition import audible, load_rules
from support.programs import need
from support.rules import ROOT

CONFIG = ROOT / "alerts" / "alertmanager" / "alertmanager.yaml"
RANK = {"critical": 3, "warning": 2, "info": 1}


@pytest.fixture(scope="module")
def rules():
    return load_rules(CONFIG)


@pytest.fixture
def one(firing):
    """``one(alertname, **labels)``: the first proven label set of an alert, with some labels replaced."""

    def pick(name, **labels):
        wanted = {key: labels.pop(key) for key in ("severity",) if key in labels}
        found = next(
            each
            for each in firing[name]
            if all(each[key] == value for key, value in wanted.items()) and each.get("cluster") in {"north", None}
        )
        return {**found, **labels}

    return pick


def test_amtool_accepts_it():
    done = subprocess.run([need("amtool"), "check-config", CONFIG], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"alertname": "PlumblineWatchdog", "severity": "info", "layer": "self"}, "dead-man"),
        ({"alertname": "PlumblineDown", "severity": "critical", "layer": "self"}, "pager"),
        ({"alertname": "PlumblineTargetsAbsent", "severity": "critical", "layer": "self"}, "pager"),
        ({"alertname": "PlumblineProbeStuck", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineCanaryLatencyExtreme", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineCanaryBudgetBurn", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineCanaryBudgetBurn", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblineCanaryLatencyHigh", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblineNicRingDrops", "severity": "warning", "layer": "network"}, "tickets-network"),
        ({"alertname": "PlumblineCollectorFailing", "severity": "warning", "layer": "self"}, "tickets-monitoring"),
        ({"alertname": "PlumblineBaselineMissing", "severity": "info", "layer": "disk"}, "digest"),
        ({"alertname": "PlumblineDiskHung", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineZfsPoolUnhealthy", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineDiskLatencyOutlier", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblinePcieLinkDegraded", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblinePcieLinkDegraded", "severity": "warning", "layer": "network"}, "tickets-network"),
        ({"alertname": "SomebodyElses", "severity": "warning"}, "tickets"),
        ({"alertname": "WithoutAnything"}, "tickets"),
    ],
)
def test_routes(labels, receiver):
    command = [need("amtool"), "config", "routes", "test", f"--config.file={CONFIG}", f"--verify.receivers={receiver}"]
    command += [f"{key}={value}" for key, value in labels.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_inhibitor_arrives_before_its_target_is_sent():
    waits = yaml.safe_load(CONFIG.read_text("utf-8"))["route"]
    pending, seen = [waits], []
    while pending:
        route = pending.pop()
        seen += [route["group_wait"]] if "group_wait" in route else []
        pending += route.get("routes", [])
    assert seen
    assert all(int(wait.removesuffix("s")) >= 45 for wait in seen)


# --- inhibition: the label sets are those promtool has proven -----------------------------------------------------


def test_no_alert_matches_both_sides(rules, firing):
    for rule, labels in itertools.product(rules, itertools.chain(*firing.values())):
        assert not (rule.is_source(labels) and rule.is_target(labels)), (rule, labels)


def test_every_source_carries_a_label_of_equal(rules, firing):
    """The trap: labels missing on both sides are equal, so a rule without any would mute everything it matches."""
    for rule, labels in itertools.product(rules, itertools.chain(*firing.values())):
        if rule.is_source(labels):
            assert any(labels.get(label) for label in rule.equal), (rule, labels)


def test_every_rule_mutes_something_and_never_louder_than_its_source(rules, firing):
    everything = list(itertools.chain(*firing.values()))
    for rule in rules:
        pairs = [(s, t) for s, t in itertools.product(everything, everything) if rule.mutes(t, [s])]
        assert pairs, rule
        for source, target in pairs:
            assert RANK[source["severity"]] >= RANK[target["severity"]], (source, target)


def test_the_watchdog_and_absent_targets_are_never_muted(rules, firing):
    everything = list(itertools.chain(*firing.values()))
    for name in ("PlumblineWatchdog", "PlumblineTargetsAbsent"):
        for labels in firing[name]:
            assert not any(rule.mutes(labels, everything) for rule in rules)


def test_a_daemon_that_is_down_silences_its_own_node_only(rules, one, firing):
    down = one("PlumblineDown")
    of_no_node = {"PlumblineWatchdog", "PlumblineTargetsAbsent", "PlumblineNicMtuMismatch"}
    there = [one(name, instance=down["instance"]) for name in firing if name not in {"PlumblineDown", *of_no_node}]
    elsewhere = [{**labels, "instance": "stor02.example:10047"} for labels in there]
    assert audible(rules[:1], [down, *there, *elsewhere]) == [down, *elsewhere]


def test_the_same_host_name_in_two_clusters_is_two_nodes(rules, one):
    down, slow = one("PlumblineDown", cluster="south"), one("PlumblineCanaryLatencyHigh")
    assert audible(rules, [down, slow]) == [down, slow]


def test_without_any_cluster_label_it_works_the_same(rules, one):
    down, slow = one("PlumblineDown"), one("PlumblineCanaryLatencyHigh")
    del down["cluster"], slow["cluster"]
    assert audible(rules, [down, slow]) == [down]


def test_network_speaks_before_disk_tickets_but_never_hushes_a_page_or_an_error(rules, one):
    drops = one("PlumblineNicRingDrops")
    for name in ("PlumblineCanaryLatencyHigh", "PlumblineProbeLatencyHigh", "PlumblineProbeThroughputLow"):
        assert audible(rules, [drops, one(name)]) == [drops]
    for name in ("PlumblineCanaryLatencyExtreme", "PlumblineProbeStuck", "PlumblineCanaryFailing"):
        assert audible(rules, [drops, one(name)]) == [drops, one(name)]
    page, ticket = (one("PlumblineCanaryBudgetBurn", severity=severity) for severity in ("critical", "warning"))
    assert audible(rules, [drops, page]) == [drops, page]
    assert audible(rules, [drops, ticket]) == [drops]
    elsewhere = one("PlumblineCanaryLatencyHigh", instance="stor02.example:10047")
    assert audible(rules, [drops, elsewhere]) == [drops, elsewhere]


def test_a_hanging_disk_is_one_page(rules, one):
    stuck = one("PlumblineProbeStuck", probe="canary")
    others = [
        one("PlumblineCanaryOverdue"),
        one("PlumblineCanaryLatencyHigh"),
        one("PlumblineCanaryLatencyExtreme"),
        one("PlumblineProbeOverdue", probe="canary"),
        one("PlumblineProbeFailing", probe="canary"),
    ]
    assert audible(rules, [stuck, *others]) == [stuck]
    another = one("PlumblineCanaryOverdue", probe="canary-b")
    assert audible(rules, [stuck, another]) == [stuck, another]


@pytest.mark.parametrize("reason", ["PlumblineProbeFailing", "PlumblineProbeSkipped"])
def test_why_a_probe_is_overdue_is_said_once(rules, one, reason):
    why, overdue = one(reason), one("PlumblineProbeOverdue")
    assert audible(rules, [why, overdue]) == [why]
    another = one("PlumblineProbeOverdue", probe="fio-read-1m")
    assert audible(rules, [why, another]) == [why, another]


def test_the_catastrophe_speaks_before_the_deviation_of_the_same_operation(rules, one):
    extreme, high = one("PlumblineCanaryLatencyExtreme"), one("PlumblineCanaryLatencyHigh")
    burn = [one("PlumblineCanaryBudgetBurn", severity=severity) for severity in ("critical", "warning")]
    assert audible(rules, [extreme, high, *burn]) == [extreme]
    writes = {**high, "operation": "write", "workload": "randwrite-4k-qd1-j1-dsync"}
    assert audible(rules, [extreme, writes]) == [extreme, writes]


def test_the_canary_speaks_before_the_slower_witness(rules, one):
    high, probe = one("PlumblineCanaryLatencyHigh"), one("PlumblineProbeLatencyHigh")
    assert audible(rules, [high, probe]) == [high]
    other_class = {**probe, "device_class": "hdd"}
    assert audible(rules, [high, other_class]) == [high, other_class]


def test_the_page_speaks_before_the_ticket_of_the_same_alert(rules, one):
    page, ticket = (one("PlumblineCanaryBudgetBurn", severity=severity) for severity in ("critical", "warning"))
    assert audible(rules, [page, ticket]) == [page]
    other = {**ticket, "operation": "write", "workload": "randwrite-4k-qd1-j1-dsync"}
    assert audible(rules, [page, other]) == [page, other]


def test_what_has_been_amiss_for_weeks_never_hides_a_disk(rules, one):
    slow = one("PlumblineCanaryLatencyHigh")
    for name in ("PlumblineNicLinkSlow", "PlumblineBondSlaveDown", "PlumblineNicMtuMismatch", "PlumblineFindingOpen"):
        assert audible(rules, [one(name), slow]) == [one(name), slow]


def test_a_small_ring_speaks_for_the_drops_of_its_own_interface(rules, one):
    small, drops = one("PlumblineNicRingSmall"), one("PlumblineNicRingDrops")
    elsewhere = one("PlumblineNicRingDrops", device="ens2f1")
    assert audible(rules, [small, drops, elsewhere]) == [small, elsewhere]


# --- within one disk ----------------------------------------------------------------------------------------------

DISK = "sdg"
SLOW = ("PlumblineDiskLatencyOutlier", "PlumblineDiskLatencyRegressed")


def test_a_disk_that_completes_nothing_is_one_page(rules, one):
    hung = one("PlumblineDiskHung", device=DISK)
    others = [one(name, device=DISK) for name in (*SLOW, "PlumblineDiskHealthUnavailable")]
    assert audible(rules, [hung, *others]) == [hung]
    errors, twin = one("PlumblineDiskMediaErrors", device=DISK), one(SLOW[0], device="sdh")
    assert audible(rules, [hung, errors, twin]) == [hung, errors, twin]


def test_a_disk_that_has_left_says_nothing_else(rules, one):
    missing = one("PlumblineDiskMissing", device=DISK)
    others = [
        one(name, device=DISK)
        for name in (*SLOW, "PlumblineDiskFailing", "PlumblineDiskWearOut", "PlumblineDiskHot", "PlumblinePcieErrors")
    ]
    assert audible(rules, [missing, *others]) == [missing]


def test_but_what_it_leaves_behind_is_told(rules, one):
    missing = one("PlumblineDiskMissing", device=DISK)
    stays = [
        one("PlumblineArrayDegraded"),
        one("PlumblineZfsPoolUnhealthy", severity="warning"),
        one("PlumblineMultipathPathLost"),
        one("PlumblineDiskQueueSettings"),
        one("PlumblineDiskHung", device=DISK),
        one("PlumblineDiskFailing", device="sdh"),
        one("PlumblineDiskFailing", device=DISK, instance="stor02.example:10047"),
    ]
    assert audible(rules, [missing, *stays]) == [missing, *stays]


@pytest.mark.parametrize(
    "cause",
    ["PlumblineDiskFailing", "PlumblineDiskMediaErrors", "PlumblineDiskPendingSectors", "PlumblineDiskHot"],
)
def test_why_a_disk_is_slow_is_said_once(rules, one, cause):
    why, slow, twin = one(cause, device=DISK), [one(name, device=DISK) for name in SLOW], one(SLOW[0], device="sdh")
    assert audible(rules, [why, *slow, twin]) == [why, twin]


def test_a_narrow_link_explains_an_outlier_of_its_own_disk_but_not_a_change(rules, one):
    link = one("PlumblinePcieLinkDegraded", device="nvme0n1")
    outlier, change = (one(name, device="nvme0n1") for name in SLOW)
    twin = one(SLOW[0], device="nvme1n1")
    assert audible(rules, [link, outlier, change, twin]) == [link, twin]
    assert audible(rules, [link, change]) == [link, change]
    adapter = {key: value for key, value in link.items() if key != "device"}
    assert audible(rules, [adapter, outlier]) == [adapter, outlier]


def test_apart_from_its_peers_before_apart_from_its_past(rules, one):
    outlier, change = (one(name, device=DISK, operation="read") for name in SLOW)
    writes = {**change, "operation": "write"}
    assert audible(rules, [outlier, change, writes]) == [outlier, writes]


def test_no_network_hides_what_the_kernel_times_at_the_disk(rules, one):
    drops = one("PlumblineNicRingDrops")
    for name in SLOW:
        assert audible(rules, [drops, one(name)]) == [drops, one(name)]


def test_the_page_of_one_pool_leaves_the_ticket_of_another(rules, one):
    page = one("PlumblineZfsPoolUnhealthy", severity="critical", pool="tank")
    ticket = one("PlumblineZfsPoolUnhealthy", severity="warning", pool="rpool")
    assert audible(rules, [page, ticket]) == [page, ticket]
    assert audible(rules, [page, {**ticket, "pool": "tank"}]) == [page]
