"""The shipped routes and inhibition in a real Alertmanager, on the label sets that promtool has proven.

First what mutes what: every pair of label sets alone in a world of its own, compared with our evaluator. Then one bad
night, message by message: a slow OSD that clients feel is one page, and one ticket of its disk.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.demo import configs

from support.alertmanager import Receiver, alertmanager
from support.daemon import eventually
from support.inhibition import InhibitRule, Labels, audible, load_rules
from support.programs import need
from support.proven import distinct, everything, proven, unit_tests

CONFIG = Path(__file__).parents[2] / "alerts" / "alertmanager" / "alertmanager.yaml"
WAIT_S, INTERVAL_S = 3, 2
"""As the shipped file's 45 s and 5 m, so that a test need not last minutes."""
WITHIN_S = 90
CHUNK = 500
PAIRS = 1000
"""In one Alertmanager. For each answer it compares each alert with each that could mute it: ten times as many take a
hundred times as long."""

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

NEVER = [{"years": ["2001"]}]
ALWAYS = [{"years": ["2001:2199"]}]


@pytest.fixture(scope="module")
def label_sets() -> dict[str, list[dict[str, str]]]:
    need("prometheus-alertmanager")
    return proven(unit_tests())


def config(receiver: str, *, wait_s: int = WAIT_S, office: object = ALWAYS) -> Any:
    """The committed tree, all of it told to ``receiver``."""
    committed = yaml.safe_load(CONFIG.read_text("utf-8"))
    document = configs.alertmanager(committed, webhook=receiver)
    _set_waits(document["route"], wait_s)
    (hours,) = committed["time_intervals"]
    document["time_intervals"] = [{"name": hours["name"], "time_intervals": office}]
    return document


def _set_waits(route: dict[str, Any], wait_s: int) -> None:
    route |= {"group_wait": f"{wait_s}s", "group_interval": f"{max(INTERVAL_S, wait_s // 2)}s"}
    for child in route.get("routes", []):
        _set_waits(child, wait_s)


def test_the_shipped_tree_is_loaded_without_a_warning(tmp_path: Path) -> None:
    """As from 0.27 on for a matcher that only the older of its two parsers takes."""
    with alertmanager(tmp_path, yaml.safe_load(CONFIG.read_text("utf-8"))) as server:
        assert server.log.read_text() == ""


def test_every_pair_is_muted_as_the_evaluator_says(tmp_path: Path, label_sets: dict[str, list[dict[str, str]]]) -> None:
    """Each pair is a cluster of its own: all rules ask for equal clusters, so that pairs never meet."""
    rules = load_rules(CONFIG)
    assert all("cluster" in rule.equal for rule in rules)
    sets = distinct(everything(label_sets), rules)
    worlds = (
        ({**one, "cluster": f"pair-{number}"}, {**other, "cluster": f"pair-{number}"})
        for number, (one, other) in enumerate(itertools.combinations(sets, 2))
    )
    pairs = [pair for pair in worlds if pair[0] != pair[1]]
    muted = 0
    for start in range(0, len(pairs), PAIRS):
        folder = tmp_path / str(start)
        folder.mkdir()
        muted += _muted(folder, rules, pairs[start : start + PAIRS])
    assert len(pairs) > 1000
    assert muted > 100


