"""``make quick`` asks the tests of what changed, and sees what git does not know yet."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support import quick


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    subprocess.run(["git", "-C", root, *identity, *words], check=True, capture_output=True)


def test_what_differs_from_main(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch=main")
    for name in ("same", "changed", "committed", "removed"):
        (tmp_path / name).write_text("before")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message=Begin")
    git(tmp_path, "switch", "--create=topic")
    (tmp_path / "committed").write_text("after")
    git(tmp_path, "commit", "--all", "--message=Change")
    (tmp_path / "changed").write_text("after")
    (tmp_path / "removed").unlink()
    (tmp_path / "new").write_text("")
    assert quick.changed(tmp_path) == ["changed", "committed", "new"]


def test_a_module_is_tested_by_what_names_it() -> None:
    wanted = quick.which(["exporter/plumbline/sources/kernel/softnet.py"])
    assert {
        "tests/unit/sources/kernel/test_softnet.py",
        "tests/unit/collectors/test_collectors_softnet.py",
        "tests/unit/project/test_house.py",
    } <= set(wanted)
    assert len(wanted) < 12
    assert "tests/unit/web/test_server.py" not in wanted


def test_a_module_that_no_test_names_is_tested_by_its_room(tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit" / "sources").mkdir(parents=True)
    wanted = quick.which(["exporter/plumbline/sources/kernel/new.py"], tmp_path)
    assert wanted == ["tests/unit/project/test_house.py", "tests/unit/sources"]


def test_an_alert_is_tested_by_its_files_its_texts_and_its_runbook() -> None:
    wanted = quick.which(["alerts/alerts/mount.libsonnet", "alerts/runbooks/PlumblineMountDead.md"])
    assert {
        "tests/rules/test_rules.py::test_promtool_unit_tests[mount_alerts]",
        "tests/rules/test_texts.py",
        "tests/rules/test_runbooks.py",
        "tests/unit/pages",
    } <= set(wanted)
    assert "tests/rules/test_rules.py::test_promtool_unit_tests[disk_alerts]" not in wanted


def test_a_test_is_tested_by_itself_and_a_rule_file_by_promtool() -> None:
    assert quick.which(["tests/unit/core/test_threads.py", "tests/rules/mount_alerts.yaml"]) == [
        "tests/rules/test_rules.py::test_promtool_unit_tests[mount_alerts]",
        "tests/unit/core/test_threads.py",
    ]


def test_every_test_of_the_table_exists() -> None:
    named = {test for _, tests in quick.TESTS for test in tests} | {quick.HOUSE}
    assert [test for test in sorted(named) if not (quick.ROOT / test).exists()] == []
