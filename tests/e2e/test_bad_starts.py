"""A start that can't succeed: one line that says what is wrong and what to do."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.probes.run.state import open_storage
from support.daemon import run, running, write_config
from support.programs import need


def refused(done: subprocess.CompletedProcess[str], *, code: int = 1) -> str:
    """What one failed start said."""
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("plumbline")
    return line


def serve(folder: Path, *flags: str | Path, address: str = "127.0.0.1:0") -> subprocess.CompletedProcess[str]:
    return run("serve", "--storage.path", folder / "state", "--web.listen-address", address, *flags)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"web": {"listen_adress": "x"}}, ": web.listen_adress: no such key; see the configuration reference"),
        ({"web": {"max_requests": "many"}}, ": web.max_requests = 'many': expected `int`, got `str`"),
        ({"web": {"max_requests": 0}}, ": web.max_requests = 0: expected `int` >= 1"),
        ({"baseline": {"files": ["/nowhere/site.yaml"]}}, "/nowhere/site.yaml: can't be read: No such file"),
        ("\tprobes: []\n", ":1: not valid YAML: "),
    ],
    ids=["unknown-key", "wrong-type", "impossible-value", "site-file", "yaml"],
)
def test_a_bad_configuration(tmp_path: Path, config: object, says: str) -> None:
    file = write_config(tmp_path, config)

    line = refused(serve(tmp_path, "--config.file", file))

    assert says in line
    if "site" not in says:
        assert line.startswith(f"plumbline: {file}:")


def test_configuration_files_that_can_not_be_read(tmp_path: Path) -> None:
    no_text = tmp_path / "latin1.yaml"
    no_text.write_bytes("storage_path: /größe\n".encode("latin-1"))

    for file, says in (
        (tmp_path / "missing.yaml", "can't be read: No such file or directory"),
        (tmp_path, "can't be read: Is a directory"),
        (no_text, "is not UTF-8 at byte 17"),
    ):
        assert refused(serve(tmp_path, "--config.file", file)) == f"plumbline: {file}: {says}"


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        line = refused(serve(tmp_path, address=address))

    assert line == f"plumbline: {address}: address already in use; choose another with --web.listen-address"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("here", "--web.listen-address = 'here': expected host:port, for example 127.0.0.1:10047 or [::1]:10047"),
        ("127.0.0.1:99999", "--web.listen-address = '127.0.0.1:99999': expected host:port"),
        ("[::g]:0", "--web.listen-address = '[::g]:0': expected host:port"),
        ("192.0.2.1:0", "192.0.2.1:0: this host does not have that address; choose another with"),
    ],
)
def test_a_bad_address(tmp_path: Path, address: str, says: str) -> None:
    assert says in refused(serve(tmp_path, address=address))


def test_a_storage_path_that_is_in_use(tmp_path: Path) -> None:
    with running(tmp_path, config={"probes": []}) as daemon:
        line = refused(serve(tmp_path))

        assert line == (
            f"plumbline: {daemon.storage}: another plumbline uses this storage path; stop it or choose another "
            "with --storage.path"
        )
        assert daemon.get("/metrics").status == 200


def test_storage_paths_that_can_not_be_had(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    for path, why in (
        (file, "Not a directory"),
        (file / "below", "Not a directory"),
        (Path("/proc/plumbline"), "No such file or directory"),
    ):
        line = refused(run("serve", "--web.listen-address", "127.0.0.1:0", "--storage.path", path))
        assert line == f"plumbline: {path}: can't be used for state: {why}; choose another with --storage.path"


def test_state_that_can_not_be_read(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "state.json").mkdir(parents=True)

    assert refused(serve(tmp_path)) == (
        f"plumbline: {state}: is not empty, and nothing in it shows that Plumbline made it (no .plumbline-storage);"
        " nothing in it was touched. Choose a new or empty directory with --storage.path"
    )
    (state / "state.json").rmdir()
    open_storage(state).close()
    (state / "state.json").mkdir()

    assert refused(serve(tmp_path)).startswith(f"plumbline: {state}/state.json: is not a regular file; move it away")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--collector.softnets"], "plumbline serve: no such flag or argument: --collector.softnets; see "),
        (["serve", "--web.listen"], "plumbline serve: no such flag or argument: --web.listen; see "),
        (["serve", "--log.level", "loud"], "plumbline serve: argument --log.level: invalid choice: 'loud'"),
        (["serf"], "plumbline: argument COMMAND: invalid choice: 'serf'"),
        ([], "plumbline: the following arguments are required: COMMAND; see plumbline --help"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str) -> None:
    assert refused(run(*arguments), code=2).startswith(says)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="not root: can't mount")
def test_a_storage_path_on_a_read_only_file_system(tmp_path: Path) -> None:
    with _read_only(tmp_path / "ro") as mounted:
        line = refused(run("serve", "--web.listen-address", "127.0.0.1:0", "--storage.path", mounted / "state"))

    assert "can't be used for state: Read-only file system; choose another with --storage.path" in line


@contextlib.contextmanager
def _read_only(point: Path) -> Iterator[Path]:
    point.mkdir()
    subprocess.run([need("mount"), "-t", "tmpfs", "-o", "ro,size=1m", "none", point], check=True)
    try:
        yield point
    finally:
        subprocess.run([need("umount"), point], check=True)
