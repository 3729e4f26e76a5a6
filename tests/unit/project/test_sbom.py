"""The bill of materials: what is in the wheel, what the lock holds, the same bytes each time, valid CycloneDX."""

from __future__ import annotations

import hashlib
import json
import zipfile
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib is not installed; make test installs it")

from requirements import sbom
from requirements.locks import SHIPPED, Pinned, read_lock

A, B = "a" * 64, "b" * 64
LOCKED = {
    "run.txt": (Pinned("rich", "15.0.0", (A, B), ("plumbline",)), Pinned("pygments", "2.21.0", (A,), ("rich",))),
    "s3.txt": (Pinned("six", "1.17.0", (B,), ("plumbline",)),),
}
OBJECT = "plumbline/bpf/disk_latency.bpf.o"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "plumbline-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        about = "Metadata-Version: 2.4\nName: plumbline\nVersion: 0.1.0\nLicense-Expression: Apache-2.0\n"
        for name, text in (
            ("plumbline-0.1.0.dist-info/METADATA", about),
            (OBJECT, "\x7fELF"),
            (OBJECT.replace(".o", ".c"), "// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0\n"),
        ):
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the locks of these tests hold, whatever this machine has."""
    versions = {pin.name: pin.version for pins in LOCKED.values() for pin in pins}

    def about(name: str) -> Message:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        message = Message()
        message["Version"], message["License-Expression"] = versions[name], "MIT"
        return message

    monkeypatch.setattr(metadata, "metadata", about)


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in document["components"]}


def test_what_it_says(wheel: Path, installed: None) -> None:
    document = json.loads(sbom.text_of(sbom.bill(wheel, LOCKED, 1_700_000_000)))
    product = document["metadata"]["component"]
    assert product["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    (program,) = product["components"]
    assert (program["name"], program["hashes"][0]["content"]) == (OBJECT, hashlib.sha256(b"\x7fELF").hexdigest())
    assert program["licenses"][0]["expression"] == "GPL-2.0-only OR Apache-2.0"
    parts = by_name(document)
    assert {name: part["scope"] for name, part in parts.items()} == {
        "pygments": "required",
        "rich": "required",
        "six": "optional",
    }
    (files,) = parts["rich"]["externalReferences"]
    assert [each["content"] for each in files["hashes"]] == [A, B]
    needs = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert needs["pkg:pypi/plumbline@0.1.0"] == ["pkg:pypi/rich@15.0.0", "pkg:pypi/six@1.17.0"]
    assert needs["pkg:pypi/rich@15.0.0"] == ["pkg:pypi/pygments@2.21.0"]
    assert document["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"


def test_same_input_same_bytes(wheel: Path, installed: None) -> None:
    first, second = (sbom.text_of(sbom.bill(wheel, LOCKED, None)) for _ in range(2))
    assert first == second
    assert "timestamp" not in first
    other = LOCKED | {"s3.txt": ()}
    assert sbom.bill(wheel, other, None)["serialNumber"] != sbom.bill(wheel, LOCKED, None)["serialNumber"]


def test_what_is_not_installed_as_locked_makes_no_bill(wheel: Path, installed: None) -> None:
    with pytest.raises(sbom.SbomError, match="absent: not installed"):
        sbom.bill(wheel, LOCKED | {"s3.txt": (Pinned("absent", "1", (A,), ()),)}, None)
    with pytest.raises(sbom.SbomError, match=r"15\.0\.0 is installed, 14 is locked"):
        sbom.bill(wheel, LOCKED | {"s3.txt": (Pinned("rich", "14", (A,), ()),)}, None)


def test_the_schema_has_a_say(wheel: Path, installed: None) -> None:
    document = sbom.bill(wheel, LOCKED, None)
    with pytest.raises(sbom.SbomError, match="not valid"):
        sbom.text_of(document | {"serialNumber": "today"})


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "plumbline.whl"
    broken.write_bytes(b"no zip")
    assert sbom.main([str(broken), str(tmp_path / "out")]) == 1
    assert sbom.main([]) == 2
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().err.startswith("no bill of materials: ")


def test_of_the_real_locks(wheel: Path) -> None:
    """Every shipped dependency is in it, required or optional, with a licence."""
    locks = {name: read_lock(name) for name in SHIPPED}
    try:
        document = json.loads(sbom.text_of(sbom.bill(wheel, locks, None)))
    except sbom.SbomError as error:
        if "not installed here" not in str(error):
            raise
        pytest.skip(f"{error}; make test installs them")
    assert by_name(document).keys() == {pin.name for pins in locks.values() for pin in pins}
    assert all(part["licenses"] for part in document["components"])
