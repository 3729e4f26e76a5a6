"""The dependencies are pinned, agree and may be shipped; silence of the vulnerability service is no good news."""

from __future__ import annotations

import json
import shutil
from email.message import Message
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from requirements import audit
from requirements.licences import LicenceError, allowed, declared
from requirements.locks import ROOT, SHIPPED, LockError, Pinned, parse_lock, parse_wanted, read_lock

DIGEST = "0" * 64
ASKED_FOR = "    # via\n    #   -c requirements/run.txt\n    #   plumbline (pyproject.toml)\n"
GOOD = f"a-b==1.0 \\\n    --hash=sha256:{DIGEST}\n{ASKED_FOR}"


def about(*headers: tuple[str, str]) -> Message:
    message = Message()
    for name, value in headers:
        message[name] = value
    return message


def test_a_lock_entry() -> None:
    assert parse_lock("# written by make lock\n" + GOOD, "x.txt") == (Pinned("a-b", "1.0", (DIGEST,), ("plumbline",)),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a>=1.0\n    --hash=sha256:" + DIGEST, "no exact pin"),
        ("a\n", "no exact pin"),
        ("a @ https://example.org/a.whl\n", "no exact pin"),
        ("-e .\n", "no exact pin"),
        ("--index-url https://example.org/simple\n" + GOOD, "no exact pin"),
        ("a==1.0\n", "has no hash"),
        ("a==1.0 \\\n    --hash=md5:0123\n", "neither a sha256 hash"),
        ("a==1.*\n    --hash=sha256:" + DIGEST, "no exact pin"),
        (GOOD + GOOD.replace("a-b", "A_B"), "stands twice"),
    ],
)
def test_what_a_lock_may_not_hold(text: str, says: str) -> None:
    with pytest.raises(LockError, match=says):
        parse_lock(text, "x.txt")


def test_wanted_requirements() -> None:
    wanted = parse_wanted("# why\n-c run.txt\npytest # the tests\nnumpy>=2\n", "x.in")
    assert [str(each) for each in wanted] == ["pytest", "numpy>=2"]
    with pytest.raises(LockError, match=r"x\.in:1"):
        parse_wanted("numpy>>2", "x.in")


def test_what_does_not_fit_the_lock() -> None:
    pins = (Pinned("numpy", "1.9", (DIGEST,), ()),)
    wanted = [Requirement("numpy>=2"), Requirement("scipy"), Requirement("a @ https://example.org/a.whl")]
    troubles = list(audit.unmet(wanted, pins, "x.txt", "x.in"))
    assert ["does not allow" in troubles[0], "missing in x.txt" in troubles[1], "address" in troubles[2]] == [True] * 3
    assert list(audit.unmet([Requirement("NumPy>=1")], pins, "x.txt", "x.in")) == []


def test_two_versions_of_one_package() -> None:
    one, other = Pinned("a", "1", (DIGEST,), ()), Pinned("a", "2", (DIGEST,), ())
    assert list(audit.disagreements({"run.txt": [one], "dev.txt": [one]})) == []
    (trouble,) = audit.disagreements({"run.txt": [one], "dev.txt": [other]})
    assert "1 in run.txt, 2 in dev.txt" in trouble


@pytest.mark.parametrize(
    ("expression", "may"),
    [
        ("MIT", True),
        ("BSD License", True),
        ("GPL-2.0-or-later OR Apache-2.0", True),
        ("GPL-2.0-or-later AND Apache-2.0", False),
        ("MIT AND (GPL-3.0-only OR ISC)", True),
        ("GPL-3.0-only OR MIT AND GPL-2.0-only", False),
        ("Proprietary", False),
        ("MIT ISC", False),
        ("ISC WITH something", False),
    ],
)
def test_which_licences_may_come_along(expression: str, may: bool) -> None:
    assert allowed(expression) is may


@pytest.mark.parametrize("expression", ["", "MIT AND", "(MIT", "MIT) OR ISC"])
def test_licences_that_can_not_be_read(expression: str) -> None:
    with pytest.raises(LicenceError):
        allowed(expression)


def test_what_a_package_declares() -> None:
    osi = "License :: OSI Approved :: "
    assert declared(about(("License-Expression", "MIT OR ISC"), ("License", "GPL"))) == ("MIT OR ISC",)
    both = about(("Classifier", osi + "BSD License"), ("Classifier", osi + "Apache Software License"))
    assert declared(both) == ("Apache-2.0", "BSD License")
    assert declared(about(("License", "BSD-3-Clause"))) == ("BSD-3-Clause",)
    assert declared(about(("License", "do what you like\nreally"))) == ()
    assert list(audit.licence_troubles("a", about(("License", "see file")))) != []
    assert "GPLv3" in next(audit.licence_troubles("a", about(("Classifier", osi + "GPLv3"))))


def test_our_dependencies() -> None:
    """The half of ``make audit`` that needs no network, for real."""
    missing = [pin.name for lock in SHIPPED for pin in read_lock(lock) if not _installed(pin.name)]
    if missing:
        pytest.skip(f"not installed here, so their licences are unknown: {', '.join(missing)}; make test installs them")
    assert audit.offline_troubles() == []


def _installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def test_it_would_find_what_is_wrong(tmp_path: Path) -> None:
    """A copy of our files with a hash taken out, a pin changed and a requirement added."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements", ignore=shutil.ignore_patterns("*.py", "__*"))
    project = (ROOT / "pyproject.toml").read_text("utf-8").replace('"rich>=13"', '"rich>=9000", "leftpad"')
    (tmp_path / "pyproject.toml").write_text(project, "utf-8")
    build = tmp_path / "requirements" / "build.txt"
    build.write_text(build.read_text("utf-8").replace("--hash=sha256:", "--hash=md5:", 1), "utf-8")
    troubles = "\n".join(audit.offline_troubles(tmp_path))
    for each in ("build.txt", "rich>=9000 does not allow", "leftpad is missing in run.txt"):
        assert each in troubles


SKIPPED = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (15.0.0)"}
CLEAN = {"name": "six", "version": "1.17.0", "vulns": []}
BAD = {"name": "old", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}


@pytest.mark.parametrize(
    ("rows", "code", "says"),
    [
        ([CLEAN], audit.GOOD, "none known of 3"),
        ([CLEAN, SKIPPED], audit.NOT_ASKED, "1 of 3 releases could NOT be asked about"),
        ([SKIPPED, BAD], audit.WRONG, "old 1: PYSEC-1, mended in 2"),
    ],
)
def test_the_service_s_answers(rows: list[dict[str, object]], code: int, says: str) -> None:
    """The skipped row is what pip-audit 2.10.1 wrote, with exit code 0, where the index has no such service."""
    given, lines = audit.verdict(audit.parse_answer(json.dumps({"dependencies": rows, "fixes": []})), 3)
    assert given == code
    assert says in "\n".join(lines)


@pytest.mark.parametrize("text", ["", "[]", '{"dependencies": [{"vulns": [{}]}]}', '{"dependencies": null}'])
def test_answers_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        audit.parse_answer(text)


def test_without_network_nothing_is_claimed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "offline_troubles", list)
    assert audit.main(["--offline"]) == audit.GOOD
    assert "NOT asked" in capsys.readouterr().out
    monkeypatch.setattr(audit, "ASK_SECONDS", 0)
    assert audit.main([]) == audit.NOT_ASKED
    assert "could NOT be asked" in capsys.readouterr().err
