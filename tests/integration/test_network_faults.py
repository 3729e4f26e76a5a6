"""Losses made on purpose, seen in the metric, in the finding with the command that mends it, and in the alert.

The settings of the receive path and its counters belong to the whole host, so ``plumbline`` runs outside the namespace
in which the loss is made, except where the setting is a namespace's own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.kernel.softnet import read_softnet
from support.daemon import Daemon, eventually, run, running
from support.losses import (
    flood,
    going_on,
    overfill_a_socket,
    receive_slowly,
    segment_in_the_stack,
    send_bursts,
    send_frames,
    setting,
)
from support.netns import Namespace, namespace
from support.programs import need
from support.prometheus import Prometheus, prometheus

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces and losses"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2"),
    pytest.mark.skipif(shutil.which("ethtool") is None, reason="needs ethtool"),
    pytest.mark.timeout(180),
]
HOST = Roots.under(Path("/"))


@pytest.fixture
def ns() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@dataclass(frozen=True, slots=True)
class Watched:
    """This host, scraped every second by a Prometheus that has all our rules."""

    daemon: Daemon
    prometheus: Prometheus

    def alerting(self, name: str) -> bool:
        """Whether the alert's expression is true, however long yet."""
        return name in self.prometheus.alert_states()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    need("prometheus")
    with (
        running(folder, config={"probes": []}) as daemon,
        prometheus(folder, target=urlsplit(daemon.url).netloc) as server,
    ):
        # two scrapes: what an expression needs to tell growth from none
        eventually(
            lambda: (
                (server.query("max(count_over_time(plumbline_softnet_packets_dropped_total[5m]))") or [({}, 0)])[0][1]
                > 1
            )
        )
        yield Watched(daemon, server)


@dataclass(frozen=True, slots=True)
class Said:
    """What ``plumbline check`` says of one check that has one subject."""

    met: bool
    severity: str
    actual: str
    fix: str


def check(*prefix: str) -> dict[str, Said]:
    """Check → what is said; one look, a second, and another look."""
    done = run("check", "--json", "--wait", "1s", prefix=prefix)
    assert done.stderr == ""
    return {
        each["check"]: Said(each["met"], each["severity"], each["is"], each.get("fix", {}).get("now", ""))
        for each in json.loads(done.stdout)["findings"]
    }


def kernel_says(what: str) -> int:
    """A column of the kernel's table, of all CPUs."""
    return sum(int(getattr(each, what)) for each in read_softnet(HOST))


def test_a_backlog_that_overflows(ns: Namespace, watched: Watched) -> None:
    metric, alert = "plumbline_softnet_packets_dropped_total", "PlumblineSoftnetBacklogOverflow"
    assert "dropped recently" not in check()["network.netdev-max-backlog"].actual
    assert not watched.alerting(alert)
    shown, had = watched.daemon.metrics().total(metric), kernel_says("dropped")
    ns.run(segment_in_the_stack)
    with setting("net/core/netdev_max_backlog", "32"), going_on(ns, lambda: send_bursts(5), pause_s=0.05):
        said = check()["network.netdev-max-backlog"]
    lost = kernel_says("dropped") - had
    assert lost >= 5 * (64 - 33), "what does not fit beside 32, and one in hand, is dropped"
    assert watched.daemon.metrics().total(metric) - shown == lost

    assert (said.met, said.severity) == (False, "warning")
    assert said.actual.startswith("32, ")
    assert "packets dropped recently on CPU " in said.actual
    assert said.fix == "sysctl -w net.core.netdev_max_backlog=1000"
    eventually(lambda: watched.alerting(alert))

    over = check()["network.netdev-max-backlog"]
    assert "since boot" in over.actual
    assert "dropped recently" not in over.actual
    if int((HOST.proc / "sys/net/core/netdev_max_backlog").read_text()) <= 1000:
        assert (over.met, over.severity) == (False, "info"), "it is at its default again, and has been too small"


