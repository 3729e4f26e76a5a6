"""What is said of losing a host, cluster by cluster: racks, roots, mixed sizes, OSDs that are out, one host, no map."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import rjsonnet

from support.capacity import MANAGER, READER, Osd, Pool, Series, managed, mapped, one
from support.promtool import run_tests
from support.rulefiles import RuleSet
from support.rules import ROOT, RULES

GROUPS = (
    "plumbline-osd-store.rules", "plumbline-ceph.rules", "plumbline-capacity-map.rules",
    "plumbline-capacity-pool.rules", "plumbline-capacity-loss.rules", "plumbline-capacity-load.rules",
)  # fmt: skip
LOSS, VERDICT = "plumbline:capacity_host_loss:ratio", "plumbline:capacity_host_loss:verdict"
HEALING, USED = "plumbline:capacity_self_healing:bool", "plumbline:capacity_used:ratio"
AFTER = "plumbline:capacity_after_loss:ratio"
SAFE, FULL, COPIES, DATA = range(4)
SAMPLES = 30
BACKFILLFULL = 0.9
REPLICATED = Pool(1, "vms")


def hosts(*used_gb: float, rack: int = 0, **more: object) -> list[Osd]:
    """A host with one OSD each: a, b, c, …; ``rack``: so many of them in each rack."""
    return [
        Osd(number, chr(ord("a") + number), used, rack=f"r{number // rack}" if rack else "", **more)  # type: ignore[arg-type]
        for number, used in enumerate(used_gb)
    ]


def in_rooms(osds: list[Osd], rooms: str, kind: str = "room") -> list[Osd]:
    """The same hosts, as many in each room."""
    each = len(osds) // len(rooms)
    return [replace(osd, others=((kind, rooms[number // each]),)) for number, osd in enumerate(osds)]


def promtool(folder: Path, given: Iterable[Series], expected: dict[str, dict[str, float]], at: str = "5m") -> str:
    """Empty when each expression gives exactly these samples (labels → value); else what promtool says."""
    rules = RuleSet.read(RULES).only(lambda rule: [rule])
    kept = {"groups": [group for group in rules["groups"] if group["name"] in GROUPS]}
    (folder / "rules.yaml").write_text(json.dumps(kept))
    cases = [
        {
            "expr": f"round({expr}, 1e-6)",
            "eval_time": at,
            "exp_samples": [
                {"labels": f"{{{labels}}}", "value": round(value * 1e6) / 1e6} for labels, value in samples.items()
            ],
        }
        for expr, samples in expected.items()
    ]
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "group_eval_order": list(GROUPS),
        "tests": [{"interval": "1m", "input_series": list(given), "promql_expr_test": cases}],
    }
    (folder / "test.yaml").write_text(json.dumps(test))
    return run_tests(folder / "test.yaml")


def of(value: float | None, device_class: str = "hdd") -> dict[str, float]:
    return {} if value is None else {f'cluster="north", device_class="{device_class}"': value}


def pools(**healing: int) -> dict[str, float]:
    """Pool → 1 or 0, numbered from 1."""
    return {
        f'cluster="north", pool="{name}", pool_id="{number}"': heals
        for number, (name, heals) in enumerate(healing.items(), 1)
    }


def in_map(osds: Iterable[Osd], *of_pools: Pool, **more: object) -> list[Series]:
    return list(mapped(osds, of_pools or (REPLICATED,), samples=SAMPLES, step_s=60, **more))  # type: ignore[arg-type]


# With each host lost in turn: the fullest of the others × all that is used ÷ what is used on the others.
CASES = {
    "the worst host is not the one with most data": (
        in_map(hosts(600, 500, 450, 400)),
        {LOSS: of(0.6 * 1950 / 1450 / BACKFILLFULL), VERDICT: of(SAFE), HEALING: pools(vms=1), USED: of(1950 / 4000)},
    ),
    "unsafe": (
        in_map(hosts(700, 690, 680, 670)),
        {LOSS: of(0.7 * 2740 / 2050 / BACKFILLFULL), VERDICT: of(FULL)},
    ),
    # CRUSH can put one copy of three on the big host, as before: each of the others ends with a third of all
    "one host is three times as big: what it holds counts, not its size": (
        in_map([*hosts(200, 200, 200), Osd(3, "d", 300, 3000)]),
        {LOSS: of(0.2 * 900 / 600 / BACKFILLFULL), VERDICT: of(SAFE)},
    ),
    "three hosts and three copies: nothing is copied, so nothing gets too full": (
        in_map(hosts(800, 800, 800)),
        {LOSS: {}, VERDICT: of(COPIES), HEALING: pools(vms=0)},
    ),
    "two pools, one of which heals": (
        in_map(hosts(300, 300, 300), Pool(1, "vms", 3), Pool(2, "scratch", 2)),
        {LOSS: of(0.3 * 900 / 600 / BACKFILLFULL), VERDICT: of(COPIES), HEALING: pools(vms=0, scratch=1)},
    ),
    "erasure coding 4+2 on six hosts, and on seven": (
        in_map(
            [*hosts(500, 500, 500, 500, 500, 500), *(Osd(10 + n, f"s{n}", 500, device_class="ssd") for n in range(7))],
            Pool(1, "six", 6, kind="erasure", raw_ratio=1.5),
            Pool(2, "seven", 6, kind="erasure", raw_ratio=1.5, device_class="ssd"),
        ),
        {
            LOSS: of(0.5 * 3500 / 3000 / BACKFILLFULL, "ssd"),
            VERDICT: of(COPIES) | of(SAFE, "ssd"),
            HEALING: pools(six=0, seven=1),
        },
    ),
    "one host: everything is lost with it": (
        in_map([Osd(n, "a", 100) for n in range(4)], Pool(1, "vms", 3, "osd")),
        {LOSS: {}, VERDICT: of(DATA), HEALING: pools(vms=1)},
    ),
    "OSDs as failure domain: copies may be on one host": (
        in_map(hosts(300, 300, 300, 300), Pool(1, "vms", 3, "osd")),
        {LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL), VERDICT: of(DATA), HEALING: pools(vms=1)},
    ),
    "one copy is no redundancy": (
        in_map(hosts(300, 300, 300, 300), Pool(1, "vms", 1)),
        {LOSS: {}, VERDICT: of(DATA), HEALING: pools(vms=0)},
    ),
    "one copy on disks of any class": (
        in_map(
            [*hosts(300, 300, 300, 300), *(Osd(10 + n, f"s{n}", 300, device_class="ssd") for n in range(4))],
            Pool(1, "vms", 1, device_class=""),
        ),
        {VERDICT: of(DATA) | of(DATA, "ssd"), HEALING: pools(vms=0)},
    ),
    "nothing is stored": (
        in_map(hosts(0, 0, 0, 0)),
        {LOSS: of(0), VERDICT: of(SAFE), USED: of(0)},
    ),
    "the fullest OSD dies with its host": (
        in_map([*hosts(500, 500, 500, 500), Osd(9, "a", 900)]),
        {
            AFTER + '{name="a"}': {
                'cluster="north", device_class="hdd", domain="host", name="a", root="default"': 0.5 * 2900 / 1500
            }
        },
    ),
    "OSDs that are out, or weigh nothing, hold nothing": (
        in_map([*hosts(300, 300, 300, 300), Osd(8, "e", 0, is_in=False), Osd(9, "f", 5, weight=0)]),
        {LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL), USED: of(0.3)},
    ),
    "a host whose OSDs are all out is no failure domain": (
        in_map([*hosts(300, 300, 300), Osd(8, "d", 0, is_in=False)]),
        {LOSS: {}, VERDICT: of(COPIES), HEALING: pools(vms=0)},
    ),
    "racks: the largest rack": (
        in_map(hosts(300, 300, 300, 300, 300, 300, 400, 300, rack=2), Pool(1, "vms", 3, "rack")),
        {LOSS: of(0.4 * 2500 / 1900 / BACKFILLFULL), VERDICT: of(SAFE), HEALING: pools(vms=1)},
    ),
    "as many racks as copies: a host's data goes to the other hosts of its rack": (
        in_map(hosts(400, 400, 400, 400, 400, 400, rack=2), Pool(1, "vms", 3, "rack")),
        {LOSS: of(0.4 * 800 / 400 / BACKFILLFULL), VERDICT: of(COPIES), HEALING: pools(vms=0)},
    ),
    "three rooms and two copies: a room is lost": (
        in_map(in_rooms(hosts(300, 300, 300, 400, 300, 300), "abc"), Pool(1, "vms", 2, "room")),
        {LOSS: of(0.4 * 1900 / 1300 / BACKFILLFULL), VERDICT: of(SAFE), HEALING: pools(vms=1)},
    ),
    "two datacenters and two copies: a host's data goes to the other hosts of its datacenter": (
        in_map(
            in_rooms(hosts(400, 400, 400, 400, 400, 400), "ab", "datacenter"),
            Pool(1, "vms", 2, "datacenter", device_class=""),
        ),
        {LOSS: of(0.4 * 1200 / 800 / BACKFILLFULL), VERDICT: of(COPIES), HEALING: pools(vms=0)},
    ),
    "a failure domain that is not exported": (
        in_map(hosts(800, 800, 800), Pool(1, "vms", 3, "datacenter")),
        {LOSS: {}, VERDICT: {}, HEALING: {}},
    ),
    "two roots of one class: the worse": (
        in_map(
            [*hosts(100, 100, 100, 100), *(Osd(10 + n, f"x{n}", 600, root="archive") for n in range(4))],
            Pool(1, "vms"),
            Pool(2, "old", root="archive"),
        ),
        {LOSS: of(0.6 * 2400 / 1800 / BACKFILLFULL), VERDICT: of(SAFE), HEALING: pools(vms=1, old=1), USED: of(0.35)},
    ),
    "a rule for any class, one class": (
        in_map(hosts(300, 300, 300, 300), Pool(1, "vms", device_class="")),
        {LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL), VERDICT: of(SAFE), HEALING: pools(vms=1)},
    ),
    "a rule for any class, two classes": (
        in_map(
            [*hosts(300, 300, 300, 300), *(Osd(10 + n, "abcd"[n], 100, device_class="ssd") for n in range(4))],
            Pool(1, "vms", device_class=""),
        ),
        {
            LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL) | of(0.1 * 400 / 300 / BACKFILLFULL, "ssd"),
            VERDICT: of(SAFE) | of(SAFE, "ssd"),
            HEALING: pools(vms=1),
        },
    ),
    "limits of the cluster's own": (
        in_map(hosts(600, 600, 600, 600), limits={"nearfull": 0.6, "backfillfull": 0.7, "full": 0.8}),
        {LOSS: of(0.6 * 2400 / 1800 / 0.7), VERDICT: of(FULL)},
    ),
    "two readers, one of which stopped reading when the cluster was another": (
        in_map(hosts(300, 300, 300, 300))
        + in_map(hosts(900, 900, 900), reader={**READER, "instance": "stor02.example:10047"}, read="-90000x30"),
        {LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL), USED: of(0.3)},
    ),
    "the map is old: nothing is said": (
        in_map(hosts(300, 300, 300, 300), read=f"-90000x{SAMPLES}"),
        {LOSS: {}, VERDICT: {}, HEALING: {}, USED: {}},
    ),
    "the manager alone: hosts by name, nothing of copies": (
        list(managed(hosts(600, 500, 450, 400), samples=SAMPLES)),
        {LOSS: of(0.6 * 1950 / 1450 / BACKFILLFULL), VERDICT: of(SAFE), HEALING: {}, USED: of(1950 / 4000)},
    ),
    "the manager alone and three hosts: perhaps nothing is copied": (
        list(managed(hosts(600, 500, 450), samples=SAMPLES)),
        {LOSS: {}, VERDICT: {}, USED: of(1550 / 3000)},
    ),
    "the manager alone and one host": (
        list(managed(hosts(600), samples=SAMPLES)),
        {LOSS: {}, VERDICT: of(DATA)},
    ),
    "the map before the manager": (
        in_map(hosts(300, 300, 300, 300)) + list(managed(hosts(900, 900, 900, 900), samples=SAMPLES)),
        {LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL), HEALING: pools(vms=1)},
    ),
    "two managers tell the same": (
        list(managed(hosts(300, 300, 300, 300), samples=SAMPLES))
        + list(managed(hosts(300, 300, 300, 300), samples=SAMPLES, manager={**MANAGER, "instance": "mgr-y:9283"})),
        {LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL), USED: of(0.3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_said_of_losing_a_host(tmp_path: Path, case: str) -> None:
    given, expected = CASES[case]
    assert promtool(tmp_path, given, expected) == ""


@pytest.mark.parametrize(
    ("pool", "reads", "size", "asked"),
    [
        (Pool(1, "vms"), 100, 65536, 1),
        (Pool(1, "before 20", 6, raw_ratio=1.5), 100, 4096, 4),
        (Pool(1, "single blocks", 6, raw_ratio=1.5, read_unit=4096), 100, 4096, 1),
        (Pool(1, "parts of blocks", 6, raw_ratio=1.5, read_unit=4096), 100, 512, 1),
        (Pool(1, "two blocks", 6, raw_ratio=1.5, read_unit=4096), 100, 8192, 2),
        (Pool(1, "long units", 6, raw_ratio=1.5, read_unit=16384), 100, 8192, 1.25),
        (Pool(1, "never more than all", 6, raw_ratio=1.5, read_unit=4096), 100, 65536, 4),
        (Pool(1, "nothing is read", 6, raw_ratio=1.5, read_unit=4096), 0, 4096, 4),
    ],
    ids=lambda each: each.name if isinstance(each, Pool) else "",
)
def test_how_many_osds_a_read_asks(tmp_path: Path, pool: Pool, reads: int, size: int, asked: float) -> None:
    """A mean of 100 reads a minute; 1,000 before, because a new manager's page tells zeros."""
    counted = {"ceph_pool_rd": reads, "ceph_pool_rd_bytes": reads * size}
    labels = {"cluster": "north", "pool_id": "1", **MANAGER}
    given = in_map(hosts(100, 100, 100, 100), pool)
    given += [one(metric, f"1000+{each}x{SAMPLES}", **labels) for metric, each in counted.items()]
    expected = {"plumbline:capacity_pool_read_osds:count": {'cluster="north", pool_id="1"': asked}}
    assert promtool(tmp_path, given, expected, at="10m") == ""


