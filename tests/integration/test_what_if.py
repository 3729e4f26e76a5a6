"""What-if against a real Prometheus: the rules' figures and the module's agree, and the docs' examples are printed."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from bench.history_store import Series, Store, labels_of
from plumbline.capacity import changes
from plumbline.capacity.facts import facts_of, only, queries
from plumbline.capacity.figures import after_losses, class_figures, pool_figures
from plumbline.capacity.model import Facts
from plumbline.sources.prometheus.api import read_retention
from plumbline.sources.prometheus.queries import Server
from support import capacity, what_if
from support.daemon import COMMAND, eventually
from support.programs import need
from support.rules import RULES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
GROUPS = ("map", "pool", "loss", "growth", "load")
CLUSTER = "north"
GROWTH = 1e6
"""Bytes per second; the slope over what was recorded."""
ASKED = 1200.0
MCLOCK = 300.0
SPAN_S = 4 * 86400
ROOMS = ("east", "east", "west")


def osds() -> list[capacity.Osd]:
    """Uneven hosts in three racks of two rooms, and a class of its own in one more root."""
    used = (300, 250, 225, 200, 275, 175)
    found = [
        capacity.Osd(n, f"h{n // 2}", gb, rack=f"r{n // 4}", others=(("room", ROOMS[n // 4]),))
        for n, gb in enumerate([*used, *used])
    ]
    return found + [capacity.Osd(20 + n, f"s{n}", 300, device_class="ssd", root="fast") for n in range(4)]


POOLS = (
    capacity.Pool(1, "vms", stored_gb=500),
    capacity.Pool(2, "racked", copies=2, failure_domain="rack"),
    capacity.Pool(4, "in each rack", failure_domain="rack"),
    capacity.Pool(5, "in each room", copies=2, failure_domain="room"),
    capacity.Pool(3, "quick", copies=2, device_class="ssd", root="fast"),
)


def _at(metric: str, value: float, times_s: np.ndarray, **labels: str) -> Series:
    own = {**labels, "cluster": CLUSTER}
    return Series(labels_of(metric, own), (times_s * 1000).astype(np.int64), np.full(len(times_s), value))


def _past(now_s: float) -> Iterator[tuple[Series, ...]]:
    """What the rules recorded on the days before, in pieces of six hours: a store takes nothing much older than its
    newest."""
    used = sum(float(osd.used_gb) for osd in osds() if osd.device_class == "hdd") * 1e9
    of_class = {"cluster": CLUSTER, "device_class": "hdd"}
    for begin in np.arange(now_s - SPAN_S, now_s, 6 * 3600):
        times = np.arange(begin, min(begin + 6 * 3600, now_s - 60), 1800)
        line = used + GROWTH * (times - now_s)
        yield (
            Series(labels_of("plumbline:capacity_used:bytes", of_class), (times * 1000).astype(np.int64), line),
            _at("plumbline:capacity_asked:iops", ASKED, times, device_class="hdd"),
        )


def _present(now_s: float) -> Iterator[Series]:
    """What a daemon exports; a sample is valid for an hour."""
    here = np.array([now_s])
    for each in capacity.mapped(osds(), POOLS, samples=1, step_s=1, cluster=""):
        name, _, inside = each["series"].partition("{")
        labels = dict(part.split("=", 1) for part in inside.rstrip("}").split(","))
        value = now_s if name.endswith("timestamp_seconds") else float(each["values"].partition("x")[0])
        yield _at(name, value, here, **{key: text.strip('"') for key, text in labels.items() if text != '""'})
    for number in range(12):
        yield _at("plumbline:osd_capacity:iops", MCLOCK, here, ceph_daemon=f"osd.{number}", device_class="hdd")


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    need("prometheus")
    document = yaml.load((RULES).read_bytes(), yaml.CSafeLoader)
    kept = [
        group
        for group in document["groups"]
        if group["name"] in {f"plumbline-capacity-{name}.rules" for name in GROUPS}
    ]
    assert len(kept) == len(GROUPS)
    file = tmp_path_factory.mktemp("rules") / "capacity.yaml"
    file.write_text(yaml.dump({"groups": [{**group, "interval": "1s"} for group in kept]}))
    with Store(lookback_s=3600) as store:
        now_s = time.time()
        for piece in (*_past(now_s), tuple(_present(now_s))):
            store.write(piece)
        store.evaluate([Path(file)])
        eventually(lambda: store.query("plumbline:capacity_time_to_host_loss_unsafe:days"), within_s=60)
        time.sleep(3)  # each of the groups has seen what the others recorded
        yield store


@pytest.fixture(scope="module")
def facts(ruled: Store) -> Facts:
    answers = Server(ruled.url, timeout_s=60).answers(tuple(queries(time.time(), None)))
    return only(facts_of(answers), cluster=None, url=ruled.url)


def recorded(store: Store, metric: str, *labels: str) -> dict[tuple[str, ...], float]:
    found = store.query(metric)
    return {tuple(each["metric"].get(name, "") for name in labels): float(each["value"][1]) for each in found}


def test_the_rules_and_the_module_agree(ruled: Store, facts: Facts) -> None:
    assert facts.classes == ("hdd", "ssd")
    of = "plumbline:capacity_"
    figures = {name: class_figures(facts, name) for name in facts.classes}
    for metric, attribute in {
        "size:bytes": "size", "used:bytes": "used", "fullest:ratio": "fullest", "left:bytes": "left",
        "host_loss:ratio": "host_loss", "host_loss_left:bytes": "host_loss_left",
    }.items():  # fmt: skip
        expected = {(name,): pytest.approx(getattr(each, attribute)) for name, each in figures.items()}
        assert recorded(ruled, of + metric, "device_class") == expected, metric
    after = recorded(ruled, of + "after_loss:ratio", "device_class", "domain", "name", "scope")
    losses = [(name, *loss) for name in figures for loss in after_losses(facts, name)]
    # hosts among all, within their rack, within their room; racks; then the hosts of the other class
    assert len(after) == 6 + 6 + 6 + 3 + 4
    found = sorted((name, kind, lost, ratio) for (name, kind, lost, _), ratio in after.items())
    assert [each[:3] for each in found] == [each[:3] for each in sorted(losses)]
    assert [each[3] for each in found] == pytest.approx([each[3] for each in sorted(losses)])
    heals = recorded(ruled, of + "self_healing:bool", "pool")
    assert heals == {(pool.name,): pool_figures(facts, pool).heals for pool in facts.pools}
    assert set(heals.values()) == {0, 1}


def test_days_agree(ruled: Store, facts: Facts) -> None:
    for metric, attribute in (("time_to_full", "days_to_full"), ("time_to_host_loss_unsafe", "days_to_unsafe")):
        found = recorded(ruled, f"plumbline:capacity_{metric}:days", "device_class", "slope")
        days = getattr(class_figures(facts, "hdd"), attribute)
        assert found.keys() == {("hdd", slope) for slope in days}
        for (_, slope), value in found.items():
            # the slope is taken anew each second
            assert value == pytest.approx(days[slope], rel=0.02)
    assert facts.load("hdd").growth["3d"] == pytest.approx(GROWTH, rel=0.02)


def test_without_a_bench_mclocks_capacity_is_the_measure(facts: Facts) -> None:
    found = class_figures(facts, "hdd")
    assert (found.measured_by, found.iops_used) == ("mclock", pytest.approx(ASKED / (12 * MCLOCK)))
    more = class_figures(changes.with_hosts(facts, "hdd", 2), "hdd")
    assert (more.osds, more.iops_used) == (16, pytest.approx(ASKED / (16 * MCLOCK)))


@pytest.fixture(scope="module")
def examples() -> Iterator[Store]:
    need("prometheus")
    with Store(lookback_s=what_if.LOOKBACK_S) as store:
        for example in what_if.EXAMPLES:
            store.write(what_if.series(example))
        yield store


def asked(store: Store, *flags: str) -> subprocess.CompletedProcess[str]:
    argv = [*COMMAND, "capacity", "what-if", "--prometheus", store.url, *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("flags", "printed"), what_if.told())
def test_the_page_shows_what_is_printed(examples: Store, flags: str, printed: str) -> None:
    done = asked(examples, *shlex.split(flags))
    refused = printed.startswith("plumbline: ")
    assert (done.stdout, done.stderr, done.returncode) == (("", printed, 1) if refused else (printed, "", 0))


def test_the_page_has_examples_of_each_cluster() -> None:
    pages = [flags for flags, _ in what_if.told()]
    assert {example.cluster for example in what_if.EXAMPLES} == {flags.split()[1] for flags in pages}


@pytest.mark.parametrize(
    ("flags", "code", "complaint"),
    [
        (["--lose", "host"], 1, "several clusters (databases, measured, thesis); choose one with --cluster"),
        (["--cluster", "nope"], 1, "no OSD's size of a cluster 'nope'"),
        (["--cluster", "thesis", "--lose", "host=stor99"], 2, "no host 'stor99'; there are: stor1, stor10"),
        (["--cluster", "thesis", "--lose", "db"], 1, "no separate database of an OSD is known"),
        (["--cluster", "thesis", "--add-disks", "nvme=2"], 2, "no OSD of the class 'nvme'; there are: hdd, ssd"),
    ],
)
def test_what_can_not_be_asked_is_one_line(examples: Store, flags: list[str], code: int, complaint: str) -> None:
    done = asked(examples, *flags)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert complaint in done.stderr


def test_the_usual_ones_without_a_change(examples: Store) -> None:
    done = asked(examples, "--cluster", "databases")
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert {"as it is", "growth × 2", "1 more hdd host", "the database disk with most data lost"} <= set(rows)


def test_how_long_it_keeps_its_samples(examples: Store) -> None:
    """The store is started with 100 years."""
    assert read_retention(examples.url, timeout_s=30) == 100 * 365 * 86400