def test_a_budget_that_is_too_small(ns: Namespace, watched: Watched) -> None:
    metric, alert = "plumbline_softnet_time_squeezes_total", "PlumblineSoftnetTimeSqueeze"
    assert check()["network.netdev-budget"].met
    eventually(lambda: not watched.alerting(alert))  # a busy host cuts turns short, too
    before = watched.daemon.metrics()
    with setting("net/core/netdev_budget", "1"), going_on(ns, flood):
        said = check()
    after = watched.daemon.metrics()
    assert after.total(metric) - before.total(metric) > 3000

    budget = said["network.netdev-budget"]
    assert not budget.met
    assert budget.actual.startswith("1, ")
    assert "turns recently cut short by it on CPU " in budget.actual
    assert budget.fix == "sysctl -w net.core.netdev_budget=300"
    # a longer time would change nothing; a busy host may cut a turn short by it as well
    assert 100 * cut_short(said["network.netdev-budget-usecs"]) < cut_short(budget)
    assert "dropped recently" not in said["network.netdev-max-backlog"].actual, "nothing was lost"
    eventually(lambda: watched.alerting(alert))
    assert check()["network.netdev-budget"].met


def cut_short(said: Said) -> int:
    """The turns that a check says were recently cut short."""
    found = re.search(r"([\d,]+) turns? recently cut short", said.actual)
    return int(found[1].replace(",", "")) if found else 0


def test_packets_that_take_too_long_ask_for_time_and_not_for_budget(ns: Namespace) -> None:
    usecs = int(Path("/proc/sys/net/core/netdev_budget_usecs").read_text())
    assert check()["network.netdev-budget-usecs"].met
    had = kernel_says("time_squeeze")
    with going_on(ns, receive_slowly):
        said = check()
    assert kernel_says("time_squeeze") > had
    assert not said["network.netdev-budget-usecs"].met
    assert said["network.netdev-budget-usecs"].fix == f"sysctl -w net.core.netdev_budget_usecs={usecs * 2}"
    assert said["network.netdev-budget"].met, "a larger budget would change nothing"


def test_a_socket_that_overflows_asks_for_memory_and_the_command_gives_it(ns: Namespace) -> None:
    inside = ("ip", "netns", "exec", ns.name)
    ours = "net.ipv4.tcp_rmem=4096 131072 4194304"
    subprocess.run([*inside, "sysctl", "-qw", ours], check=True, capture_output=True)
    assert check(*inside)["network.tcp-rmem"].met
    with going_on(ns, overfill_a_socket):
        said = check(*inside)["network.tcp-rmem"]
    assert not said.met
    assert "segments dropped recently" in said.actual
    assert said.fix == 'sysctl -w net.ipv4.tcp_rmem="4096 131072 8388608"'
    subprocess.run([*inside, "sh", "-c", said.fix], check=True, capture_output=True)
    now = check(*inside)["network.tcp-rmem"]
    assert (now.met, now.actual) == (True, "4096 131072 8388608")


def test_frames_that_nobody_wants_are_counted_and_no_reason_for_advice(ns: Namespace, tmp_path: Path) -> None:
    """A software link has neither ring nor buffer: a drop there must not ask for either."""
    ns.batch("link add va type veth peer name vb\nlink set va addrgenmode none up\nlink set vb addrgenmode none up\n")
    inside = ("ip", "netns", "exec", ns.name)

    def drops(daemon: Daemon) -> dict[tuple[str, str, str], float]:
        found = ns.run(daemon.metrics).series("plumbline_nic_drops_total")
        return {
            (each.labels["device"], each.labels["direction"], each.labels["cause"]): each.value
            for each in found
            if each.labels["device"] != "lo"
        }

    with running(tmp_path, config={"probes": []}, prefix=inside) as daemon:
        had = check(*inside)
        before = drops(daemon)
        with going_on(ns, lambda: send_frames("va", 50, 100), pause_s=0.05):
            said = check(*inside)
        after = drops(daemon)
    grown = {series: value - before[series] for series, value in after.items() if value != before[series]}
    assert grown.keys() == {("vb", "receive", "other")}
    assert grown["vb", "receive", "other"] >= 50
    assert said == had
