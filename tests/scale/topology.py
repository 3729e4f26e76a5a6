"""Two shards with sidecars, Query and Ruler as docs/scale.md has them, and beside them one Prometheus with everything.

Both sides have an Alertmanager of their own. Intervals are the documented ones; addresses are on
loopback, targets are the fleet's proxy and one real daemon; all else is the page's.
"""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.demo import api, configs
from deploy.demo.processes import Process, Processes

from preview.answers import Server
from support.alertmanager import Alertmanager, alertmanager
from support.daemon import eventually
from support.ports import free_port
from support.programs import need
from support.rules import ALERTS, ROOT, RULES

from .documented import command, configuration, with_flags

SHARDS = 2
INTERVAL_S = 30
"""Of scrapes and evaluations."""
READY_S = 120.0


def thanos() -> str:
    """The program: ``PLUMBLINE_THANOS``, as ``make scale`` sets it. Without it the test is skipped."""
    found = shutil.which(os.environ.get("PLUMBLINE_THANOS", ""))
    if found is None:
        pytest.skip("PLUMBLINE_THANOS names no thanos program: make scale THANOS=/path/to/thanos")
    return found


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is scraped: addresses behind a proxy with their ``cluster``, and real ones (``direct``)."""

    proxy: str
    nodes: Mapping[str, str]
    managers: Mapping[str, str]
    direct: Sequence[str]
    direct_cluster: str


@dataclass(slots=True)
class Side:
    """Where to ask for series, where for rules and alerts, and who was told."""

    series: str
    rules: str
    alertmanager: Alertmanager


@dataclass(slots=True)
class Topology:
    """Both sides, the shards' URLs, and the sidecars, to be stopped."""

    one: Side
    many: Side
    shards: list[str]
    sidecars: list[Process]
    processes: Processes


@contextlib.contextmanager
def topology(folder: Path, fleet: Fleet) -> Iterator[Topology]:
    """All started and ready; nothing is scraped yet longer than a moment."""
    program = thanos()
    processes = Processes(folder)
    with contextlib.ExitStack() as stack:
        told = [stack.enter_context(told_by(folder / name)) for name in ("one", "many")]
        stack.callback(processes.stop)
        urls = {name: f"127.0.0.1:{free_port()}" for name in ("one", "shard-0", "shard-1", "query", "ruler")}
        grpc = {name: f"127.0.0.1:{free_port()}" for name in ("shard-0", "shard-1", "query", "ruler")}
        watch = folder / "plumbline-shard"
        _shard_rules(watch)
        watched = [urls["shard-0"], urls["shard-1"], urls["ruler"], urls["one"]]
        sidecars = []
        for number in range(SHARDS):
            name = f"shard-{number}"
            config = shard_configuration(number, fleet, watch, address_of(told[1]), watched)
            prometheus(processes, folder, name, config, urls[name])
            flags = {
                "--prometheus.url": [f"http://{urls[name]}"],
                "--tsdb.path": [str(folder / name / "data")],
                "--http-address": [f"127.0.0.1:{free_port()}"],
                "--grpc-address": [grpc[name]],
            }
            sidecars.append(_thanos(processes, f"sidecar-{number}", program, command("thanos sidecar"), flags))
        single = single_configuration(fleet, address_of(told[0]), watched)
        prometheus(processes, folder, "one", single, urls["one"])
        query = {
            "--http-address": [urls["query"]],
            "--grpc-address": [grpc["query"]],
            "--endpoint-strict": [grpc["shard-0"], grpc["shard-1"]],
            "--endpoint": [grpc["ruler"]],
        }
        _thanos(processes, "query", program, command("thanos query"), query)
        # the Ruler last: what it can't ask yet is a rule that fails
        wait_ready(processes, [urls[name] for name in ("one", "shard-0", "shard-1", "query")])
        eventually(lambda: len(_stores(urls["query"])) == SHARDS, within_s=READY_S, every_s=1)
        ruler = {
            "--query": [urls["query"]],
            "--rule-file": [str(RULES.parent / "*.yaml")],
            "--eval-interval": [f"{INTERVAL_S}s"],
            "--alertmanagers.url": [told[1].url],
            "--alert.query-url": [f"http://{urls['query']}"],
            "--data-dir": [str(folder / "ruler")],
            "--http-address": [urls["ruler"]],
            "--grpc-address": [grpc["ruler"]],
        }
        _thanos(processes, "ruler", program, command("thanos rule"), ruler)
        wait_ready(processes, [urls["ruler"]])
        http = {name: f"http://{address}" for name, address in urls.items()}
        yield Topology(
            Side(http["one"], http["one"], told[0]),
            Side(http["query"], http["ruler"], told[1]),
            [http["shard-0"], http["shard-1"]],
            sidecars,
            processes,
        )
        processes.check()


