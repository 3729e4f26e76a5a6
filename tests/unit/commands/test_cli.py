"""argv in, exit code and one line out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from plumbline import __version__
from plumbline.cli import _parser, main
from plumbline.collectors.registry import NAMES
from support.offenders import for_every


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "plumbline.yaml"
    file.write_text("probes: []\n")
    return file


def test_a_good_configuration(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(config)]) == 0
    assert capsys.readouterr() == (f"{config}: good\n", "")


def test_a_bad_configuration_is_one_line(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("web: {max_requests: 0}\n")
    assert main(["config", "check", str(config)]) == 1
    assert capsys.readouterr() == (
        "", f"plumbline: {config}:1: web.max_requests = 0: expected `int` >= 1\n"
    )  # fmt: skip


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(tmp_path / "no.yaml")]) == 1
    assert capsys.readouterr().err == f"plumbline: {tmp_path / 'no.yaml'}: can't be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "plumbline: the following arguments are required: COMMAND; see plumbline --help"),
        (["serve", "here"], "plumbline serve: no such flag or argument: here; see plumbline serve --help"),
        (["serve", "--collector.soft"], "plumbline serve: no such flag or argument: --collector.soft; see "),
        (["serve", "--config.file"], "plumbline serve: argument --config.file: expected one argument; see "),
        (["baseline"], "plumbline baseline: the following arguments are required: ACTION; see "),
        (["baseline", "record", "--runs", "few"], "plumbline baseline record: argument --runs: invalid int value"),
    ],
)
def test_wrong_usage_is_one_line_and_two(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(says)
    assert err.count("\n") == 1


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"plumbline {__version__}\n"


def test_help_names_every_collector_and_every_tree(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    text = capsys.readouterr().out
    for name in NAMES:
        assert f"--collector.{name}" in text
        assert f"--no-collector.{name}" in text
    for tree in ("procfs", "sysfs", "devfs", "udev"):
        assert f"--path.{tree}" in text
    assert "127.0.0.1:10047" in text


def test_errors_of_a_command_are_one_line(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage = tmp_path / "storage"
    storage.mkdir()
    (storage / "baseline.yaml").write_text("entries: damaged\n")
    assert main(["baseline", "list", "--config.file", str(config), "--storage.path", str(storage)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"plumbline: {storage / 'baseline.yaml'}: ")
    assert err.count("\n") == 1


def runs(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The functions that the commands below a parser run."""
    if run := parser.get_default("run"):
        yield run
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from runs(below)


@for_every("run", sorted(runs(_parser())))
def test_each_command_names_a_function_that_exists(run: str) -> None:
    module, _, function = run.rpartition(".")
    assert callable(getattr(import_module(f"plumbline.commands.{module}"), function))
