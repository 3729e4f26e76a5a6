"""The unit file is one systemd accepts, and stays as tight as its README says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.programs import need

FOLDER = Path(__file__).parents[2] / "systemd"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with the path of the installed program put in: verify wants it to exist."""
    text = (FOLDER / "plumbline.service").read_text()
    installed = Path(sys.prefix) / "bin" / "plumbline"
    copy = tmp_path / "plumbline.service"
    copy.write_text(text.replace("/opt/plumbline/bin/plumbline", str(installed)))
    return copy


def test_systemd_finds_no_fault(unit: Path) -> None:
    done = subprocess.run(
        [need("systemd-analyze"), "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    # verify also grumbles about other units of the host and then still exits 0
    assert [line for line in done.stderr.splitlines() if "plumbline" in line] == []
    assert done.returncode == 0


def test_exposure_is_not_above_the_documented_level(unit: Path) -> None:
    documented = re.search(r"exposure level of \*\*([\d.]+)\*\*", (FOLDER / "README.md").read_text())
    assert documented

    done = subprocess.run(
        [need("systemd-analyze"), "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    measured = re.search(r"Overall exposure level for plumbline\.service: ([\d.]+)", done.stdout)
    assert measured, done.stdout[-500:]
    assert float(measured[1]) <= float(documented[1])


def test_reload_is_sighup_and_no_capability_is_left() -> None:
    settings = dict(
        line.split("=", 1)
        for line in (FOLDER / "plumbline.service").read_text().splitlines()
        if re.match(r"[A-Z]\w+=", line)
    )

    assert settings["ExecReload"] == "/bin/sh -c 'kill -HUP $MAINPID'"
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["AmbientCapabilities"] == ""


def test_the_drop_in_for_disks_health_costs_what_the_readme_says(tmp_path: Path) -> None:
    documented = re.search(r"\| as it stands \| \*\*([\d.]+)\*\*", (FOLDER / "README.md").read_text())
    assert documented
    together = tmp_path / "plumbline.service"
    drop_in = (FOLDER / "drop-ins" / "disk-health.conf").read_text()
    # a later assignment wins or adds, in a drop-in as in the file itself
    text = (FOLDER / "plumbline.service").read_text()
    together.write_text(text.replace("[Install]", drop_in.split("[Service]", 1)[1] + "\n[Install]"))

    done = subprocess.run(
        [need("systemd-analyze"), "security", "--offline=true", "--no-pager", str(together)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    measured = re.search(r"Overall exposure level for plumbline\.service: ([\d.]+)", done.stdout)
    assert measured, done.stdout[-500:]
    assert 0 < float(measured[1]) <= float(documented[1])


def test_the_drop_in_gives_no_right_to_write_a_disk() -> None:
    lines = (FOLDER / "drop-ins" / "disk-health.conf").read_text().splitlines()
    assert [line for line in lines if line.startswith("DeviceAllow=")] == [
        "DeviceAllow=block-sd r",
        "DeviceAllow=char-nvme r",
    ]
    assert "DevicePolicy=closed" in lines
    assert "CAP_SYS_RAWIO CAP_SYS_ADMIN CAP_DAC_READ_SEARCH" in next(
        line for line in lines if line.startswith("CapabilityBoundingSet=")
    )
