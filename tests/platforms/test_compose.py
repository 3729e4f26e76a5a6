"""deploy/compose as its page says, on a host with systemd, which podman's health checks need.

``make test-platforms`` (root) runs it with podman-compose 1.6, because Debian 12's 1.0 starts nothing. Prometheus and
Alertmanager are Debian's under the names of ``compose.yaml``. There is no Grafana: in its place stands what reads, as
its user and below the same mounts, all that Grafana reads at its start.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from support.daemon import eventually
from support.page_commands import ROOT, Page
from support.podman import Podman
from support.systemd_host import IMAGES, SHIPPED, WITHIN_S, Host, answered, differing, systemd_host

PAGE = Page.of("deploy/compose/README.md")
CONTAINER = Page.of("docs/container.md")
FOLDER = f"{SHIPPED}/deploy/compose"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"]
COMPOSE = "/opt/compose/bin/podman-compose"
PROMETHEUS, ALERTMANAGER = "http://127.0.0.1:9090", "http://127.0.0.1:9093"

pytestmark = pytest.mark.timeout(1800)


@dataclass(frozen=True)
class Stack:
    """The project on its host."""

    host: Host

    def page(self, *lines: str, terminal: bool = False) -> str:
        """Lines of the page with podman's programs, as the page says, in the folder it has changed to."""
        script = "\n".join(lines).replace("docker compose", COMPOSE)
        return self.host.run(f"cd {FOLDER}\n{script}", terminal=terminal)

    def container(self, service: str) -> str:
        """Its id, as the runbooks look for it."""
        return self.host.run(f"podman ps --all -q --filter label=com.docker.compose.service={service}").strip()

    def healthy(self) -> set[str]:
        """Services whose health check says so."""
        form = '{{ index .Labels "com.docker.compose.service" }} {{ .Status }}'
        said = self.host.run(f"podman ps --format '{form}'")
        return {line.split()[0] for line in said.splitlines() if "(healthy)" in line}

    def inside(self, service: str, words: str) -> str:
        """What is on that line of the first process' status."""
        pid = self.host.run(f"podman inspect --format '{{{{ .State.Pid }}}}' {self.container(service)}").strip()
        return self.host.run(f"grep -h '^{words}:' /proc/{pid}/status").partition(":")[2].strip()


@pytest.fixture(scope="module")
def host(podman: Podman) -> Iterator[Host]:
    (argv,) = PAGE.commands("docker build")
    podman.build(argv[2:])
    for service in SERVICES.keys() - {"plumbline"}:
        podman.build([f"--target={service}", "-t", SERVICES[service]["image"], str(IMAGES)])
    with systemd_host(podman, "node01") as host:
        yield host


def first_lines() -> list[str]:
    """The page's first script without the build, which the fixture has done."""
    lines = PAGE.script("up -d").splitlines()
    assert lines[0].startswith("docker build")
    assert lines[1] == "cd deploy/compose"
    return lines[2:]


def removal() -> list[str]:
    """What keeps the data, and what removes it."""
    return re.findall(r"`(docker compose down[^`]*)`", PAGE.below("Remove").text)


@pytest.fixture(scope="module")
def stack(host: Host) -> Iterator[Stack]:
    stack = Stack(host)
    secret, up, _, _ = first_lines()
    try:
        stack.page(secret, up)
        yield stack
    finally:
        stack.page(removal()[1])
        assert not host.run("podman ps --all -q; podman volume ls -q")


def test_all_are_healthy_and_confined(stack: Stack) -> None:
    eventually(stack.healthy, until=lambda seen: seen == SERVICES.keys(), within_s=WITHIN_S, every_s=2)
    _, _, ps, doctor = first_lines()
    assert all(name in stack.page(ps) for name in SERVICES)
    users = {"plumbline": "65534", "prometheus": "65534", "alertmanager": "65534", "grafana": "472"}
    for service, user in users.items():
        assert stack.inside(service, "Uid").split()[0] == user
        assert {int(stack.inside(service, f"Cap{which}"), 16) for which in ("Eff", "Prm", "Bnd")} == {0}
        assert stack.inside(service, "NoNewPrivs") == "1"
    done = stack.host.call(f"cd {FOLDER}; {doctor.replace('docker compose', COMPOSE)}", terminal=True)
    states = answered(done.stdout)
    for question in ("is the daemon up", "is it scraped", "do rules see it", "does an Alertmanager get its alerts"):
        assert states[question] == "ok", done.stdout + done.stderr


