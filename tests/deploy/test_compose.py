"""deploy/compose: every file that is mounted is there, and the programs inside take theirs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline import cli
from support.metrics import ROOT
from support.programs import need

FOLDER = ROOT / "deploy" / "compose"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def binds(service: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """(source, target, read-only) of every bind mount; named volumes left out."""
    found = []
    for each in service.get("volumes", []):
        if isinstance(each, dict):
            found.append((each["source"], each["target"], each.get("read_only", False)))
        else:
            source, target, *mode = each.split(":")
            if source not in COMPOSE["volumes"]:
                found.append((source, target, mode == ["ro"]))
    return found


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_is_there_and_read_only(name: str) -> None:
    for source, _, read_only in binds(SERVICES[name]):
        assert read_only, source
        assert source.startswith("/") or (FOLDER / source).exists(), source


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_may_more_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"cap_add", "privileged", "devices"} & service.keys()
    # a version that somebody chose, never what is newest today
    assert re.search(r":v?\d+\.\d+\.\d+}?$", service["image"]), service["image"]
    assert service["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_names_its_registry(name: str) -> None:
    """podman knows no default registry; what is built on this host is localhost's, for both engines."""
    registry = re.sub(r"^\$\{\w+:-(.+)\}$", r"\1", SERVICES[name]["image"]).partition("/")[0]
    assert registry == "localhost" if name == "plumbline" else registry == "docker.io"


def test_volumes_secrets_and_dependencies_are_declared() -> None:
    for service in SERVICES.values():
        for each in service.get("volumes", []):
            if isinstance(each, str) and not each.startswith((".", "/")):
                assert each.split(":")[0] in COMPOSE["volumes"]
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
        for other, wanted in service.get("depends_on", {}).items():
            assert wanted["condition"] == "service_healthy"
            assert "healthcheck" in SERVICES[other]


def test_the_page_names_the_volume_that_is_given_to_root() -> None:
    """Not the one of docs/container.md: podman and Docker would make that, and change the owner of nothing."""
    (state,) = (each for each in SERVICES["plumbline"]["volumes"] if isinstance(each, str))
    volume = f"{COMPOSE['name']}_{state.partition(':')[0]}"
    assert f"`{volume}`" in (FOLDER / "README.md").read_text("utf-8")


def test_all_listen_on_loopback_alone() -> None:
    text = (FOLDER / "compose.yaml").read_text("utf-8") + (FOLDER / "plumbline.yaml").read_text("utf-8")
    listening = re.findall(r"(?:listen[-_]address|GF_SERVER_HTTP_ADDR)[=:] ?(\S*)", text)
    assert len(listening) == 5
    assert all(each == "" or each.startswith("127.0.0.1") for each in listening)
    assert not any("ports" in service for service in SERVICES.values())


def test_the_daemon_takes_flags_and_configuration() -> None:
    service = SERVICES["plumbline"]
    parsed = cli._parser().parse_args(["serve", *service["command"]])
    assert service["entrypoint"] == ["plumbline", "serve"]
    targets = {target: source for source, target, _ in binds(service)}
    assert {str(path) for path in (parsed.path_procfs, parsed.path_sysfs, parsed.path_udev)} <= targets.keys()
    assert cli.main(["config", "check", str(FOLDER / targets[str(parsed.config_file)])]) == 0


def test_prometheus_and_alertmanager_take_theirs(tmp_path: Path) -> None:
    for source, target, _ in (*binds(SERVICES["prometheus"]), *binds(SERVICES["alertmanager"])):
        place = tmp_path / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (FOLDER / source).is_dir() else shutil.copy)(FOLDER / source, place)
    for argv in (
        [need("promtool"), "check", "config", tmp_path / "etc/prometheus/prometheus.yml"],
        [need("amtool"), "check-config", tmp_path / "etc/alertmanager/alertmanager.yaml"],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [need("promtool"), "check", "rules", *(tmp_path / "etc/prometheus/plumbline").glob("*.yaml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [int(number) > 0 for number in re.findall(r"(\d+) rules found", done.stdout)] == [True, True]
    (home,) = (flag for flag in SERVICES["prometheus"]["command"] if flag.startswith("--config.file="))
    assert (tmp_path / home.partition("=")[2].lstrip("/")).exists()
    (home,) = (flag for flag in SERVICES["alertmanager"]["command"] if flag.startswith("--config.file="))
    assert (tmp_path / home.partition("=")[2].lstrip("/")).exists()


def test_grafana_has_every_page_a_data_source_and_the_overview_as_home() -> None:
    grafana = SERVICES["grafana"]
    targets = {target: source for source, target, _ in binds(grafana)}
    (source,) = yaml.safe_load((FOLDER / "grafana/datasources/prometheus.yaml").read_text())["datasources"]
    (listens,) = (each for each in SERVICES["prometheus"]["command"] if each.startswith("--web.listen-address="))
    assert source["url"] == "http://" + listens.partition("=")[2]
    interval = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == interval
    (provider,) = yaml.safe_load((FOLDER / "grafana/dashboards/plumbline.yaml").read_text())["providers"]
    pages = {path.name for path in (ROOT / "dashboards" / "out").glob("plumbline-*.json")}
    assert {Path(each).name for each in targets if each.startswith(provider["options"]["path"] + "/")} == pages
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] in targets
    assert grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"] == "/run/secrets/" + grafana["secrets"][0]
    # no secret is committed
    (secret,) = (each["file"] for each in COMPOSE["secrets"].values())
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "/deploy/compose/" + Path(secret).parent.name + "/" in ignored