def test_a_wrong_figure_would_be_noticed(tmp_path: Path) -> None:
    given, expected = CASES["unsafe"]
    assert "FAILED" in promtool(tmp_path, given, {**expected, VERDICT: of(SAFE)})


def test_a_failover_is_no_step(tmp_path: Path) -> None:
    """The old manager's page ends at 10 m; the new one's has no OSDs for two minutes, and its pools hold nothing."""
    old = [
        {**each, "values": each["values"].replace(f"x{SAMPLES}", "x9")}
        for each in managed(hosts(300, 300, 300, 300), samples=SAMPLES)
    ]
    new = [
        {**each, "values": "_x11 " + each["values"]}
        for each in managed(hosts(300, 300, 300, 300), samples=SAMPLES, manager={**MANAGER, "instance": "mgr-y:9283"})
    ]
    of_pool = {"cluster": "north", "pool_id": "1"}
    metadata = {"name": "vms", "type": "replicated", "description": "replica:3", "compression_mode": "none"}
    stored = [
        one("ceph_pool_metadata", "1x30", **of_pool, **MANAGER, **metadata),
        one("ceph_pool_stored", "5e9x9 stale", **of_pool, **MANAGER),
        one("ceph_pool_stored", "_x9 0x1 5e9x20", **of_pool, **{**MANAGER, "instance": "mgr-y:9283"}),
    ]
    held = {USED: of(0.3), LOSS: of(0.3 * 1200 / 900 / BACKFILLFULL)}
    held["plumbline:capacity_pool_stored:bytes"] = {'cluster="north", pool="vms", pool_id="1"': 5e9}
    for minute in range(8, 16):
        assert promtool(tmp_path, [*old, *new, *stored], held, f"{minute}m") == "", minute


