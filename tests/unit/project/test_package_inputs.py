"""What `make packages` and the Containerfile are built from fits together; the packages themselves: tests/packages."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from deploy.debian import build, control
from deploy.packages import components, staging
from deploy.packages.project import NO_GIT_EPOCH, RELEASES, BuildError, package_version, project_version, source_date
from deploy.rpm import build as rpm

from plumbline import __version__, cli
from plumbline.config.model import DEFAULT_LISTEN_ADDRESS, load

ROOT = Path(__file__).parents[3]
DEBIAN = ROOT / "deploy" / "debian"
PACKAGES = ROOT / "deploy" / "packages"


def test_versions_agree() -> None:
    assert project_version() == __version__
    assert package_version(__version__)


@pytest.mark.parametrize(
    ("version", "debian"),
    [("0.1.0", "0.1.0"), ("0.2.0rc1", "0.2.0~rc1"), ("0.2.0.dev3", "0.2.0~dev3"), ("0.2.0a1.dev2", "0.2.0~a1~dev2"),
     ("1.0.post1", "1.0+post1")],
)  # fmt: skip
def test_a_version_as_debian_writes_it(version: str, debian: str) -> None:
    assert package_version(version) == debian


def test_a_version_that_is_none() -> None:
    with pytest.raises(BuildError, match=r"project\.version = '1\.0-beta': expected a release such as"):
        package_version("1.0-beta")


def test_debian_sorts_them_as_they_were_released() -> None:
    if shutil.which("dpkg") is None:
        pytest.skip("dpkg is not installed: not Debian or its kin")
    released = ["0.1.9", "0.2.0a1", "0.2.0b2", "0.2.0rc1", "0.2.0", "0.2.0.post1", "0.2.1"]
    ordered = [release.version(each) for each in released for release in RELEASES.values()]
    for older, newer in itertools.pairwise(ordered):
        assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=False).returncode == 0, newer


def test_the_date_of_all_files(tmp_path: Path) -> None:
    assert source_date({"SOURCE_DATE_EPOCH": "1700000000"}) == 1_700_000_000
    assert source_date({}, tmp_path) == NO_GIT_EPOCH
    with pytest.raises(BuildError, match=r"SOURCE_DATE_EPOCH = 'today': expected seconds since 1970"):
        source_date({"SOURCE_DATE_EPOCH": "today"})


@pytest.mark.parametrize(
    ("files", "unit"),
    [(build.FILES, "lib/systemd/system/plumbline.service"), (rpm.FILES, "usr/lib/systemd/system/plumbline.service")],
    ids=["deb", "rpm"],
)
def test_every_file_has_its_place(files: dict[str, str], unit: str, tmp_path: Path) -> None:
    staging.place_files(tmp_path, {**staging.FILES, **files})
    for name in (*staging.CONFFILES, unit):
        assert (tmp_path / name.lstrip("/")).is_file(), name
    shared = tmp_path / "usr/share/plumbline"
    for folder, source in (
        ("alerts", "alerts/out/*.yaml"),
        ("alerts-native", "alerts/out-native/*.yaml"),
        ("runbooks", "alerts/runbooks/*.md"),
    ):
        assert len(list((shared / folder).iterdir())) == len(list(ROOT.glob(source))) > 0
    assert {each.name for each in (shared / "systemd").iterdir()} == {
        *(each.name for each in (ROOT / "systemd" / "drop-ins").iterdir()),
        "plumbline-iperf3.service",
    }
    assert (shared / "dashboards" / "plumbline-overview.json").is_file()
    assert [source for source in staging.COMPRESSED if not (ROOT / source).is_file()] == []


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"deploy/packages/plumbline\.default: not in this tree"):
        staging.place_files(tmp_path / "tree", staging.FILES, tmp_path)


def test_the_specification_says_what_the_control_file_says() -> None:
    spec = rpm.specification("0.1.0", python=11)
    deb = control.control("0.1.0", "amd64", python=11, installed_kib=1)
    assert re.findall(r"^Requires: (.*)$", spec, re.M) == ["/usr/bin/python3.11"]
    said = {kind: set(re.findall(rf"^{kind}: (.*)$", spec, re.M)) for kind in ("Recommends", "Suggests")}
    other = {kind: set(re.findall(rf"^{kind}: (.*)$", deb, re.M)[0].split(", ")) for kind in said}
    assert said["Recommends"] == {name.replace("libbpf1", "libbpf") for name in other["Recommends"]}
    assert said["Suggests"] == {name for name in other["Suggests"] if not name.startswith("prometheus")}
    assert re.findall(r"^%config\(noreplace\) (.*)$", spec, re.M) == list(staging.CONFFILES)


def test_control_and_checksums(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/file").write_bytes(b"x" * 1025)
    build.stage_control(tmp_path, "0.1.0", "amd64", python=13)
    text = (tmp_path / "DEBIAN/control").read_text()
    fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(" "))
    assert (fields["Package"], fields["Version"], fields["Installed-Size"]) == ("plumbline", "0.1.0", "2")
    assert fields["Depends"] == "libc6 (>= 2.36), python3 (>= 3.13), python3 (<< 3.14)"
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert requires == ">=3.11"
    assert (tmp_path / "DEBIAN/md5sums").read_text().endswith("  usr/file\n")
    assert not [line for line in (tmp_path / "DEBIAN/md5sums").read_text().splitlines() if "DEBIAN" in line]


def test_a_licence_is_read_as_packages_state_it() -> None:
    new = components.parse_component("Name: a\nVersion: 1\nLicense-Expression: MIT\nAuthor-email: x\n")
    old = components.parse_component(
        "Name: b\nVersion: 2\nLicense: whole text\nClassifier: License :: OSI Approved :: BSD License\nAuthor: y\n"
    )
    assert (new.licence, old.licence) == ("MIT", "BSD License")
    text = components.copyright_file([old, new])
    assert text.index("a 1\n  Copyright x\n  Licence: MIT") < text.index("b 2\n  Copyright y\n  Licence: BSD License")


@pytest.mark.parametrize("name", rpm.SCRIPTLETS)
def test_scriptlets_are_shell(name: str) -> None:
    assert subprocess.run(["sh", "-n", str(rpm.HERE / "scriptlets" / name)], check=False).returncode == 0


@pytest.mark.parametrize("name", build.SCRIPTS)
def test_maintainer_scripts_are_shell(name: str) -> None:
    script = DEBIAN / name
    assert script.stat().st_mode & 0o111
    assert script.read_text().startswith("#!/bin/sh\n")
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0


def test_what_is_configured_is_what_the_unit_reads() -> None:
    config = load(PACKAGES / "plumbline.yaml")
    assert config.web.listen_address == DEFAULT_LISTEN_ADDRESS
    assert [type(each).__name__ for each in config.probes] == ["CanaryConfig", "FioConfig"]
    flags = re.search(r'^ARGS="(.*)"$', (PACKAGES / "plumbline.default").read_text(), re.M)
    unit = (ROOT / "systemd" / "plumbline.service").read_text()
    assert flags
    assert f"/{shlex.split(flags[1])[1].lstrip('/')}" in staging.CONFFILES
    assert "EnvironmentFile=-/etc/default/plumbline" in unit
    assert "ExecStart=/opt/plumbline/bin/plumbline serve $ARGS" in unit


def test_the_manual_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    listed = set(re.findall(r"^    ([a-z]+)(?: |$)", capsys.readouterr().out, re.M))
    manual = re.findall(r"^\.TP\n\.B ([a-z]+)$", (PACKAGES / "plumbline.1").read_text(), re.M)
    assert listed
    assert set(manual) == listed


# --- Containerfile


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word.isupper()]


def test_the_image_is_what_its_document_says() -> None:
    found = instructions()
    assert [rest for word, rest in found if word == "FROM"] == ["${BASE} AS build", "${BASE}"]
    last = dict(found)
    assert last["USER"] == "65534:65534"
    assert last["EXPOSE"] == DEFAULT_LISTEN_ADDRESS.rpartition(":")[2]
    assert "requirements/s3.txt" in " ".join(rest for word, rest in found if word == "RUN")
    sources = [name for word, rest in found if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    admitted = (ROOT / ".containerignore").read_text().splitlines()
    assert [name for name in sources if f"!{name}" not in admitted] == []


def test_the_image_starts_with_flags_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    command = dict(instructions())["CMD"]
    words = [word.strip(' "') for word in command.strip("[]").split(",")]
    with pytest.raises(SystemExit) as ended:
        cli.main([*words, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(flag in shown for flag in words if flag.startswith("--"))
    document = " ".join((ROOT / "docs" / "container.md").read_text().split())
    assert all(f"-v {host}:{place}:ro" in document for host, place in (("/proc", "/host/proc"), ("/sys", "/host/sys")))
