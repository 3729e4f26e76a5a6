"""``make scale-simulation``: what a thousand nodes with ten thousand OSDs cost a Prometheus, measured on fewer.

A real Prometheus scrapes so many simulated storage hosts (``simulated.py``), one number after the other, and evaluates
all our rules. Series, samples, memory and CPU are read from its own metrics. Then it is left with what it has and asked
for every rule three times, one after the other: the CPU that takes (the median) is what the rules cost an interval, on
a busy machine too. Last the panels of the first dashboard are asked, over the minutes there are. A line is laid through
the figures, and the last number of hosts, measured as well, says how well the line foretells; then it is drawn on to a
thousand.
``--together`` runs all numbers of hosts at once, each with a Prometheus of its own, and measures them one after the
other when all have scraped for long enough: ten minutes instead of half an hour, on a machine with enough memory.

Bytes on disk are measured on two hours of one host, in blocks that promtool writes: a Prometheus that has run for
minutes has written none.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from deploy.demo import api, configs
from deploy.demo.processes import Process, Processes, free_port, program
from deploy.prometheus import keeplist

from bench.history_store import cpu_s
from bench.queries_panels import Range, asked
from bench.queries_peers import VALUES, ours
from preview.answers import PreviewError, Server
from support.metrics import ROOT
from support.moving_page import of_exposition
from support.rules import ALERTS, NATIVE, RULES, rules_of
from support.storage_host import SUBJECTS, counted, families, storage_host

from .simulated import exporters, nodes, simulated

HOSTS, HELD_OUT, WANTED = (20, 40, 80), 120, 1000
INTERVAL_S = 30
SETTLE_S = 390
"""Longer than the five minutes that most rules look back."""
WINDOW = "3m"
ASKED = 3
"""How often a rule is asked: a garbage collection may fall into one of them."""
MOST_BYTES = 10 << 30
DEAREST = 25
FIRST_PAGE = "overview"
BLOCK_S = 7200
"""Of a block."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the hosts are scraped: ``full`` pages, without the keep-list of Ceph's, histograms as ``native`` ones."""

    full: bool
    native: bool

    @property
    def rules(self) -> list[Path]:
        return list(NATIVE) if self.native else [RULES, ALERTS]

    def job(self, name: str) -> dict[str, object]:
        """What a job says for it."""
        found: dict[str, object] = {}
        if not self.full and name == "ceph":
            found |= yaml.safe_load(keeplist.relabelling(keeplist.names(ROOT)["ceph"]))
        if self.native and name == "plumbline":
            found["convert_classic_histograms_to_nhcb"] = True
        return found


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one Prometheus with so many hosts. CPU is of one interval; ``missed`` is the share of evaluations left out."""

    hosts: int
    series: float
    recorded: float
    samples_per_s: float
    resident_bytes: float
    cpu_s: float
    rules_s: float
    slowest_group_s: float
    slowest_group: str
    missed: float
    rules: Mapping[tuple[str, str], float]
    records: Mapping[str, float]
    panel_s: float
    panel: str


FIGURES = {
    "series": "series",
    "recorded": "of them recorded by rules",
    "samples_per_s": "samples a second",
    "resident_bytes": "resident memory, bytes",
    "cpu_s": "CPU seconds an interval",
    "rules_s": "of them for rules",
    "slowest_group_s": "for the slowest group",
    "panel_s": "slowest panel of the first page, seconds",
}


def main() -> int:
    """Exit code 0: measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[*HOSTS, HELD_OUT], help="the last one tests the line")
    parser.add_argument("--settle", type=float, default=SETTLE_S, help="seconds before each measurement")
    parser.add_argument("--together", action="store_true", help="all numbers of hosts at once")
    parser.add_argument("--full", action="store_true", help="the daemons' full page, and no keep-list of Ceph's")
    parser.add_argument("--native", action="store_true", help="native histograms, by Prometheus 3.5 in PATH")
    parser.add_argument("--count-only", action="store_true", help="only what a host's page holds, and bytes on disk")
    options = parser.parse_args()
    form = Form(options.full, options.native)
    with tempfile.TemporaryDirectory(prefix="pl-") as folder:
        page = storage_host(Path(folder), full=form.full)
    _print_page(page)
    with tempfile.TemporaryDirectory(prefix="plumbline-scale-", dir="/var/tmp") as folder:
        _print_disk(page, Path(folder))
    if not options.count_only:
        measured = []
        for some in [options.hosts] if options.together else [[hosts] for hosts in options.hosts]:
            for found in _measure(some, form, options.settle):
                measured.append(found)
                _print_measured(found)
        if len(measured) > 2:
            _print_lines(measured[:-1], measured[-1])
    return 0


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Least squares: (at zero, for each)."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return mean_y - slope * mean_x, slope