@contextlib.contextmanager
def told_by(folder: Path) -> Iterator[Alertmanager]:
    """An Alertmanager with the shipped routes, in a folder that is made for it."""
    folder.mkdir()
    shipped = yaml.safe_load((ROOT / "alerts" / "alertmanager" / "alertmanager.yaml").read_text())
    with alertmanager(folder, configs.alertmanager(shipped, webhook="http://127.0.0.1:9")) as told:
        yield told


def wait_ready(processes: Processes, addresses: Sequence[str]) -> None:
    """Until each answers at ``/-/ready``. DemoError: one has ended."""

    def ready() -> bool:
        processes.check()
        return all(api.ready(f"http://{address}/-/ready") for address in addresses)

    eventually(ready, within_s=READY_S, every_s=0.5)


def _stores(query: str) -> list[dict[str, Any]]:
    """The sidecars that Query has reached."""
    found: dict[str, Any] = Server(f"http://{query}").get("stores", {})
    return [each for each in found.get("sidecar") or () if not each["lastError"]]


def shard_configuration(number: int, fleet: Fleet, rules: Path, told: str, watched: Sequence[str]) -> dict[str, Any]:
    """The documented configuration of a shard, for this fleet."""
    config = copy.deepcopy(configuration("prometheus.yml of shard 0 of 2"))
    config["global"]["scrape_interval"] = config["global"]["evaluation_interval"] = f"{INTERVAL_S}s"
    config["global"]["external_labels"]["prometheus_replica"] = f"shard-{number}"
    config["rule_files"] = [str(rules / "plumbline-alerts.yaml")]
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [told]}]}]
    nodes, ceph, own = config["scrape_configs"]
    for job in (nodes, ceph):
        keep = job["relabel_configs"][-1]
        assert (keep["action"], keep["regex"]) == ("keep", "0")
        keep["regex"] = str(number)
    own["static_configs"] = [{"targets": list(watched)}]
    return _of_fleet(config, fleet)


def single_configuration(fleet: Fleet, told: str, watched: Sequence[str]) -> dict[str, Any]:
    """One Prometheus that does all of it."""
    config = copy.deepcopy(configuration("prometheus.yml of shard 0 of 2"))
    config["global"] = {"scrape_interval": f"{INTERVAL_S}s", "evaluation_interval": f"{INTERVAL_S}s"}
    config["rule_files"] = [str(RULES), str(ALERTS)]
    config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [told]}]}]}
    nodes, ceph, own = config["scrape_configs"]
    del nodes["relabel_configs"], ceph["relabel_configs"]
    own["static_configs"] = [{"targets": list(watched)}]
    return _of_fleet(config, fleet)


def _of_fleet(config: dict[str, Any], fleet: Fleet) -> dict[str, Any]:
    """Its targets in place of files; the real daemon is a job of its own, as no proxy leads to it."""
    nodes, ceph, _ = config["scrape_configs"]
    direct = copy.deepcopy(nodes)
    for job, targets in ((nodes, fleet.nodes), (ceph, fleet.managers)):
        del job["file_sd_configs"]
        job["proxy_url"] = fleet.proxy
        job["static_configs"] = _static(targets)
    del direct["file_sd_configs"]
    direct["job_name"] = "direct"
    direct["static_configs"] = [
        {"targets": list(fleet.direct), "labels": {"cluster": fleet.direct_cluster, "job": "plumbline"}}
    ]
    config["scrape_configs"].append(direct)
    return config


def _static(targets: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"targets": [address], "labels": {"cluster": cluster}} for address, cluster in targets.items()]


def _shard_rules(folder: Path) -> None:
    """Rendered as the page says, by this interpreter, which has jsonnet."""
    site = dict(word.split("=", 1) for word in command("make site") if "=" in word)["SITE"]
    subprocess.run([sys.executable, "render.py", "--site", site, "--out", str(folder)], cwd=ROOT, check=True)


def address_of(told: Alertmanager) -> str:
    """Host and port."""
    return told.url.removeprefix("http://")


def prometheus(processes: Processes, folder: Path, name: str, config: dict[str, Any], address: str) -> Process:
    """Started as the page says, with its data in the folder's ``name``."""
    place = folder / name
    place.mkdir(exist_ok=True)
    file = configs.write(place / "prometheus.yml", config)
    flags = {
        "--config.file": [str(file)],
        "--storage.tsdb.path": [str(place / "data")],
    }
    argv = with_flags(command("prometheus --config.file"), flags)
    return processes.start(
        f"prometheus-{name}", [need("prometheus"), *argv[1:], f"--web.listen-address={address}", "--log.level=warn"]
    )


def _thanos(
    processes: Processes, name: str, program: str, argv: Sequence[str], flags: Mapping[str, Sequence[str]]
) -> Process:
    return processes.start(name, [program, *with_flags(argv, flags)[1:], "--log.level=warn"])
