"""Commands without flags are about the running daemon, wherever its configuration and its state are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.config.installation import Installation, announce, installations
from plumbline.core.roots import Roots
from support.daemon import Daemon, run, running, write_config
from support.first_commands import EXPLICIT, FIRST, arguments

OTHERS = (
    "plumbline baseline show x", "plumbline baseline record", "plumbline baseline report --format markdown",
    "plumbline baseline advise", "plumbline probe run canary", "plumbline doctor", "plumbline ceph top --once",
    "plumbline ceph setup",
)  # fmt: skip


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[tuple[Daemon, dict[str, str]]]:
    """Its configuration and its storage path are where nobody would look for them."""
    environment = os.environ | {"RUNTIME_DIRECTORY": str(tmp_path / "run")}
    config = {"probes": [{"type": "canary", "name": "elsewhere"}]}
    (tmp_path / "there").mkdir()
    with running(tmp_path / "there", config=config, environment=environment) as daemon:
        yield daemon, environment


def test_alerts_name_commands() -> None:
    assert {"plumbline probe list", "plumbline baseline list", "plumbline check"} <= set(FIRST)


def test_each_command_reads_the_daemons_configuration(daemon: tuple[Daemon, dict[str, str]]) -> None:
    """Seen by a mistake in the file, which each command that reads it names."""
    there, environment = daemon
    broken = write_config(there.storage.parent, "no_such_key: 1\n")
    for command in (*FIRST, *OTHERS):
        if command in EXPLICIT:
            continue
        done = run(*arguments(command), environment=environment)
        assert str(broken) in done.stdout + done.stderr, command
        assert done.returncode, command


def test_results_come_from_the_daemons_storage_path(daemon: tuple[Daemon, dict[str, str]]) -> None:
    there, environment = daemon
    done = run("probe", "list", environment=environment)
    assert "elsewhere" in done.stdout
    assert "no daemon runs" not in done.stdout
    doctor = run("doctor", environment=environment)
    assert f"at {there.url}" in doctor.stdout


def test_a_flag_that_says_otherwise_is_another_installation(
    daemon: tuple[Daemon, dict[str, str]], tmp_path: Path
) -> None:
    _, environment = daemon
    done = run("probe", "list", "--storage.path", tmp_path / "other", environment=environment)
    assert "elsewhere" not in done.stdout


def test_what_says_where_the_daemon_is_goes_with_it(daemon: tuple[Daemon, dict[str, str]], tmp_path: Path) -> None:
    there, environment = daemon
    assert (tmp_path / "run" / "daemon.json").stat().st_mode & 0o777 == 0o644
    there.stop()
    assert list((tmp_path / "run").iterdir()) == []
    assert "elsewhere" not in run("probe", "list", environment=environment).stdout


def test_without_a_daemon_what_is_installed_is_meant(tmp_path: Path) -> None:
    config = tmp_path / "etc" / "plumbline" / "plumbline.yaml"
    storage = tmp_path / "var" / "lib" / "plumbline"
    (found,) = installations(Roots.under(tmp_path), {"RUNTIME_DIRECTORY": ""})
    assert (found.config_file, found.storage_path) == (None, None)
    config.parent.mkdir(parents=True)
    config.write_text("probes: []\n")
    storage.mkdir(parents=True)
    (found,) = installations(Roots.under(tmp_path), {"RUNTIME_DIRECTORY": ""})
    assert (found.config_file, found.storage_in_force()) == (config, storage)
    config.write_text("storage_path: /srv/plumbline\n")
    assert found.storage_in_force() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_nobody_is_led_to_a_configuration_that_another_user_wrote(tmp_path: Path) -> None:
    config = tmp_path / "plumbline.yaml"
    config.write_text("probes: []\n")
    said = f'{{"config_file": "{config}", "storage_path": "/srv", "url": "http://127.0.0.1:1", "pid": {os.getpid()}}}'
    (tmp_path / "daemon.json").write_text(said)
    roots, environment = Roots.under(Path("/")), {"RUNTIME_DIRECTORY": str(tmp_path)}
    assert next(installations(roots, environment)).config_file == config
    os.chown(config, 65534, 65534)
    assert all(each.config_file != config for each in installations(roots, environment))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
@pytest.mark.parametrize("part", ["file", "directory", "writable", "link"])
def test_what_another_user_could_have_written_leads_nowhere(tmp_path: Path, part: str) -> None:
    place = tmp_path / "run"
    place.mkdir(mode=0o755)
    said = place / "daemon.json"
    said.write_text(
        f'{{"config_file": null, "storage_path": "/srv/x", "url": "http://127.0.0.1:1", "pid": {os.getpid()}}}'
    )
    roots, environment = Roots.under(Path("/")), {"RUNTIME_DIRECTORY": str(place)}
    assert next(installations(roots, environment)).storage_path == Path("/srv/x")
    match part:
        case "file":
            os.chown(said, 65534, 65534)
        case "directory":
            os.chown(place, 65534, 65534)
        case "writable":
            said.chmod(0o666)
        case "link":
            said.rename(place / "other")
            said.symlink_to("other")
            os.lchown(said, 65534, 65534)
    assert all(each.storage_path != Path("/srv/x") for each in installations(roots, environment))


def test_a_foreign_file_in_the_runtime_directory_stays(tmp_path: Path) -> None:
    foreign = tmp_path / "daemon.json"
    foreign.write_text("[1]\n")
    announce(Installation(None, Path("/srv"), None, os.getpid()), {"RUNTIME_DIRECTORY": str(tmp_path)})()
    assert foreign.read_text() == "[1]\n"