@dataclass(frozen=True, slots=True)
class Running:
    """A Prometheus that scrapes so many hosts."""

    hosts: int
    url: str
    server: Process
    config: Path


def scraped(form: Form, proxy: str, daemons: Sequence[str], ceph: Sequence[str]) -> list[dict[str, object]]:
    """The jobs for these addresses."""
    return [
        {
            "job_name": job,
            "honor_labels": job == "ceph",
            "proxy_url": proxy,
            "scrape_timeout": f"{INTERVAL_S}s",
            "static_configs": [{"targets": targets, "labels": {"cluster": VALUES["cluster"]}}],
            **form.job(job),
        }
        for job, targets in (("plumbline", list(daemons)), ("ceph", list(ceph)))
    ]


def _measure(sizes: Sequence[int], form: Form, settle_s: float) -> Iterator[Measured]:
    """One Prometheus for each size, at once."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_scraping(hosts, form)) for hosts in sizes]
        time.sleep(settle_s)
        said = [_read(each) for each in running]
        groups = [_at_rest(each) for each in running]
        time.sleep(5)
        for each, figures, (moment, rules) in zip(running, said, groups, strict=True):
            yield _measured(each, figures, moment, rules)


@contextlib.contextmanager
def _scraping(hosts: int, form: Form) -> Iterator[Running]:
    address = f"127.0.0.1:{free_port()}"
    with (
        tempfile.TemporaryDirectory(prefix="plumbline-scale-", dir="/var/tmp") as name,
        simulated(hosts, full=form.full) as proxy,
    ):
        folder = Path(name)
        processes = Processes(folder)
        try:
            config = {
                "global": {"scrape_interval": f"{INTERVAL_S}s", "evaluation_interval": f"{INTERVAL_S}s"},
                "rule_files": [str(path) for path in form.rules],
                "scrape_configs": [
                    *scraped(form, proxy, nodes(hosts), exporters(hosts)),
                    {"job_name": "prometheus", "static_configs": [{"targets": [address]}]},
                ],
            }
            file = configs.write(folder / "prometheus.yml", config)
            server = processes.start(
                "prometheus",
                [program("prometheus", "prometheus"), f"--config.file={file}", f"--web.listen-address={address}",
                 f"--storage.tsdb.path={folder / 'data'}", "--log.level=warn", "--query.timeout=10m",
                 *(["--enable-feature=native-histograms"] if form.native else [])],
            )  # fmt: skip
            url = f"http://{address}"
            while not api.ready(f"{url}/-/ready"):
                processes.check()
                time.sleep(0.5)
            yield Running(hosts, url, server, file)
        finally:
            processes.stop()


def _read(running: Running) -> dict[str, Any]:
    """What it says of itself while it scrapes and evaluates."""
    hosts, url = running.hosts, running.url
    up = _value(url, "count(up == 1)")
    if up != 2 * hosts + 2:
        print(f"only {up:g} of {2 * hosts + 2} targets answer", file=sys.stderr)
    own = '{job="prometheus"}'
    resident = _value(url, f"max_over_time(process_resident_memory_bytes{own}[{WINDOW}])")
    if resident > MOST_BYTES:
        print(f"{resident / 2**30:.1f} GiB resident: more than this machine should give", file=sys.stderr)
    names = "|".join(sorted({rule["record"] for rule in rules_of(RULES)}))
    missed, done = (
        _value(url, f"sum(increase(prometheus_rule_group_iterations_{what}total{own}[{WINDOW}]))")
        for what in ("missed_", "")
    )
    series = _value(url, f"last_over_time(prometheus_tsdb_head_series{own}[{WINDOW}])")
    recorded = _value(url, f'count({{__name__=~"{names}"}})')
    samples = _value(url, f"rate(prometheus_tsdb_head_samples_appended_total{own}[{WINDOW}])")
    cpu = INTERVAL_S * _value(url, f"rate(process_cpu_seconds_total{own}[{WINDOW}])")
    records = {
        each["metric"]["__name__"]: float(each["value"][1])
        for each in Server(url).get("query", {"query": f'count by (__name__) ({{__name__=~"{names}|ALERTS.*"}})'})[
            "result"
        ]
    }
    return {
        "series": series, "recorded": recorded, "samples_per_s": samples, "resident_bytes": resident, "cpu_s": cpu,
        "missed": missed / (missed + done), "records": records,
    }  # fmt: skip


def _at_rest(running: Running) -> tuple[float, list[dict[str, Any]]]:
    """A Prometheus that from now on does nothing but answer: its last moment, and the groups of rules it had."""
    groups = Server(running.url).get("rules", {})["groups"]
    moment = float(Server(running.url).get("query", {"query": "time()"})["result"][1])
    configs.write(running.config, {"scrape_configs": []})
    running.server.popen.send_signal(signal.SIGHUP)
    while Server(running.url).get("rules", {})["groups"]:
        time.sleep(1)
    return moment, groups


def _measured(running: Running, said: Mapping[str, Any], moment: float, groups: list[dict[str, Any]]) -> Measured:
    rules = _rule_costs(running, moment, groups)
    of_groups = dict[str, float]()
    for (group, _), cost in rules.items():
        of_groups[group] = of_groups.get(group, 0.0) + cost
    slowest = max(of_groups, key=lambda name: of_groups[name])
    panels = _panel_seconds(running.url, moment)
    panel = max(panels, key=lambda name: panels[name])
    return Measured(
        running.hosts, **said, rules_s=sum(of_groups.values()), slowest_group_s=of_groups[slowest],
        slowest_group=slowest, rules=rules, panel_s=panels[panel], panel=panel,
    )  # fmt: skip


def _rule_costs(running: Running, moment: float, groups: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """CPU seconds of an interval by group and rule."""
    found = dict[tuple[str, str], float]()
    pid = running.server.popen.pid
    for group in groups:
        for number, rule in enumerate(group["rules"], 1):
            clocks = [cpu_s(pid)]
            for _ in range(ASKED):
                # counted: what is sent as text would cost more than it does to find
                _ask(f"{running.url}/api/v1/query", {"query": f"count({rule['query']})", "time": str(moment)})
                clocks.append(cpu_s(pid))
            cost = statistics.median(after - before for before, after in itertools.pairwise(clocks))
            found[group["name"], f"{number}. {rule['name']}"] = cost * INTERVAL_S / float(group["interval"])
    return found


def _panel_seconds(url: str, moment: float) -> dict[str, float]:
    """Seconds until each panel of the first page is answered, for six hours, of which there are minutes."""
    over, found = Range("6 hours", 6 * 3600, INTERVAL_S), dict[str, float]()
    for panel in ours():
        if panel.dashboard != FIRST_PAGE:
            continue
        began = time.perf_counter()
        for query in panel.queries:
            expr = asked(query.expr, over)
            if query.instant:
                _ask(f"{url}/api/v1/query", {"query": expr, "time": str(moment)})
            else:
                span = {"start": str(moment - over.length_s), "end": str(moment), "step": str(over.step_s)}
                _ask(f"{url}/api/v1/query_range", {"query": expr, **span})
        found[panel.title] = time.perf_counter() - began
    return found


def _ask(url: str, form: Mapping[str, str]) -> None:
    body = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(url, body, timeout=600) as answer:
        answer.read()


def _value(url: str, query: str) -> float:
    for _ in range(5):  # a busy server may take longer than we wait
        try:
            found = Server(url).get("query", {"query": query, "timeout": "50s"})["result"]
            return float(found[0]["value"][1]) if found else float("nan")
        except PreviewError as error:
            print(error, file=sys.stderr)
    return float("nan")


def _print_page(page: str) -> None:
    series = counted(page)
    print(f"a storage host: {sum(series.values()):,} series")
    print("  " + ", ".join(f"{subject} {series[subject]:,}" for subject in SUBJECTS))
    print("  " + ", ".join(f"{name} {count:,}" for name, count in families(page).most_common(10)), flush=True)


def _print_disk(page: str, folder: Path) -> None:
    """Two hours of the page, a sample each interval, as promtool packs it."""
    text = folder / "host.openmetrics"
    samples = _write_history(page, text)
    subprocess.run(
        [
            program("promtool", "prometheus"),
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "--quiet",
            text,
            folder / "blocks",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    chunks = sum(file.stat().st_size for file in folder.glob("blocks/*/chunks/*"))
    whole = sum(file.stat().st_size for file in folder.glob("blocks/**/*") if file.is_file())
    print(f"on disk: {whole / samples:.2f} bytes a sample, {chunks / samples:.2f} without the index", flush=True)


def _write_history(page: str, to: Path) -> int:
    """Counters that stood when the page was made stand; others grow by a whole number that wavers, as events do."""
    lines = [each for each in of_exposition(page).lines if not each.series.startswith("plumbline_build_info")]
    chance = random.Random(9)
    values = [each.value for each in lines]
    start = 1_700_000_000 // BLOCK_S * BLOCK_S
    count = 0
    with to.open("w", encoding="utf-8") as file:
        # a metric's samples must stand together
        for index, each in sorted(enumerate(lines), key=lambda pair: pair[1].series):
            for moment in range(start, start + BLOCK_S, INTERVAL_S):
                if each.per_s:
                    values[index] += round(each.per_s * INTERVAL_S * chance.uniform(0.5, 1.5))
                file.write(f"{each.series} {values[index]!r} {moment}\n")
                count += 1
        file.write("# EOF\n")
    return count


def _print_measured(found: Measured) -> None:
    told = ", ".join(f"{label} {getattr(found, name):,.3g}" for name, label in FIGURES.items())
    each = found.resident_bytes / found.series
    print(f"\n{found.hosts} hosts: {told} ({found.slowest_group} and {found.panel!r}); {each:,.0f} bytes a series")
    print(f"  {found.missed:.1%} of the evaluations missed; the dearest rules, in CPU seconds an interval:")
    for (group, rule), cost in sorted(found.rules.items(), key=lambda pair: -pair[1])[:DEAREST]:
        print(f"    {cost:8.3f}  {group} / {rule}")
    print("  the most recorded, series a host:")
    for name, count in sorted(found.records.items(), key=lambda pair: -pair[1])[:DEAREST]:
        print(f"    {count / found.hosts:8.1f}  {name}")
    print(end="", flush=True)


def _print_lines(measured: Sequence[Measured], held_out: Measured) -> None:
    head = f"{'':32}{'each node':>12}{'at none':>12}{held_out.hosts:>9} foretold{'measured':>12}{'error':>8}"
    print(f"\n{head}{WANTED:>14,}")
    for name, label in FIGURES.items():
        at_none, each = line([(found.hosts, getattr(found, name)) for found in measured])
        foretold, real = at_none + each * held_out.hosts, getattr(held_out, name)
        wanted = at_none + each * WANTED
        print(
            f"{label:32}{each:>12,.4g}{at_none:>12,.4g}{foretold:>18,.4g}{real:>12,.4g}{foretold / real - 1:>8.1%}"
            f"{wanted:>14,.4g}"
        )


if __name__ == "__main__":
    sys.exit(main())
