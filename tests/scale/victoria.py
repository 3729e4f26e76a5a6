"""Two agents, a store and vmalert as docs/scale.md has them, and beside them one Prometheus with everything.

Addresses are on loopback and each agent has half of the nodes; all else is the page's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from deploy.demo import configs
from deploy.demo.processes import Process, Processes

from support.ports import free_port
from support.rules import RULES

from .documented import command, with_flags
from .topology import (
    SHARDS,
    Fleet,
    Side,
    address_of,
    prometheus,
    shard_configuration,
    single_configuration,
    told_by,
    wait_ready,
)

PROGRAMS = ("victoria-metrics", "vmagent", "vmalert")


@dataclass(slots=True)
class Stored:
    """Both sides, and what the second one consists of."""

    one: Side
    many: Side
    parts: Mapping[str, Process]
    processes: Processes


def programs() -> Path:
    """Their folder: ``PLUMBLINE_VICTORIA``, as ``make scale`` sets it. Without it the test is skipped."""
    found = Path(os.environ.get("PLUMBLINE_VICTORIA", "/nowhere"))
    if not all((found / name).exists() for name in PROGRAMS):
        pytest.skip("PLUMBLINE_VICTORIA names no folder with VictoriaMetrics: make scale VICTORIA=1")
    return found


@dataclass(slots=True)
class Engine:
    """What the page starts, and where it answers; ``parts`` are its processes by name."""

    store: str
    rules: str
    parts: Mapping[str, Process]


def engine(
    processes: Processes, folder: Path, agents: Sequence[Mapping[str, object]], notified: str, found: Path
) -> Engine:
    """Start it all: an agent for each configuration; ``notified`` is Alertmanager's URL, ``found`` the programs'."""
    urls = {name: f"127.0.0.1:{free_port()}" for name in ("store", "vmalert", *map(_agent, range(len(agents))))}
    parts = {}

    def start(name: str, argv: Sequence[str], flags: Mapping[str, Sequence[str]]) -> None:
        argv = with_flags(argv, flags)
        own = [] if "-httpListenAddr" in flags else [f"-httpListenAddr={urls[name]}"]
        parts[name] = processes.start(name, [found / argv[0], *argv[1:], *own])

    store = f"http://{urls['store']}"
    start(
        "store", command("victoria-metrics"),
        {"-storageDataPath": [str(folder / "store")], "-httpListenAddr": [urls["store"]]},
    )  # fmt: skip
    for number, config in enumerate(agents):
        name = _agent(number)
        (folder / name).mkdir()
        flags = {
            "-promscrape.config": [str(configs.write(folder / name / "prometheus.yml", config))],
            "-remoteWrite.url": [f"{store}/api/v1/write"],
            "-remoteWrite.tmpDataPath": [str(folder / name / "data")],
        }
        start(name, command("vmagent"), flags)
    rules = folder / "rules"
    rules.mkdir()
    files = [shutil.copy(file, rules) for file in RULES.parent.glob("*.yaml")]
    subprocess.run([*command("sed -i")[:3], *files], check=True)
    flags = {flag: [store] for flag in ("-datasource.url", "-remoteWrite.url", "-remoteRead.url", "-external.url")}
    flags |= {"-rule": [str(rules / "*.yaml")], "-notifier.url": [notified]}
    start("vmalert", command("vmalert"), flags)
    return Engine(store, f"http://{urls['vmalert']}", parts)


def _agent(number: int) -> str:
    return f"agent-{number}"


@contextlib.contextmanager
def stored(folder: Path, fleet: Fleet) -> Iterator[Stored]:
    """All started and ready; nothing is scraped yet longer than a moment."""
    found = programs()
    processes = Processes(folder)
    with contextlib.ExitStack() as stack:
        told = [stack.enter_context(told_by(folder / name)) for name in ("one", "many")]
        stack.callback(processes.stop)
        one = f"127.0.0.1:{free_port()}"
        prometheus(processes, folder, "one", single_configuration(fleet, address_of(told[0]), [one]), one)
        wait_ready(processes, [one])
        agents = []
        for number in range(SHARDS):
            config = shard_configuration(number, fleet, folder, "", [one])
            config = {key: config[key] for key in ("global", "scrape_configs")}
            config["global"] = {"scrape_interval": config["global"]["scrape_interval"]}
            # what watches the servers has no part of the nodes: one agent scrapes it
            config["scrape_configs"] = [
                job for job in config["scrape_configs"] if number == 0 or "relabel_configs" in job
            ]
            agents.append(config)
        many = engine(processes, folder, agents, told[1].url, found)
        sides = Side(f"http://{one}", f"http://{one}", told[0]), Side(many.store, many.rules, told[1])
        yield Stored(*sides, many.parts, processes)
