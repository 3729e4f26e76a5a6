"""The example of an Alertmanager: where each alert goes, and which one speaks when several fire."""

import itertools
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import rjsonnet
import yaml

from support.alertmanager import WITHOUT_JIRA
from support.inhibition import audible, load_rules
from support.offenders import for_every
from support.paces import seconds
from support.programs import need
from support.proven import ABOVE_DISK, CLIENTS, everything
from support.rules import ROOT

CONFIG = ROOT / "alerts" / "alertmanager" / "alertmanager.yaml"
RECEIVERS = sorted(CONFIG.parent.glob("receivers-*.yaml"))
INHIBITORS = {
    "PlumblineRecoveryUnderWay",
    "PlumblineProbeTargetDown",
    "PlumblineCanaryReplicaSlow",
    "PlumblineLatencyExplained",
    "PlumblineMaintenance",
    "PlumblineLayerSettling",
}
"""Told to nobody, so that what they silence may be louder: a recovery, a host that is down, a slow OSD."""
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


@pytest.fixture(scope="module")
def world(firing):
    """Every proven label set, and the layered alerts in each layer."""
    return everything(firing)


def check_config(path):
    done = run_amtool("check-config", path)
    assert done.returncode == 0, done.stdout + done.stderr


def run_amtool(*arguments):
    return subprocess.run([need("amtool"), *arguments], capture_output=True, text=True, check=False)


def test_amtool_accepts_it():
    check_config(CONFIG)


@pytest.mark.parametrize("path", RECEIVERS, ids=lambda path: path.stem)
def test_amtool_accepts_it_with_each_example_of_receivers(path, tmp_path):
    """As their comments say: they replace those of the same name."""
    document, example = (yaml.safe_load(file.read_text("utf-8")) for file in (CONFIG, path))
    replaced = {receiver["name"]: receiver for receiver in example["receivers"]}
    assert replaced.keys() <= {receiver["name"] for receiver in document["receivers"]}
    document["receivers"] = [replaced.get(receiver["name"], receiver) for receiver in document["receivers"]]
    assert example.keys() <= {"global", "receivers"}
    merged = tmp_path / "alertmanager.yaml"
    merged.write_text(yaml.safe_dump(document | {"global": example.get("global", {})}))
    version = run_amtool("--version")
    if path.stem != "receivers-jira" or not WITHOUT_JIRA.search(version.stdout + version.stderr):
        check_config(merged)
    else:
        done = run_amtool("check-config", merged)
        assert re.search(r"field \w+_configs not found", done.stdout + done.stderr), "as its comment says"


def test_there_is_an_example_for_each_kind_of_receiver():
    kinds = {key for path in RECEIVERS for each in yaml.safe_load(path.read_text("utf-8"))["receivers"] for key in each}
    assert kinds >= {f"{name}_configs" for name in ("email", "webhook", "slack", "pagerduty", "opsgenie", "jira")}


@pytest.mark.parametrize("path", [CONFIG, *RECEIVERS], ids=lambda path: path.stem)
def test_no_file_holds_a_secret(path):
    """Only the names of files that do: every setting of Alertmanager that is one, without its `_file`."""
    secret = re.compile(
        r"\b(password|auth_password|smtp_auth_password|smtp_auth_secret|credentials|bearer_token|routing_key|service_key"
        # Slack's is one, Opsgenie's and Jira's are public
        r"|api_url(?!: https://(?:api\.eu\.opsgenie|example\.atlassian)\.)|slack_api_url|api_key|secret|client_secret|bot_token)\s*:"
    )
    assert not secret.search(path.read_text("utf-8"))


