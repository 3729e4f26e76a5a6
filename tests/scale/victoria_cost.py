"""``make scale-victoria``: what a fleet costs two agents, VictoriaMetrics and vmalert, measured on simulated hosts.

What is started is what docs/scale.md says (``victoria.py``), with an Alertmanager; each agent has half of the hosts of
``simulated.py``, scraped every 30 s with the default page and the keep-list of Ceph's. After some minutes the CPU of
three more is read from the kernel, and resident memory at their end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil
from deploy.demo.processes import Processes

from bench.history_store import cpu_s
from preview.answers import Server
from support.victoria import program

from .simulated import exporters, nodes, simulated
from .simulation import INTERVAL_S, SETTLE_S, Form, scraped
from .topology import SHARDS, told_by
from .victoria import PROGRAMS, Engine, engine

HOSTS = 400
MEASURED_S = 180.0
FULLEST = 5


def main() -> int:
    """Exit code 0: measured; 1: targets or rules failed, so the figures are of something else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--settle", type=float, default=SETTLE_S, help="seconds before the measurement")
    options = parser.parse_args()
    programs = [program(name) for name in PROGRAMS]
    with (
        tempfile.TemporaryDirectory(prefix="plumbline-scale-", dir="/var/tmp") as name,
        simulated(options.hosts) as proxy,
        told_by(Path(name) / "alertmanager") as told,
    ):
        folder, form = Path(name), Form(full=False, native=False)
        addresses = nodes(options.hosts), exporters(options.hosts)
        halves = [scraped(form, proxy, *(each[n::SHARDS] for each in addresses)) for n in range(SHARDS)]
        configs = [{"global": {"scrape_interval": f"{INTERVAL_S}s"}, "scrape_configs": jobs} for jobs in halves]
        processes = Processes(folder)
        try:
            running = engine(processes, folder, configs, told.url, programs[0].parent)
            time.sleep(options.settle)
            processes.check()
            return _measure(running, options.hosts)
        finally:
            processes.stop()


def _measure(running: Engine, hosts: int) -> int:
    pids = {name: part.popen.pid for name, part in running.parts.items()}
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    began = time.monotonic()
    time.sleep(MEASURED_S)
    passed_s = time.monotonic() - began
    used = {name: (cpu_s(pid) - before[name]) * INTERVAL_S / passed_s for name, pid in pids.items()}
    for name, pid in pids.items():
        resident = psutil.Process(pid).memory_info().rss / 2**30
        print(f"  {name:8} {used[name]:6.2f} CPU seconds in {INTERVAL_S} s, {resident:.2f} GiB resident", flush=True)
    up, scraped_series = (
        _value(running.store, f"sum({name})") for name in ("up", "scrape_samples_post_metric_relabeling")
    )
    series = _active(running.store)
    print(f"{hosts} hosts, {up:,.0f} targets up, {series:,.0f} series, {scraped_series:,.0f} of them scraped")
    groups = Server(running.rules).get("rules", {})["groups"]
    failed = [
        f"{rule['name']}: {rule['lastError']}" for group in groups for rule in group["rules"] if rule["lastError"]
    ]
    seconds = {
        group["name"]: sum(rule["evaluationTime"] for rule in group["rules"]) / group["interval"] for group in groups
    }
    for name in sorted(seconds, key=lambda name: -seconds[name])[:FULLEST]:
        print(f"  {seconds[name]:6.1%} of its interval: {name}")
    print(*failed, sep="\n")
    return 1 if failed or up != 2 * hosts + 1 else 0


def _active(store: str) -> float:
    """Series of the last hour, from the store's own page: to count them by a query takes longer than it may."""
    with urllib.request.urlopen(f"{store}/metrics", timeout=60) as answer:
        page = answer.read().decode()
    return float(page.partition('vm_cache_entries{type="storage/hour_metric_ids"} ')[2].partition("\n")[0])


def _value(url: str, query: str) -> float:
    return float(Server(url).get("query", {"query": query})["result"][0]["value"][1])


if __name__ == "__main__":
    sys.exit(main())