def _muted(folder: Path, rules: Sequence[InhibitRule], pairs: Sequence[tuple[Labels, Labels]]) -> int:
    """How many of these an Alertmanager of their own mutes: those that the evaluator does, and by the other one."""
    muted_by = {}
    for pair in pairs:
        heard = audible(rules, list(pair))
        muted_by |= {_key(one): _key(other) for one, other in (pair, pair[::-1]) if one not in heard}
    posted = [labels for pair in pairs for labels in pair]
    with alertmanager(folder, config("http://127.0.0.1:1", wait_s=3600)) as server:
        for start in range(0, len(posted), CHUNK):
            server.post(posted[start : start + CHUNK])
        found: list[dict[str, Any]] = []

        def settled() -> bool:
            """Alerts are listed before what mutes them has been heard of."""
            found[:] = server.alerts()
            silent = {_key(each["labels"]) for each in found if each["status"]["state"] == "suppressed"}
            return len(found) == len(posted) and silent == muted_by.keys()

        with contextlib.suppress(AssertionError):  # told below, for each
            eventually(settled, within_s=WITHIN_S, every_s=0.3)

    by_labels = {_key(each["labels"]): each for each in found}
    assert len(by_labels) == len(posted)
    for key, each in by_labels.items():
        expected = [by_labels[muted_by[key]]["fingerprint"]] if key in muted_by else []
        assert each["status"]["inhibitedBy"] == expected, sorted(key)
        assert (each["status"]["state"] == "suppressed") == bool(expected), sorted(key)
    return len(muted_by)


def test_without_any_cluster_label_it_mutes_as_the_evaluator_says(
    tmp_path: Path, label_sets: dict[str, list[dict[str, str]]]
) -> None:
    rules = load_rules(CONFIG)
    sets = distinct(({k: v for k, v in labels.items() if k != "cluster"} for labels in everything(label_sets)), rules)
    with alertmanager(tmp_path, config("http://127.0.0.1:1", wait_s=3600)) as server:
        server.post(sets)
        heard = {_key(labels) for labels in audible(rules, sets)}

        def settled() -> list[dict[str, Any]]:
            """All of them, once what mutes has been heard of: alerts are listed before that."""
            answer = server.alerts()
            loud = {_key(each["labels"]) for each in answer if each["status"]["state"] != "suppressed"}
            return answer if len(answer) == len(sets) and loud == heard else []

        found = eventually(settled, within_s=60)
    by_print = {each["fingerprint"]: each["labels"] for each in found}
    for each in found:
        for source in each["status"]["inhibitedBy"]:
            assert _key(each["labels"]) not in {_key(x) for x in audible(rules, [each["labels"], by_print[source]])}


# --- one bad night ------------------------------------------------------------------------------------------------

A, B, C = (f"stor0{number}.example:10047" for number in (1, 2, 3))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as here:
        yield here


def pick(label_sets: Mapping[str, list[dict[str, str]]], name: str, **labels: str) -> dict[str, str]:
    """A proven label set of the alert, of the severity and layer that are asked for where there is one."""
    best = max(label_sets[name], key=lambda each: (each["severity"] == labels.get("severity"), "cluster" in each))
    return {**best, **labels}