@for_every(
    ("labels", "receiver"),
    [
        ({"alertname": "PlumblineWatchdog", "severity": "info", "layer": "self"}, "dead-man"),
        ({"alertname": "PlumblineDown", "severity": "critical", "layer": "self"}, "pager"),
        ({"alertname": "PlumblineTargetsAbsent", "severity": "critical", "layer": "self"}, "pager"),
        ({"alertname": "PlumblineDown", "severity": "warning", "layer": "self"}, "tickets-monitoring"),
        ({"alertname": "PlumblineProbeStuck", "severity": "critical", "layer": "rados"}, "pager"),
        ({"alertname": "PlumblineProbeStuck", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblineCanaryLatencyExtreme", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineCanaryBudgetBurn", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineCanaryBudgetBurn", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblineCanaryLatencyHigh", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblineNicRingDrops", "severity": "warning", "layer": "network"}, "tickets-network"),
        ({"alertname": "PlumblineCollectorFailing", "severity": "warning", "layer": "self"}, "tickets-monitoring"),
        ({"alertname": "PlumblineBaselineMissing", "severity": "info", "layer": "disk"}, "digest"),
        (
            {"alertname": "PlumblineDiskHung", "severity": "warning", "layer": "disk", "device": "sdg"},
            "tickets-storage",
        ),
        (
            {"alertname": "PlumblineNicErrors", "severity": "warning", "layer": "network", "device": "ens1f0"},
            "tickets-network",
        ),
        ({"alertname": "PlumblineZfsPoolUnhealthy", "severity": "critical", "layer": "disk"}, "pager"),
        ({"alertname": "PlumblineDiskLatencyOutlier", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblinePcieLinkDegraded", "severity": "warning", "layer": "disk"}, "tickets-storage"),
        ({"alertname": "PlumblinePcieLinkDegraded", "severity": "warning", "layer": "network"}, "tickets-network"),
        ({"alertname": "PlumblineRecoveryUnderWay", "severity": "info", "layer": "rados"}, "null"),
        ({"alertname": "PlumblineCanaryReplicaSlow", "severity": "info", "layer": "osd"}, "null"),
        ({"alertname": "PlumblineProbeTargetDown", "severity": "info", "layer": "osd", "probe": "rados/osd.3"}, "null"),
        (
            {"alertname": "PlumblinePoolFullSoon", "severity": "warning", "layer": "rados", "signal": "capacity"},
            "tickets-storage",
        ),
        ({"alertname": "PlumblinePoolFull", "severity": "critical", "layer": "rados", "signal": "capacity"}, "pager"),
        (
            {
                "alertname": "PlumblineCapacityHostLossUnsafe",
                "severity": "warning",
                "layer": "rados",
                "signal": "capacity",
            },
            "tickets-storage",
        ),
        (
            {
                "alertname": "PlumblineCapacityHeadroomLow",
                "severity": "warning",
                "layer": "network",
                "signal": "capacity",
            },
            "tickets-network",
        ),
        (
            {"alertname": "PlumblineCapacityNoSelfHealing", "severity": "info", "layer": "rados", "signal": "capacity"},
            "digest",
        ),
        (
            {"alertname": "PlumblineProbeLatencyHigh", "severity": "warning", "layer": "client", "probe": "fio"},
            "tickets-storage",
        ),
        ({"alertname": "SomebodyElses", "severity": "warning"}, "tickets"),
        ({"alertname": "WithoutAnything"}, "tickets"),
    ],
)
def test_routes(labels, receiver):
    command = [need("amtool"), "config", "routes", "test", f"--config.file={CONFIG}", f"--verify.receivers={receiver}"]
    command += [f"{key}={value}" for key, value in labels.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def owner(labels):
    """Who is told of an alert of ours, said a second time and simply."""
    if labels["alertname"] == "PlumblineWatchdog":
        return "dead-man"
    if labels["alertname"] in INHIBITORS - {"PlumblineMaintenance"}:  # which is news as well
        return "null"
    if labels["severity"] == "critical":
        return "pager"
    if labels["severity"] == "info":
        return "digest"
    return {"network": "tickets-network", "self": "tickets-monitoring"}.get(labels["layer"], "tickets-storage")


def test_every_alert_has_an_owner(world, alerts):
    """None of ours falls through to the receiver for whatever is left."""
    sets = {
        (labels["alertname"], labels["severity"], labels["layer"], "probe" in labels): labels for labels in world
    }.values()
    assert {labels["alertname"] for labels in sets} == {rule["alert"] for rule in alerts}
    amtool = need("amtool")

    def routed(labels):
        command = [amtool, "config", "routes", "test", f"--config.file={CONFIG}"]
        command += [f"{key}={value}" for key, value in labels.items()]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return said.splitlines()[-1].strip()  # 0.28 warns of a label's value before that

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(routed, sets))
    assert [(labels, to) for labels, to in zip(sets, found, strict=True) if to != owner(labels)] == []


def test_pages_are_one_for_a_layer_of_a_cluster_and_tickets_one_for_a_part():
    """Of what clients use, of the daemons, and of what probes find between hosts, tickets are one for a layer, too."""
    route = yaml.safe_load(CONFIG.read_text("utf-8"))["route"]
    assert route["group_by"] == ["cluster", "layer"]
    part = ["cluster", "layer", "instance", "device", "ceph_daemon", "pool", "probe"]
    grouped = {tuple(each["matchers"]): each["group_by"] for each in route["routes"] if "group_by" in each}
    assert grouped == {
        ("alertname = PlumblineWatchdog",): ["alertname"],
        ("severity = critical",): ["cluster", "layer"],
        ("signal = capacity", "layer = network"): part,
        ("signal = capacity",): part,
        ("layer = network", 'device != ""', 'probe = ""'): part,
        ('layer =~ "disk|osd"',): part,
    }


def test_time_intervals_say_their_zone_and_stand_where_alerts_end_up():
    """They aren't inherited: an interval on a route with routes below would hold back only what those leave."""
    document = yaml.safe_load(CONFIG.read_text("utf-8"))
    assert all(span["location"] for each in document["time_intervals"] for span in each["time_intervals"])
    routes = document["route"]["routes"]
    capacity = [each for each in routes if "active_time_intervals" in each]
    owned = [["signal = capacity", f"layer = {layer}"] for layer in ("self", "network")]
    found = [(each["matchers"], each.get("routes")) for each in capacity]
    assert found == [*((own, None) for own in owned), (["signal = capacity"], None)]
    # what is planned is announced (docs/maintenance.md): no hour of the week mutes anything
    assert not [each for each in routes if "mute_time_intervals" in each or "routes" in each]


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


def test_no_alert_matches_both_sides(rules, world):
    for rule, labels in itertools.product(rules, world):
        assert not (rule.is_source(labels) and rule.is_target(labels)), (rule, labels)


def test_every_source_carries_a_label_of_equal(rules, firing):
    """The trap: labels missing on both sides are equal, so a rule without any would mute everything it matches.

    Rules about a whole cluster are meant so: where nobody sets the label, all is one cluster.
    """
    for rule in rules:
        of_a_layer = {"cluster", "layer"} <= set(rule.equal)
        of_osds = {"cluster", "device_class"} <= set(rule.equal)
        assert rule.equal == ("cluster",) or of_a_layer or of_osds or {"cluster", "instance"} <= set(rule.equal)
    rules = [rule for rule in rules if rule.equal != ("cluster",)]
    for rule, labels in itertools.product(rules, itertools.chain(*firing.values())):
        if rule.is_source(labels):
            assert any(labels.get(label) for label in rule.equal), (rule, labels)


def test_every_rule_mutes_something_and_never_louder_than_its_source(rules, world):
    for rule in rules:
        sources = [labels for labels in world if rule.is_source(labels)]
        pairs = [(s, t) for s, t in itertools.product(sources, world) if rule.mutes(t, [s])]
        assert pairs, rule
        for source, target in pairs:
            assert source["alertname"] in INHIBITORS or RANK[source["severity"]] >= RANK[target["severity"]], (
                source,
                target,
            )


def test_what_holds_back_recovery_latency_does_not_come_after_it(alerts):
    """Otherwise the target is sent once and then falls silent."""
    waits = {rule["alert"]: seconds(rule.get("for", "0s")) for rule in alerts}
    late = min(
        seconds(rule.get("for", "0s"))
        for rule in alerts
        if rule["labels"]["signal"] == "latency" and rule["labels"]["severity"] != "critical"
        if rule["alert"] != "PlumblineCanaryLatencyHigh"  # its own rule asks for recovery
    )
    assert waits["PlumblineRecoveryUnderWay"] <= late
    assert waits["PlumblineProbeTargetDown"] <= min(
        waits[name] for name in waits if "Probe" in name or "Canary" in name
    )


def test_what_has_just_paged_holds_back_longer_than_a_page_above_it_lasts(alerts):
    """A page is kept firing from when it was last true, and what waits for the layer below is true last."""
    (settling,) = [_kept(rule) for rule in alerts if rule["alert"] == "PlumblineLayerSettling"]
    pages = [
        _kept(rule)
        for rule in alerts
        if rule["labels"]["signal"] == "latency" and rule["labels"]["severity"] == "critical"
    ]
    assert 0 < max(pages) < settling


def _kept(rule):
    return seconds(rule.get("keep_firing_for", "0s"))


def test_the_watchdog_and_absent_targets_are_never_muted(rules, firing):
    everything = list(itertools.chain(*firing.values()))
    for name in ("PlumblineWatchdog", "PlumblineTargetsAbsent"):
        for labels in firing[name]:
            assert not any(rule.mutes(labels, everything) for rule in rules)


def test_a_node_that_is_down_silences_itself_only(rules, one, firing):
    down = one("PlumblineDown", severity="critical", instance="stor01.example:10047")
    of_no_node = {"PlumblineWatchdog", "PlumblineTargetsAbsent", "PlumblineNicMtuMismatch", "PlumblineRecoveryUnderWay",
                  "PlumblineCephLabelsWrong"}  # fmt: skip
    there = [one(name, instance=down["instance"]) for name in firing if name not in {"PlumblineDown", *of_no_node}]
    elsewhere = [{**labels, "instance": "stor02.example:10047"} for labels in there]
    assert audible(rules[:2], [down, *there, *elsewhere]) == [down, *elsewhere]
    alone = one("PlumblineDown", severity="warning", instance=down["instance"])
    pages = [labels for labels in there if labels["severity"] == "critical"]
    assert audible(rules[:2], [alone, *there]) == [alone, *pages]


def test_the_same_host_name_in_two_clusters_is_two_nodes(rules, one):
    down, slow = one("PlumblineDown", cluster="south"), one("PlumblineCanaryLatencyHigh")
    assert audible(rules, [down, slow]) == [down, slow]


def test_without_any_cluster_label_it_works_the_same(rules, one):
    slow = one("PlumblineCanaryLatencyHigh")
    down = one("PlumblineDown", severity="critical", instance=slow["instance"])
    del down["cluster"], slow["cluster"]
    assert audible(rules, [down, slow]) == [down]


# --- a host that is down, seen from another -----------------------------------------------------------------------


def test_what_a_probe_says_of_an_osd_whose_host_is_down_is_silent(rules, one):
    there = {"probe": "rados/osd.3", "instance": "stor01.example:10047"}
    down, target = one("PlumblineDown", instance="stor02.example:10047"), one("PlumblineProbeTargetDown", **there)
    silent = [
        one("PlumblineProbeStuck", severity="critical", layer="rados", **there),
        one("PlumblineCanaryLatencyHigh", layer="rados", **there),
        one("PlumblineCanaryOverdue", **there),
        one("PlumblineCanaryFailing", **there, error="ETIMEDOUT"),
    ]
    heard = [
        one("PlumblineCanaryFailing", **there, error="EIO"),
        one("PlumblineCanaryFailing", **there),
        one("PlumblineProbeStuck", severity="critical", layer="rados", probe="rados/osd.4", instance=there["instance"]),
        one("PlumblineProbeStuck", severity="critical", layer="rados", **{**there, "cluster": "south"}),
    ]
    assert audible(rules, [down, target, *silent, *heard]) == [down, target, *heard]


def test_a_canary_that_waits_for_a_replica_is_silent_about_its_writes_alone(rules, one):
    there = {"probe": "rados/osd.5", "instance": "stor01.example:10047", "layer": "rados"}
    slow = one("PlumblineOsdLimited", ceph_daemon="osd.1", instance="stor02.example:10047")
    waits = {**one("PlumblineCanaryReplicaSlow", target="osd.5"), **there, "layer": "osd"}
    names = ("PlumblineCanaryLatencyHigh", "PlumblineCanaryBudgetBurn")
    pages = ("PlumblineCanaryLatencyExtreme", "PlumblineCanaryBudgetBurn")
    silent = [
        one(name, severity="warning", operation=operation, **there)
        for name in names
        for operation in ("write", "remove")
    ]
    high = {"name": "PlumblineCanaryLatencyHigh", "severity": "warning"}
    heard = [
        one(**high, operation="read", **there),
        one(**high, operation="write", **{**there, "probe": "rados/osd.6"}),
        one(**high, operation="write", **{**there, "cluster": "south"}),
        *(one(name, severity="critical", operation="write", **there) for name in pages),
        one("PlumblineCanaryFailing", operation="write", **there),
    ]
    own = rules_from(rules, "PlumblineCanaryReplicaSlow")
    assert audible(own, [slow, waits, *silent, *heard]) == [slow, waits, *heard]
    assert audible(own, [slow, *silent]) == [slow, *silent]


# --- recovery -----------------------------------------------------------------------------------------------------


def test_recovery_holds_back_tickets_about_latency_of_its_cluster_and_nothing_else(rules, world):
    recovery = next(each for each in world if each["alertname"] == "PlumblineRecoveryUnderWay" and "cluster" in each)
    for labels in world:
        held = labels["signal"] == "latency" and labels["severity"] != "critical" and labels.get("cluster") == "north"
        assert (labels in audible(rules, [recovery, labels])) is not held, labels
    assert {each["signal"] for each in world} >= {"latency", "loss", "error", "saturation", "health"}


def test_recovery_without_a_cluster_label_holds_back_what_has_none(rules, one):
    recovery, slow = one("PlumblineRecoveryUnderWay"), one("PlumblineCanaryLatencyHigh", severity="warning")
    recovery.pop("cluster", None)
    assert audible(rules, [recovery, slow]) == [recovery, slow]
    del slow["cluster"]
    assert audible(rules, [recovery, slow]) == [recovery]


# --- along the layers ---------------------------------------------------------------------------------------------

ORDER = [
    layers
    for layers in json.loads(
        rjsonnet.evaluate_snippet("order", f"(import {json.dumps(str(ROOT / 'mixin.libsonnet'))})._config.blame.order")
    )
    if layers != ["self"]
]
"""The rules' own order; the host itself is ``PlumblineDown``'s."""
BELOW = [
    (lower, upper) for low, high in itertools.combinations(ORDER, 2) for lower, upper in itertools.product(low, high)
]
HERE, THERE = "stor01.example:10047", "stor02.example:10047"


def rules_from(rules, source):
    """The rules by which this alert alone silences others."""
    return [rule for rule in rules if any(each.value == source for each in rule.source)]


def layered(one, layer, severity="critical", instance=HERE, **labels):
    """A ticket or a page about latency. Of what clients don't use a page is one about most hosts."""
    if severity == "warning":
        return one(
            "PlumblineProbeLatencyHigh", layer=layer, probe=layer, instance=instance, device_class=layer, **labels
        )
    if layer in CLIENTS:
        return one("PlumblineProbeStuck", severity="critical", layer=layer, probe=layer, instance=instance, **labels)
    return one("PlumblineFleetLatencyHigh", layer=layer, device_class=layer, **labels)


@pytest.mark.parametrize(("lower", "upper"), BELOW)
def test_each_layer_speaks_before_all_above_it(rules, one, lower, upper):
    """In the order of the blame rules: tickets on one host for what is on a host, in the cluster for what is on all."""
    where = HERE if upper in {"disk", "osd"} else THERE
    ticket, page = (layered(one, lower, severity, where) for severity in ("warning", "critical"))
    explained = [one("PlumblineLatencyExplained", layer=upper)] if upper != "disk" else []
    if lower == "network":
        ticket = one("PlumblineNicRingDrops", instance=where)
    above_ticket, above_page = (layered(one, upper, severity) for severity in ("warning", "critical"))
    assert audible(rules, [ticket, *explained, above_ticket]) == [ticket, *explained]
    if explained:
        assert audible(rules, [ticket, above_ticket]) == [ticket, above_ticket], "late by too little"
        of_osd = {**explained[0], "ceph_daemon": "osd.3"}
        assert audible(rules, [of_osd, above_ticket]) == [of_osd, above_ticket]
    assert audible(rules, [ticket, *explained, above_page]) == [ticket, *explained, above_page], (
        "a ticket never silences a page"
    )
    if upper in CLIENTS:
        assert audible(rules, [page, above_page]) == [page]
    apart = [above_ticket] if (lower, upper) == ("network", "disk") else []
    heard = audible(rules, [page, above_ticket])
    assert heard == [page, *apart]
    assert audible(rules, [{**page, "cluster": "south"}, above_page]) == [{**page, "cluster": "south"}, above_page]
    assert audible(rules, [above_page, page])[-1] == page, "never downwards"
    bare = [{key: value for key, value in each.items() if key != "cluster"} for each in (page, above_ticket)]
    assert len(audible(rules, bare)) == len(heard)


def test_the_result_of_a_periodic_probe_silences_nothing_but_what_it_is_about(rules, firing):
    """It stays until the next run, an hour or a day, whatever has become of it."""
    names = ("PlumblineProbeLatencyHigh", "PlumblineProbeThroughputLow", "PlumblineNetworkLoss")
    for labels in itertools.chain.from_iterable(firing[name] for name in names):
        assert [rule for rule in rules if rule.is_source(labels)] == []


@pytest.mark.parametrize("name", ["PlumblineDiskHung", "PlumblineDiskLatencyOutlier", "PlumblineNicRingDrops"])
@pytest.mark.parametrize("severity", ["warning", "critical"])
def test_what_is_on_one_host_never_silences_what_clients_feel(rules, one, name, severity):
    """Also where a site made it a page."""
    part = {**one(name, instance=THERE), "severity": severity}
    pages = [layered(one, layer) for layer in ("filesystem", "client")]
    assert audible(rules, [part, pages[0]]) == [part, pages[0]]
    assert audible(rules, [part, pages[1]]) == [part, pages[1]]


@pytest.mark.parametrize(("lower", "upper"), BELOW)
def test_a_layer_that_has_just_paged_still_speaks_before_all_above_it(rules, one, lower, upper):
    """As its page did: what waits for it recovers last, and would page at the end of what was told already."""
    settling = one("PlumblineLayerSettling", layer=lower)
    lost = one("PlumblineNetworkLoss", layer=upper, probe=upper, instance=HERE)
    for name, severity in (("PlumblineCanaryLatencyHigh", "warning"), ("PlumblineCanaryLatencyExtreme", "critical")):
        slow = one(name, severity=severity, layer=upper)
        apart = [slow] if (lower, upper) == ("network", "disk") else []
        assert audible(rules, [settling, slow, lost]) == [settling, *apart, lost]
    elsewhere = {**settling, "cluster": "south"}
    assert audible(rules, [elsewhere, slow]) == [elsewhere, slow]
    same = one("PlumblineCanaryLatencyHigh", layer=lower)
    assert same in audible(rules, [settling, same])


@pytest.mark.parametrize("layers", ORDER)
def test_layers_side_by_side_and_a_layer_itself_stay(rules, one, layers):
    both = [layered(one, layer, instance=host) for layer in layers for host in (HERE, THERE)]
    assert audible(rules, both) == both


@pytest.mark.parametrize("upper", ["disk", "osd"])
def test_on_another_host_what_is_on_a_host_has_its_own_reasons(rules, one, upper):
    for lower in ("network", "disk"):
        if lower != upper:
            two = [layered(one, lower, "warning", THERE), layered(one, upper, "warning")]
            assert audible(rules, two) == two


def test_losses_and_errors_above_always_get_through(rules, one):
    page = layered(one, "disk")
    for layer in ABOVE_DISK:
        above = one("PlumblineCanaryFailing", layer=layer, probe=layer)
        lost = one("PlumblineNetworkLoss", layer=layer, probe=layer, instance=HERE)
        assert audible(rules, [page, above, lost]) == [page, above, lost]


def test_a_full_cluster_explains_that_its_canaries_get_no_space_and_nothing_else(rules, one):
    def failing(layer, **labels):
        return one("PlumblineCanaryFailing", **{"layer": layer, "probe": layer, "error": "ENOSPC", **labels})

    full = one("PlumblineCephFull")
    silent = [failing(layer) for layer in ("rados", "rbd", "filesystem", "object")]
    heard = [failing("disk"), failing("rados", error="EIO"), failing("rados", cluster="south")]
    assert audible(rules, [full, *silent, *heard]) == [full, *heard]


def test_managers_that_stand_still_explain_that_nobody_can_connect_to_them(rules, one):
    gone, full = one("PlumblineCephMetricsAbsent"), one("PlumblineTcpListenOverflow")
    assert audible(rules, [gone, full]) == [gone]
    elsewhere = {**full, "cluster": "south"}
    assert audible(rules, [gone, elsewhere]) == [gone, elsewhere]


def test_slow_heartbeats_explain_cephs_own_warning_about_them_and_no_other(rules, one):
    def health(name, **labels):
        return one("PlumblineCephHealth", severity="warning", **labels) | {"name": name}

    slow = one("PlumblineOsdHeartbeatSlow")
    silent = [health("OSD_SLOW_PING_TIME_BACK"), health("OSD_SLOW_PING_TIME_FRONT")]
    heard = [health("OSD_FLAGS"), health("OSD_SLOW_PING_TIME_BACK", cluster="south")]
    assert audible(rules, [slow, *silent, *heard]) == [slow, *heard]


def test_what_stands_for_weeks_or_is_common_hides_nothing_on_other_hosts(rules, one):
    slow = layered(one, "rados", "warning")
    for name in (
        "PlumblineDiskPendingSectors",
        "PlumblineDiskFailing",
        "PlumblineArrayDegraded",
        "PlumblineSoftnetTimeSqueeze",
        "PlumblineNicLinkSlow",
        "PlumblineFindingOpen",
        "PlumblineDiskQueueSettings",
        "PlumblineDiskWearOut",
    ):
        standing = one(name, severity="warning", instance=THERE)
        assert audible(rules, [standing, slow]) == [standing, slow], name


@pytest.mark.parametrize("name", ["PlumblineDiskHung", "PlumblineProbeStuck"])
def test_a_disk_that_hangs_is_the_only_ticket_of_its_cluster_beside_the_page_of_what_waits(rules, one, name):
    hung = one(name, severity="warning", instance=THERE)
    above = [layered(one, layer, severity) for layer in CLIENTS for severity in ("warning", "critical")]
    assert audible(rules, [hung, *above]) == [hung, layered(one, "rados")]


def test_neither_recovery_nor_lost_packets_hide_what_hangs(rules, one):
    why = [one("PlumblineRecoveryUnderWay"), one("PlumblineNicRingDrops")]
    hung = [one("PlumblineDiskHung"), one("PlumblineProbeStuck", severity="warning")]
    assert audible(rules, [*why, *hung]) == [*why, *hung]


def test_network_speaks_before_disk_tickets_but_never_hushes_a_page_or_an_error(rules, one):
    drops = one("PlumblineNicRingDrops")
    for name in ("PlumblineCanaryLatencyHigh", "PlumblineProbeLatencyHigh", "PlumblineProbeThroughputLow"):
        assert audible(rules, [drops, one(name, severity="warning")]) == [drops]
    for name in ("PlumblineProbeStuck", "PlumblineCanaryFailing"):
        assert audible(rules, [drops, one(name)]) == [drops, one(name)], name
    page, ticket = (one("PlumblineCanaryBudgetBurn", severity=severity) for severity in ("critical", "warning"))
    assert audible(rules, [drops, page]) == [drops, page]
    assert audible(rules, [drops, ticket]) == [drops]
    elsewhere = one("PlumblineCanaryLatencyHigh", instance="stor02.example:10047")
    assert audible(rules, [drops, elsewhere]) == [drops, elsewhere]


def test_what_hangs_is_told_once(rules, one):
    tickets = [
        one("PlumblineCanaryOverdue"),
        one("PlumblineCanaryLatencyHigh", severity="warning"),
        one("PlumblineProbeOverdue", probe="canary"),
        one("PlumblineProbeFailing", probe="canary"),
    ]
    pages = [{**one("PlumblineCanaryLatencyHigh", layer="rados"), "severity": "critical", "probe": "canary"}]
    of_a_disk = one("PlumblineProbeStuck", severity="warning", probe="canary")
    assert audible(rules, [of_a_disk, *tickets]) == [of_a_disk]
    assert audible(rules, [of_a_disk, *pages]) == [of_a_disk, *pages], "a ticket never silences a page"
    of_clients = one("PlumblineProbeStuck", severity="critical", layer="rados", probe="canary", instance=HERE)
    assert audible(rules, [of_clients, *tickets, *pages]) == [of_clients]
    another = one("PlumblineCanaryOverdue", probe="canary-b")
    assert audible(rules, [of_clients, another]) == [of_clients, another]


@pytest.mark.parametrize("reason", ["PlumblineProbeFailing", "PlumblineProbeSkipped"])
def test_why_a_probe_is_overdue_is_said_once(rules, one, reason):
    why, overdue = one(reason), one("PlumblineProbeOverdue")
    assert audible(rules, [why, overdue]) == [why]
    another = one("PlumblineProbeOverdue", probe="fio-read-1m")
    assert audible(rules, [why, another]) == [why, another]


def test_the_catastrophe_speaks_before_the_deviation_of_the_same_operation(rules, one):
    high = one("PlumblineCanaryLatencyHigh")
    for severity in ("critical", "warning"):
        extreme, burn = (one(f"PlumblineCanary{name}", severity=severity) for name in ("LatencyExtreme", "BudgetBurn"))
        same = [{**each, "layer": extreme["layer"]} for each in (high, burn)]
        assert audible(rules, [extreme, *same]) == [extreme]
    extreme = one("PlumblineCanaryLatencyExtreme", layer=high["layer"])
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


def test_a_disk_that_completes_nothing_is_one_ticket(rules, one):
    hung = one("PlumblineDiskHung", device=DISK)
    others = [one(name, device=DISK) for name in (*SLOW, "PlumblineDiskHealthUnavailable")]
    assert audible(rules, [hung, *others]) == [hung]
    errors, twin = one("PlumblineDiskMediaErrors", device=DISK), one(SLOW[0], device="sdh")
    assert audible(rules, [hung, errors, twin]) == [hung, errors, twin]


def test_a_disk_that_has_left_says_nothing_else(rules, one):
    missing = one("PlumblineDiskMissing", device=DISK)
    others = [
        one(name, device=DISK)
        for name in (
            *SLOW,
            "PlumblineDiskHung",
            "PlumblineDiskFailing",
            "PlumblineDiskWearOut",
            "PlumblineDiskHot",
            "PlumblinePcieErrors",
        )
    ]
    assert audible(rules, [missing, *others]) == [missing]


def test_but_what_it_leaves_behind_is_told(rules, one):
    missing = one("PlumblineDiskMissing", device=DISK)
    stays = [
        one("PlumblineArrayDegraded"),
        one("PlumblineZfsPoolUnhealthy", severity="warning"),
        one("PlumblineMultipathPathLost"),
        one("PlumblineDiskQueueSettings"),
        one("PlumblineDiskHung", device="sdh"),
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


def test_what_has_come_about_speaks_before_its_forecast(rules, one):
    unsafe = one("PlumblineCapacityHostLossUnsafe", device_class="hdd")
    soon = one("PlumblineCapacityHostLossSoon", device_class="hdd")
    other = {**soon, "device_class": "ssd"}
    assert audible(rules, [unsafe, soon, other]) == [unsafe, other]
