"""What a daemon runs in, and how its findings word what mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.checks.disk_latency import latency_histograms
from plumbline.checks.model import Fix, System, judge
from plumbline.checks.run import CHECKS, Judge
from plumbline.core.roots import Roots
from plumbline.metrics.snapshot import Readings
from plumbline.sources.kernel.installation import Installation, Need, read_installation

CONTAINERS = [Installation.CONTAINER, Installation.POD, Installation.CEPHADM]
CEPHADM = {"container": "podman", "CONTAINER_IMAGE": "registry.example/plumbline:0.1.0", "NODE_NAME": "stor01"}


@pytest.mark.parametrize(
    ("environment", "files", "installation"),
    [
        ({}, (), Installation.HOST),
        ({}, ("run/.containerenv",), Installation.CONTAINER),
        ({"container": "podman"}, (), Installation.CONTAINER),
        (CEPHADM, ("run/.containerenv",), Installation.CEPHADM),
        ({"KUBERNETES_SERVICE_HOST": "10.96.0.1", "NODE_NAME": "stor01"}, (), Installation.POD),
        # a guest of LXC: a container by all signs, and a package's daemon
        ({"container": "lxc"}, ("run/systemd/system/",), Installation.HOST),
    ],
)
def test_what_shows_an_installation(
    environment: dict[str, str], files: tuple[str, ...], installation: Installation, tmp_path: Path
) -> None:
    for file in files:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if file.endswith("/") else path.touch()
    here = Roots.under(tmp_path / "none")
    assert read_installation(here, environment=environment, root=tmp_path) is installation


@pytest.mark.parametrize("installation", CONTAINERS)
def test_no_container_is_told_to_use_systemctl_or_apt(installation: Installation) -> None:
    for need in Need:
        step = installation.step(need)
        assert step
        assert not any(word in step for word in ("systemctl", "journalctl", "apt-get", "systemd"))
        assert "\n" not in step


def test_what_mends_the_host_is_to_be_run_there() -> None:
    fix = Fix("sysctl -w vm.swappiness=10", caution="It lasts until the next start.")
    assert fix.where(Installation.HOST) is fix
    assert fix.where(Installation.POD) == Fix(
        "sysctl -w vm.swappiness=10",
        caution="It lasts until the next start. Run it on the node itself, not in the container.",
    )


@pytest.mark.parametrize(
    ("installation", "now"),
    [
        (Installation.CONTAINER, "# start it with the flags for latency histograms: docs/container.md"),
        (Installation.POD, "# add the component disk-latency: deploy/kubernetes/README.md"),
        (Installation.CEPHADM, "# change the service as for disk latency histograms: deploy/cephadm/README.md"),
    ],
)
def test_a_finding_is_mended_where_the_daemon_runs(installation: Installation, now: str) -> None:
    readings = Readings({}, {"latency": "CAP_BPF and CAP_PERFMON missing"})
    (finding,) = (
        found
        for found in Judge(lambda: System(installation=installation)).look(readings, 1.0)
        if found.check == latency_histograms.id
    )
    assert finding.fix == Fix(now, None, "The restart ends the probes that are running.", Need.LATENCY)


def test_every_fix_of_the_daemon_itself_says_so() -> None:
    """A command that changes the daemon's own service or package can't be right in a container."""
    of_the_service = [check.id for check in CHECKS if "plumbline" in check.fix or "smartmontools" in check.fix]
    assert of_the_service == ["disk.latency-histograms", "health.not-readable"]
    assert judge((latency_histograms,), "no capability")[0].fix.need is Need.LATENCY