def told(receiver: Receiver) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Each message: to whom, its status, its group, its alerts with their instances."""
    return sorted(
        (
            message["receiver"],
            message["status"],
            tuple(f"{key}={value}" for key, value in sorted(message["groupLabels"].items())),
            tuple(sorted(f"{a['labels']['alertname']}@{a['labels'].get('instance', '')}" for a in message["alerts"])),
        )
        for message in list(receiver.messages)
    )


def exactly(receiver: Receiver, expected: list[Any]) -> None:
    """These messages arrive, and no other within three more intervals."""
    eventually(lambda: len(receiver.messages) >= len(expected), within_s=WITHIN_S)
    time.sleep(WAIT_S + 3 * INTERVAL_S)
    assert told(receiver) == sorted(expected)


def test_a_slow_osd_that_clients_feel_is_one_page_and_one_ticket_of_its_disk(
    tmp_path: Path, receiver: Receiver, label_sets: dict[str, list[dict[str, str]]]
) -> None:
    def feels(name: str, layer: str, severity: str, instance: str, cluster: str = "north") -> dict[str, str]:
        there = {"severity": severity, "layer": layer, "instance": instance, "probe": layer, "cluster": cluster}
        return pick(label_sets, name, **there)

    def ticket(name: str, **labels: str) -> dict[str, str]:
        return pick(label_sets, name, **{"severity": "warning", "instance": B, "cluster": "north", **labels})

    felt = [
        feels("PlumblineProbeStuck", "rados", "critical", A),
        feels("PlumblineProbeStuck", "rados", "critical", C),
        feels("PlumblineCanaryLatencyHigh", "rados", "warning", A),
    ]
    explained = [
        pick(label_sets, "PlumblineLatencyExplained", layer=layer, cluster="north", **of)
        for layer, of in (("osd", {"ceph_daemon": "osd.3"}), ("rados", {}), ("rbd", {}))
    ]
    night = [
        # the disk, and what follows from it on its host
        ticket("PlumblineDiskLatencyOutlier", device="sdg", operation="read"),
        ticket("PlumblineDiskLatencyRegressed", device="sdg", operation="read"),
        ticket("PlumblineOsdSlowDisk", ceph_daemon="osd.3"),
        # Prometheus has compared: each is late by as much as what is below it
        *explained,
        # clients feel it, at several vantage points
        *felt,
        feels("PlumblineProbeStuck", "rbd", "critical", A),
        feels("PlumblineCanaryLatencyHigh", "rbd", "warning", A),
        feels("PlumblineProbeStuck", "client", "critical", A),
        # another disk, a port, another cluster
        ticket("PlumblineDiskFailing", device="sdx", instance=C),
        ticket("PlumblineNicRingDrops", device="ens1f0", instance=A),
        feels("PlumblineProbeStuck", "rbd", "critical", A, cluster="south"),
        pick(label_sets, "PlumblineRecoveryUnderWay", cluster="south"),
    ]

    def part(layer: str, instance: str, device: str) -> tuple[str, ...]:
        return ("cluster=north", f"device={device}", f"instance={instance}", f"layer={layer}")

    rados = ("cluster=north", "layer=rados")
    first = [
        ("pager", "firing", rados, (f"PlumblineProbeStuck@{A}", f"PlumblineProbeStuck@{C}")),
        ("tickets-storage", "firing", part("disk", B, "sdg"), (f"PlumblineDiskLatencyOutlier@{B}",)),
        ("tickets-storage", "firing", part("disk", C, "sdx"), (f"PlumblineDiskFailing@{C}",)),
        ("tickets-network", "firing", part("network", A, "ens1f0"), (f"PlumblineNicRingDrops@{A}",)),
        ("pager", "firing", ("cluster=south", "layer=rbd"), (f"PlumblineProbeStuck@{A}",)),
        ("null", "firing", ("cluster=south", "layer=rados"), ("PlumblineRecoveryUnderWay@",)),
        *(
            ("null", "firing", ("cluster=north", f"layer={layer}"), ("PlumblineLatencyExplained@",))
            for layer in ("osd", "rados", "rbd")
        ),
    ]
    with alertmanager(tmp_path, config(receiver.url)) as server:
        server.post(night)
        exactly(receiver, _without_muted(first, night))

        receiver.messages.clear()
        # RADOS is well again, and RBD is not: it is given some minutes ...
        settling = pick(label_sets, "PlumblineLayerSettling", layer="rados", cluster="north")
        server.post([settling], over=[*felt, explained[1]])
        held = ("null", "firing", rados, ("PlumblineLatencyExplained@", "PlumblineLayerSettling@"))
        exactly(receiver, [("pager", "resolved", *first[0][2:]), held])

        receiver.messages.clear()
        # ... and now it is its turn; what stands on it stays silent
        server.post([], over=[settling])
        turn = ("pager", "firing", ("cluster=north", "layer=rbd"), (f"PlumblineProbeStuck@{A}",))
        over = ("null", "resolved", rados, ("PlumblineLayerSettling@",))
        exactly(receiver, [over, turn])


def _without_muted(messages: list[Any], night: list[dict[str, str]]) -> list[Any]:
    """The literal expectation must be the evaluator's as well."""
    heard = sorted(
        f"{each['alertname']}@{each.get('instance', '')}/{each['layer']}" for each in audible(load_rules(CONFIG), night)
    )
    layers = [next(label for label in group if label.startswith("layer=")) for _, _, group, _ in messages]
    listed = [
        f"{alert}/{layer.removeprefix('layer=')}"
        for layer, (*_, alerts) in zip(layers, messages, strict=True)
        for alert in alerts
    ]
    assert sorted(listed) == heard
    return messages


