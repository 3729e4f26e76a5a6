"""The demo's stack: daemon, Prometheus, Alertmanager and a webhook, each on a free loopback port."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from deploy.demo import api, configs
from deploy.demo.processes import DemoError, Process, Processes, free_port, program
from deploy.demo.webhook import Webhook

REPOSITORY = Path(__file__).resolve().parents[2]
READY_WITHIN_S = 60.0
PLUMBLINE = Path(sys.prefix) / "bin" / "plumbline"


@dataclass(frozen=True, slots=True)
class Stack:
    """What runs, and where."""

    processes: Processes
    daemon: Process
    daemon_url: str
    prometheus: api.Prometheus
    alertmanager_url: str
    webhook: Webhook


def record_baseline(processes: Processes, storage: Path, config: Path, *, fresh: bool, quick: bool) -> None:
    """Measure this host once; later demos reuse the file unless ``fresh``. ``quick`` is for tests: a rougher figure."""
    recorded = storage / "baseline.yaml"
    if recorded.exists() and not fresh:
        print(f"baseline: {recorded}, recorded {_age(recorded)} ago (record anew with --fresh)")
        return
    print("baseline: recording this host's disk first")
    # --force: replaces a former one, and takes a restless host as it is; this is a demonstration, not an acceptance
    effort = ["--runs", "3", "--run-duration", "3s"] if quick else []
    code = processes.run(
        "plumbline baseline record",
        [PLUMBLINE, "baseline", "record", "--force", "--storage.path", storage, "--config.file", config, *effort],
    )
    if code or not recorded.exists():
        raise DemoError(f"plumbline baseline record failed (exit code {code}); see above")


def start(processes: Processes, webhook: Webhook, storage: Path, config: Path) -> Stack:
    """Start everything and wait until it answers; :class:`DemoError` names what does not."""
    daemon_at, prometheus_at, alertmanager_at = (f"127.0.0.1:{free_port()}" for _ in range(3))
    folder = processes.folder
    webhook.start()
    daemon = processes.start(
        "plumbline",
        [PLUMBLINE, "serve", "--storage.path", storage, "--config.file", config, "--web.listen-address", daemon_at],
    )
    committed = yaml.safe_load((REPOSITORY / "alerts" / "alertmanager" / "alertmanager.yaml").read_text())
    alertmanager_config = configs.write(
        folder / "alertmanager.yaml", configs.alertmanager(committed, webhook=webhook.url)
    )
    processes.start(
        "alertmanager",
        [program("prometheus-alertmanager", "prometheus-alertmanager", "alertmanager"),
         f"--config.file={alertmanager_config}", f"--storage.path={folder / 'alertmanager'}",
         f"--web.listen-address={alertmanager_at}", "--cluster.listen-address=", "--log.level=warn"],
    )  # fmt: skip
    rules = folder / "rules"
    rules.mkdir()
    for file in (REPOSITORY / "alerts" / "out").glob("*.yaml"):
        (rules / file.name).write_text(configs.impatient(file.read_text("utf-8")), "utf-8")
    prometheus_config = configs.write(
        folder / "prometheus.yaml",
        configs.prometheus(target=daemon_at, alertmanager=alertmanager_at, rules=rules),
    )
    processes.start(
        "prometheus",
        [program("prometheus", "prometheus"), f"--config.file={prometheus_config}",
         f"--storage.tsdb.path={folder / 'prometheus'}", f"--web.listen-address={prometheus_at}", "--log.level=warn"],
    )  # fmt: skip
    for at in (daemon_at, alertmanager_at, prometheus_at):
        _wait_ready(processes, f"http://{at}/-/ready")
    return Stack(
        processes=processes,
        daemon=daemon,
        daemon_url=f"http://{daemon_at}",
        prometheus=api.Prometheus(f"http://{prometheus_at}"),
        alertmanager_url=f"http://{alertmanager_at}",
        webhook=webhook,
    )


def _wait_ready(processes: Processes, url: str) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while not api.ready(url):
        processes.check()
        if time.monotonic() > deadline:
            raise DemoError(f"{url} did not answer 200 within {READY_WITHIN_S:g} s")
        time.sleep(0.2)


def _age(file: Path) -> str:
    seconds = int(time.time() - file.stat().st_mtime)
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
