"""``make bench-queries``: what our panels and rules cost beside node-mixin's and ceph-mixin's, on the same large fleet.

A real Prometheus is given 200 nodes with 2,000 disks and OSDs (see ``queries_fleet``). First the rules: half an hour of
raw series, the rules evaluated at the present, then each of them once more alone (``queries_rules``). Then the panels:
what the rules recorded and what panels read raw becomes a history, and every query of the pages L0 and L1 is asked as
Grafana asks it, beside the others' (``queries_panels``).

CPU seconds are Prometheus' own, whoever else uses the machine; wall time stands beside them. Printed are ratios, and
the panels over their target of seconds, which are those of this machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from bench import queries_fleet as fleet
from bench import queries_panels, queries_rules
from bench.queries_fleet import Template
from bench.queries_peers import ceph_mixin, names, node_mixin, ours
from support.ceph_pages import Page
from support.daemon import eventually, running
from support.osd_fleet import osd_fleet
from support.ports import free_port
from support.rules import ALERTS, RULES, rules_of


def main() -> int:
    """Exit code 0: measured. Nothing is judged here."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as name:
        folder = Path(name)
        theirs_rules = folder / "node-mixin.yaml"
        theirs = [*ceph_mixin(), *node_mixin(theirs_rules)]
        for who, found in (("ceph-mixin", "ceph-cluster"), ("node-mixin", "node-cluster-rsrc-use")):
            if not any(panel.dashboard == found for panel in theirs):
                print(f"({who} can't be had here: compared with the others alone)")
        panels = [panel for panel in ours() if panel.dashboard in queries_panels.LEVELS]
        rules = [RULES, ALERTS, *([theirs_rules] if theirs_rules.exists() else [])]
        shown = {word for panel in (*panels, *theirs) for query in panel.queries for word in names(query.expr)}
        judged = {word for file in rules for rule in rules_of(file) for word in names(rule["expr"])}
        series = _series(folder, options.nodes, (shown | judged).__contains__)
        recorded = queries_rules.measure([each for each in series if each.name in judged], rules)
        if not options.rules_only:
            kept = [each for each in (*series, *recorded) if each.name in shown]
            queries_panels.measure(panels, theirs, kept, days=options.days, every_s=options.every)
    return 0


def _series(folder: Path, nodes: int, keep: Callable[[str], bool]) -> list[Template]:
    """What one daemon, with ten OSDs, and one node_exporter say here, as 200 nodes would."""
    sockets = folder / "sockets"
    sockets.mkdir()
    site = folder / "site.yaml"
    site.write_text(
        '{"schema_version": 1, "entries": [{"workload": "randread-4k-qd1-j1", "device_class": "ssd",'
        ' "latency": {"p50": "1ms", "p99": "3ms", "mean": "1ms"}}]}'
    )
    config = {
        "baseline": {"files": [str(site)]},
        "ceph": {"admin_sockets": [f"{sockets}/*.asok"]},
        "probes": [{"type": "canary", "name": "canary", "device_class": "ssd", "rate": 20, "file_size": "4MiB"}],
    }
    with osd_fleet(sockets, fleet.OSDS, peers=3 * fleet.OSDS), running(folder, config=config) as daemon:
        eventually(lambda: "plumbline_osd_latency_seconds_count" in daemon.get("/metrics").text, within_s=60)
        time.sleep(30)
        page = fleet.one_of_each(daemon.get("/metrics?profile=full").text, fleet.DAEMON)
    return list(fleet.fleet(page, _node_exporter(), nodes=nodes, keep=keep))


def _node_exporter() -> Page:
    port = free_port()
    argv = ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    try:
        process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        print("(prometheus-node-exporter is not installed: node-mixin's panels find nothing)")
        return {}
    try:

        def text() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return str(answer.read().decode())

        return fleet.one_of_each(eventually(_unless_refused(text)), fleet.NODE_EXPORTER)
    finally:
        process.terminate()
        process.wait()


def _unless_refused(ask: Callable[[], str]) -> Callable[[], str]:
    def asked() -> str:
        try:
            return ask()
        except OSError:
            return ""

    return asked


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=fleet.NODES, help="with ten disks and OSDs each")
    parser.add_argument("--days", type=int, default=7, help="how long the history is")
    every = queries_panels.DENSE_EVERY_S
    parser.add_argument(
        "--every", type=int, default=every, metavar="S", help=f"between samples of the last day ({every})"
    )
    parser.add_argument("--rules-only", action="store_true", help="only what evaluating the rules costs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