def test_a_host_that_is_down_is_one_page(
    tmp_path: Path, receiver: Receiver, label_sets: dict[str, list[dict[str, str]]]
) -> None:
    probe = {"probe": "rados/osd.3", "instance": A, "cluster": "north"}
    night = [
        pick(label_sets, "PlumblineDown", severity="critical", instance=B, cluster="north"),
        *(
            pick(label_sets, name, instance=B, cluster="north")
            for name in ("PlumblineDiskHung", "PlumblineNicRingDrops")
        ),
        pick(label_sets, "PlumblineProbeTargetDown", target="osd.3", **probe),
        pick(label_sets, "PlumblineProbeStuck", severity="critical", layer="rados", **probe),
        pick(label_sets, "PlumblineCanaryOverdue", **probe),
    ]
    with alertmanager(tmp_path, config(receiver.url)) as server:
        server.post(night)
        exactly(
            receiver,
            [
                ("pager", "firing", ("cluster=north", "layer=self"), (f"PlumblineDown@{B}",)),
                ("null", "firing", ("cluster=north", "layer=osd"), (f"PlumblineProbeTargetDown@{A}",)),
            ],
        )


def _hours(
    tmp_path: Path, receiver: Receiver, label_sets: dict[str, list[dict[str, str]]], **times: object
) -> set[str]:
    posted = [
        pick(label_sets, "PlumblineCanaryLatencyHigh", severity="warning", layer="disk", instance=C),
        pick(label_sets, "PlumblineNetworkLoss", instance=A),
        pick(label_sets, "PlumblineProbeStuck", severity="critical", layer="rbd", instance=A),
        pick(label_sets, "PlumblineNicErrors", instance=B),
        {"alertname": "PlumblinePoolFullSoon", "severity": "warning", "layer": "rados", "signal": "capacity"},
        {"alertname": "PlumblinePoolFull", "severity": "critical", "layer": "rados", "signal": "capacity"},
    ]  # fmt: skip
    with alertmanager(tmp_path, config(receiver.url, **times)) as server:  # type: ignore[arg-type]
        server.post(posted)
        eventually(
            lambda: any(message["receiver"] == "tickets-network" for message in receiver.messages), within_s=WITHIN_S
        )
        time.sleep(WAIT_S + 2 * INTERVAL_S)
    return {alert["labels"]["alertname"] for message in receiver.messages for alert in message["alerts"]}


def test_capacity_waits_for_office_hours_and_nothing_else_does(
    tmp_path: Path, receiver: Receiver, label_sets: dict[str, list[dict[str, str]]]
) -> None:
    found = _hours(tmp_path, receiver, label_sets, office=NEVER)
    assert found == {
        "PlumblineCanaryLatencyHigh", "PlumblineNetworkLoss", "PlumblineProbeStuck", "PlumblineNicErrors",
        "PlumblinePoolFull",
    }  # fmt: skip


def test_in_office_hours_all_of_it_arrives(
    tmp_path: Path, receiver: Receiver, label_sets: dict[str, list[dict[str, str]]]
) -> None:
    found = _hours(tmp_path, receiver, label_sets)
    assert found == {
        "PlumblineCanaryLatencyHigh", "PlumblineNetworkLoss", "PlumblineProbeStuck", "PlumblineNicErrors",
        "PlumblinePoolFullSoon", "PlumblinePoolFull",
    }  # fmt: skip


def _key(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())