def test_it_has_the_series_of_a_process_outside(stack: Stack) -> None:
    stack.host.scrape()
    with stack.host.outside(
        stack.container("plumbline"), f"--config.file={FOLDER}/plumbline.yaml", user=65534
    ) as outside:
        eventually(
            lambda: differing(stack.host, outside, "http://127.0.0.1:10047"),
            until=lambda found: not found, within_s=WITHIN_S, every_s=2,
        )  # fmt: skip
    page = stack.host.scrape()
    assert {sample.value for sample in page.series("plumbline_collector_success")} == {1.0}
    print(len(page.samples), "series")


def up(stack: Stack) -> dict[str, str]:
    """Prometheus' targets → their health."""
    said = json.loads(stack.host.get(f"{PROMETHEUS}/api/v1/targets") or "{}")
    return {each["scrapeUrl"]: each["health"] for each in said.get("data", {}).get("activeTargets", [])}


def test_the_watchdog_goes_from_the_daemon_to_alertmanager(stack: Stack) -> None:
    eventually(lambda: list(up(stack).values()), until=lambda seen: seen == ["up"] * 3, within_s=WITHIN_S, every_s=2)
    rules = json.loads(stack.host.get(f"{PROMETHEUS}/api/v1/rules") or "{}")["data"]["groups"]
    assert {rule["health"] for group in rules for rule in group["rules"]} <= {"ok", "unknown"}

    def told() -> set[str]:
        alerts = json.loads(stack.host.get(f"{ALERTMANAGER}/api/v2/alerts") or "[]")
        return {each["labels"]["alertname"] for each in alerts}

    eventually(told, until=lambda seen: "PlumblineWatchdog" in seen, within_s=WITHIN_S, every_s=2)


def test_it_stops_and_starts(stack: Stack) -> None:
    stop, start = PAGE.below("See an alert fire and resolve").script().splitlines()
    stack.page(stop)
    eventually(lambda: set(up(stack).values()), until=lambda seen: "down" in seen, within_s=WITHIN_S, every_s=2)
    stack.page(start)
    eventually(lambda: set(up(stack).values()), until=lambda seen: seen == {"up"}, within_s=WITHIN_S, every_s=2)


def test_down_keeps_the_data(stack: Stack) -> None:
    before = stack.host.run("podman volume ls -q")
    stack.page(removal()[0])
    assert stack.host.run("podman volume ls -q") == before
    stack.page(first_lines()[1])
    eventually(stack.healthy, until=lambda seen: seen == SERVICES.keys(), within_s=WITHIN_S, every_s=2)


def histograms(stack: Stack) -> tuple[int, float | None]:
    """Buckets of disks, and what the finding about them says: 1, they are missing."""
    page = stack.host.scrape()
    return len(page.series("plumbline_disk_latency_seconds_bucket")), page.get(
        "plumbline_finding", check="disk.latency-histograms"
    )


def test_latency_histograms_with_the_state_given_to_root(stack: Stack) -> None:
    """The row's flags in ``compose.yaml``'s words, after the page's ``chown`` of the volume."""
    given = stack.host.run(f"cat {FOLDER}/compose.yaml")
    changed = yaml.safe_load(given)
    service = changed["services"]["plumbline"]
    service |= {"user": "0:0", "cap_add": ["BPF", "PERFMON"]}
    service["security_opt"] = [*service["security_opt"], "seccomp=/etc/plumbline-seccomp.json"]
    stack.host.run(f"python3 -c {shlex.quote(CONTAINER.written())} > /etc/plumbline-seccomp.json")
    stack.page("docker compose stop plumbline")
    (argv,) = CONTAINER.below("Another user").commands("docker run")
    volume = "plumbline_state"
    assert f"`{volume}`" in PAGE.text
    chown = " ".join(argv[1:]).replace("plumbline:/var", f"{volume}:/var")
    stack.host.run(f"podman {chown}")
    stack.host.write(f"{FOLDER}/compose.yaml", yaml.safe_dump(changed, sort_keys=False))
    try:
        stack.page("docker compose up -d")
        eventually(
            lambda: histograms(stack), until=lambda seen: seen[0] > 0 and not seen[1], within_s=WITHIN_S, every_s=2
        )
    finally:
        stack.host.write(f"{FOLDER}/compose.yaml", given)