def test_without_a_cluster_label(tmp_path: Path) -> None:
    given = list(mapped(hosts(300, 300, 300, 300), [REPLICATED], samples=SAMPLES, step_s=60, cluster=""))
    expected = {
        LOSS: {'device_class="hdd"': 0.3 * 1200 / 900 / BACKFILLFULL},
        HEALING: {'pool="vms", pool_id="1"': 1.0},
    }
    assert promtool(tmp_path, given, expected) == ""


def test_each_class_may_have_a_plan_of_its_own(tmp_path: Path) -> None:
    """`days+: { hdd: 365 }`: 300 days are too few for hdd and enough for ssd."""
    site = "{ _config+:: { alerts+: { PlumblineCapacityGrowthFast+: { days+: { hdd: 365 } } } } }"
    snippet = f"((import {json.dumps(str(ROOT / 'mixin.libsonnet'))}) + {site}).prometheusAlerts"
    groups = json.loads(rjsonnet.evaluate_snippet("site", snippet))["groups"]
    (rule,) = [each for group in groups for each in group["rules"] if each["alert"] == "PlumblineCapacityGrowthFast"]
    given = []
    for device_class in ("hdd", "ssd"):
        labels = {"cluster": "north", "device_class": device_class}
        given.append(one("plumbline:capacity_used:ratio", "0.5x30", **labels))
        given += [one("plumbline:capacity_time_to_full:days", "300x30", **labels, slope=each) for each in ("3d", "14d")]
    (tmp_path / "rules.yaml").write_text(
        json.dumps({"groups": [{"name": "plan", "rules": [{"record": "planned", "expr": rule["expr"]}]}]})
    )
    case = {
        "expr": "planned",
        "eval_time": "5m",
        "exp_samples": [{"labels": 'planned{cluster="north", device_class="hdd"}', "value": 300}],
    }
    test = {
        "rule_files": ["rules.yaml"],
        "tests": [{"interval": "1m", "input_series": given, "promql_expr_test": [case]}],
    }
    (tmp_path / "test.yaml").write_text(json.dumps(test))
    assert run_tests(tmp_path / "test.yaml") == ""
