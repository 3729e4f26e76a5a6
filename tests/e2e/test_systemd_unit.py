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


def test_the_unit_of_the_iperf3_server_is_accepted_and_not_above_its_documented_level() -> None:
    need("iperf3")
    unit = str(FOLDER / "plumbline-iperf3.service")
    verify = subprocess.run(
        [need("systemd-analyze"), "verify", "--man=no", unit], capture_output=True, text=True, timeout=60, check=False
    )
    assert [line for line in verify.stderr.splitlines() if "plumbline" in line] == []
    security = subprocess.run(
        [need("systemd-analyze"), "security", "--offline=true", "--no-pager", unit],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    measured = re.search(r"Overall exposure level for plumbline-iperf3\.service: ([\d.]+)", security.stdout)
    documented = re.search(r"security` gives it \*\*([\d.]+)\*\*", (FOLDER / "README.md").read_text())
    assert measured
    assert documented
    assert float(measured[1]) <= float(documented[1])


def test_the_drop_in_is_accepted_and_not_above_its_documented_level(unit: Path) -> None:
    folder = unit.parent / "plumbline.service.d"
    folder.mkdir()
    (folder / "disk-latency.conf").write_text((FOLDER / "drop-ins" / "disk-latency.conf").read_text())
    documented = re.search(r"level is \*\*([\d.]+)\*\*", (FOLDER / "README.md").read_text())
    assert documented

    done = subprocess.run(
        [need("systemd-analyze"), "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    measured = re.search(r"Overall exposure level for plumbline\.service: ([\d.]+)", done.stdout)
    assert measured, done.stdout[-500:]
    assert float(measured[1]) == float(documented[1])
    assert [line for line in done.stderr.splitlines() if "disk-latency" in line] == []


def test_reload_is_sighup_and_no_capability_is_left() -> None:
    settings = dict(
        line.split("=", 1)
        for line in (FOLDER / "plumbline.service").read_text().splitlines()
        if re.match(r"[A-Z]\w+=", line)
    )

    assert settings["ExecReload"] == "/bin/sh -c 'kill -HUP $MAINPID'"
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["AmbientCapabilities"] == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("disk-health", r"\| as it stands \| \*\*([\d.]+)\*\*"),
        ("raw-devices", r"With it the exposure level is \*\*([\d.]+)\*\*"),
    ],
)
def test_a_drop_in_costs_what_the_readme_says(tmp_path: Path, name: str, said: str) -> None:
    documented = re.search(said, (FOLDER / "README.md").read_text())
    assert documented
    together = tmp_path / "plumbline.service"
    drop_in = (FOLDER / "drop-ins" / f"{name}.conf").read_text()
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


def test_the_drop_in_for_raw_devices_opens_disks_for_reading_only() -> None:
    lines = (FOLDER / "drop-ins" / "raw-devices.conf").read_text().splitlines()
    settings = [line for line in lines if "=" in line and not line.startswith("#")]
    assert [line for line in settings if line.startswith("DeviceAllow=")] == ["DeviceAllow=block-* r"]
    assert "DevicePolicy=closed" in settings
    assert not [line for line in settings if "Capabilit" in line or line.startswith("User=")]


DROP_INS = sorted(path.stem for path in (FOLDER / "drop-ins").glob("*.conf"))


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the unit for each drop-in, with it beside, one with all of them, and one with a mistake."""
    folder = tmp_path_factory.mktemp("units")
    text = (FOLDER / "plumbline.service").read_text()
    text = text.replace("/opt/plumbline/bin/plumbline", "/bin/true")  # verify wants it to exist
    for name in (*DROP_INS, "all", "mistaken"):
        unit = folder / f"plumbline-{name}.service"
        unit.write_text(text)
        beside = folder / f"{unit.name}.d"
        beside.mkdir()
        for each in DROP_INS if name == "all" else [name]:
            source = FOLDER / "drop-ins" / f"{each}.conf"
            content = "[Service]\nDeviceAlow=char-mem r\n" if name == "mistaken" else source.read_text()
            (beside / f"{each}.conf").write_text(content)
    return folder


def test_every_drop_in_is_accepted_alone_and_with_all_others(units: Path) -> None:
    done = subprocess.run(
        [need("systemd-analyze"), "verify", "--man=no", *map(str, sorted(units.glob("*.service")))],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    said = [line for line in done.stderr.splitlines() if "plumbline-" in line]
    assert [line for line in said if "mistaken" not in line] == []
    assert [line for line in said if "DeviceAlow" in line]  # so it does read them


def test_the_table_of_drop_ins_is_whole_and_true(units: Path) -> None:
    rows = re.findall(r"^\| (?:\[([\w-]+)\]|(all) of them).*\| ([\d.]+) \|$", (FOLDER / "README.md").read_text(), re.M)
    documented = {name or every: level for name, every, level in rows}
    assert sorted(documented) == sorted([*DROP_INS, "all"])

    measured = {}
    for name in documented:
        done = subprocess.run(
            [need("systemd-analyze"), "security", "--offline=true", "--no-pager",
             str(units / f"plumbline-{name}.service")],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        level = re.search(r"Overall exposure level for [^:]+: ([\d.]+)", done.stdout)
        assert level, done.stdout[-500:]
        measured[name] = level[1]
    assert measured == documented


def test_each_drop_in_says_how_it_is_installed() -> None:
    for name in DROP_INS:
        text = (FOLDER / "drop-ins" / f"{name}.conf").read_text()
        assert f"plumbline.service.d/{name}.conf" in text or "plumbline.service.d/" in text, name
        assert text.count("[Service]") == 1, name
