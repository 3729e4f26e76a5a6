"""A real Prometheus on loopback with our rules, for as long as a test needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from deploy.demo import api, configs
from deploy.demo.processes import Processes

from plumbline.config.types import Duration

from .daemon import eventually
from .ports import free_port
from .programs import need

RULES = Path(__file__).parents[2] / "alerts" / "out"
CLUSTER = "test"
"""Every target's ``cluster`` label."""
AT_LATEST_S = 15
"""Groups that a fleet evaluates every few minutes, to save work, need not keep a test waiting for as long."""


class Prometheus(api.Prometheus):
    """Also what Grafana asks for its variables, and how the rules fare. ``pid``: its process."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(url)
        self.pid = pid

    def moment(self, expression: str, at: float) -> list[tuple[dict[str, str], float]]:
        """What :meth:`query` gives, of a moment in the past: unix seconds."""
        data = self._get("query", query=expression, time=repr(at))
        return [(item["metric"], float(item["value"][1])) for item in data["result"]]

    def rules(self) -> list[dict[str, Any]]:
        """Every rule with its ``health`` and ``lastError``."""
        groups: list[dict[str, Any]] = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def mistakes(self) -> list[tuple[str, str]]:
        """Name and error of the rules that can't be evaluated, once each of them was asked."""

        def evaluated() -> list[dict[str, Any]]:
            rules = self.rules()
            return rules if all(rule["health"] != "unknown" for rule in rules) else []

        rules = eventually(evaluated, within_s=60)
        return [(rule["name"], rule.get("lastError", "")) for rule in rules if rule["health"] != "ok"]

    def variable(self, query: str) -> set[str]:
        """The values of a ``label_values(<selector>, <label>)`` variable."""
        found = re.fullmatch(r"label_values\((.+),\s*(\w+)\)", query)
        assert found, f"not a query of label values: {query}"
        return set(self._get(f"label/{found[2]}/values", **{"match[]": found[1]}))


@contextmanager
def prometheus(
    folder: Path,
    *,
    target: str = "",
    interval_s: int = 1,
    rules: Path = RULES,
    alertmanager: str = "",
    others: Mapping[str, str] | None = None,
    scrapes: Sequence[Mapping[str, Any]] = (),
    instance: str = "",
    full: bool = False,
    features: Sequence[str] = (),
) -> Iterator[Prometheus]:
    """Scrapes ``target`` (host:port) as the job ``plumbline`` and evaluates all of ``rules`` every ``interval_s``,
    groups with an interval of their own at least every :data:`AT_LATEST_S`. Without a target only ``scrapes`` are.

    ``alertmanager`` (host:port) is told, if there is one. ``others``: job → target, scraped as well; ``scrapes``: the
    same as Prometheus' configuration has it, with labels of its own. ``instance``: what the daemon is called, unless
    by its address. ``full``: it is asked for its full page. ``features``: as ``--enable-feature`` names them.
    """
    address = f"127.0.0.1:{free_port()}"
    impatient = _impatient(rules, folder / "impatient-rules")
    config = configs.prometheus(target=target, alertmanager=alertmanager, rules=impatient)
    if not alertmanager:
        del config["alerting"]
    config["global"] = {"scrape_interval": f"{interval_s}s", "evaluation_interval": f"{interval_s}s"}
    for name, other in (others or {}).items():
        config["scrape_configs"].append({"job_name": name, "static_configs": [{"targets": [other]}]})
    for job in config["scrape_configs"]:
        job["static_configs"][0]["labels"] = {"cluster": CLUSTER}
    if instance:
        config["scrape_configs"][0]["static_configs"][0]["labels"]["instance"] = instance
    if full:
        config["scrape_configs"][0]["params"] = {"profile": ["full"]}
    if not target:
        del config["scrape_configs"][0]
    config["scrape_configs"] += scrapes
    file = configs.write(folder / "prometheus.yaml", config)
    processes = Processes(folder)
    try:
        started = processes.start(
            "prometheus",
            [need("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={folder / 'prometheus'}",
             f"--web.listen-address={address}", "--log.level=warn",
             *(f"--enable-feature={feature}" for feature in features)],
        )  # fmt: skip

        def ready() -> bool:
            processes.check()
            return api.ready(f"http://{address}/-/ready")

        eventually(ready)
        yield Prometheus(f"http://{address}", started.popen.pid)
        assert started.popen.poll() is None, started.last_words()
    finally:
        processes.stop()


def _impatient(rules: Path, folder: Path) -> Path:
    """A copy of the rules in which no group's interval is longer than :data:`AT_LATEST_S`."""
    folder.mkdir()
    for file in rules.glob("*.yaml"):
        document = yaml.load(file.read_bytes(), yaml.CSafeLoader)
        for group in document["groups"]:
            if Duration.parse(group.get("interval", "0s")) > AT_LATEST_S:
                group["interval"] = f"{AT_LATEST_S}s"
        (folder / file.name).write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
    return folder
