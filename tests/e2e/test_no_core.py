"""A process that holds a secret leaves no core file when it really crashes: SIGSEGV, with the limits of cores raised.

One that holds none does, in the same place and with the same limits; without that, these tests would prove nothing.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from plumbline.core.isolated import argv_of
from plumbline.probes.object.s3_worker import Task
from support.certificates import make_certificates
from support.daemon import COMMAND, eventually
from support.ports import free_port

pytestmark = [
    pytest.mark.usefixtures("private_files"),
    pytest.mark.skipif(
        resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY and os.geteuid() != 0,
        reason="the limit of core files can't be raised here",
    ),
]


class Silent:
    """A server that takes connections and requests, and answers nothing."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        kept = []
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            kept.append(connection)
            if connection.recv(1):
                self.asked.set()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


def crashes(folder: Path, argv: list[str], ready: Callable[[], object], keep: tuple[int, ...] = ()) -> bool:
    """Whether the process, killed by SIGSEGV once ``ready`` returns, left a core."""
    (folder / "cwd").mkdir()
    process = subprocess.Popen(
        ["prlimit", "--core=unlimited:unlimited", *argv],  # it becomes the command
        cwd=folder / "cwd",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "stderr").open("wb"),
        pass_fds=keep,
    )
    try:
        ready()
        os.kill(process.pid, signal.SIGSEGV)
        _, status, _ = os.wait4(process.pid, 0)
        process.returncode = status
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    assert os.WIFSIGNALED(status), (folder / "stderr").read_text()
    assert os.WTERMSIG(status) == signal.SIGSEGV
    return os.WCOREDUMP(status) or any("core" in file.name for file in (folder / "cwd").iterdir())


@pytest.fixture(autouse=True)
def _cores_are_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("without")
    if not crashes(folder, [sys.executable, "-c", "import time; time.sleep(60)"], lambda: time.sleep(0.5)):
        pytest.skip("this system writes no core files at all")


def test_the_daemon(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    web = tmp_path / "web.yaml"
    web.write_text("tls_server_config: {cert_file: server.crt, key_file: server.key}\n")
    port = free_port()
    argv = [
        *COMMAND, "serve", "--web.config.file", str(web), "--web.listen-address", f"127.0.0.1:{port}",
        "--storage.path", str(tmp_path / "state"),
    ]  # fmt: skip

    def listens() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    assert made.folder == tmp_path
    assert not crashes(tmp_path, argv, lambda: eventually(listens, within_s=60))


def test_a_command_that_was_given_a_password(tmp_path: Path, silent: Silent) -> None:
    (tmp_path / "http.yaml").write_text("basic_auth: {username: u, password_file: password}\n")
    (tmp_path / "password").write_text("hunter2\n")
    argv = [
        *COMMAND, "report", "--format", "markdown", "--prometheus", f"http://127.0.0.1:{silent.port}",
        "--http.config.file", str(tmp_path / "http.yaml"),
    ]  # fmt: skip
    assert not crashes(tmp_path, argv, lambda: silent.asked.wait(60))
    assert silent.asked.is_set()


def test_a_worker_of_s3(tmp_path: Path, silent: Silent) -> None:
    pytest.importorskip("botocore")
    (tmp_path / "keys").write_text("access_key = a\nsecret_key = hunter2\n")
    with (tmp_path / "keys").open("rb") as keys:
        task = Task(
            endpoint=f"http://127.0.0.1:{silent.port}", bucket="b", prefix="p/", region="default", ca_file=None,
            credentials_name="keys", credentials_fd=keys.fileno(), object_size=1, operations=1,
            request_timeout_s=60.0, timeout_s=60.0,
        )  # fmt: skip
        argv = argv_of("plumbline.probes.object.s3_worker", msgspec.json.encode(task).decode(), site_packages=True)
        assert not crashes(tmp_path, [*argv], lambda: silent.asked.wait(60), (keys.fileno(),))
    assert silent.asked.is_set()


@pytest.mark.parametrize("worker", ["ceph_worker", "ceph_task", "rados_canary_worker"])
def test_a_worker_of_ceph(tmp_path: Path, worker: str) -> None:
    """Before it is told which key to read: a pipe in the place of its first input holds it there."""
    (file,) = Path(sys.modules["plumbline"].__file__ or "").parent.rglob(f"{worker}.py")
    module = ".".join(("plumbline", *file.relative_to(Path(sys.modules["plumbline"].__file__ or "").parent).parts))
    script = (
        f"import sys, time\nfrom {module.removesuffix('.py')} import keep_memory_private, main\n"
        "import inspect\nassert inspect.getsource(main).count('keep_memory_private()') == 1\n"
        "import resource, signal\n"
        # the first thing that it does after it became private is to limit its memory
        f"import {module.removesuffix('.py')} as worker\nworker.limit_memory = lambda _most: time.sleep(60)\n"
        "open('ready', 'w').close()\nmain(['{}'])\n"
    )
    argv = [sys.executable, "-c", script]
    assert not crashes(tmp_path, argv, lambda: (eventually((tmp_path / "cwd/ready").exists), time.sleep(0.5)))


def test_what_a_private_process_starts_inherits_the_limit(tmp_path: Path) -> None:
    """``rbd`` and fio hold a key, too: they become dumpable again, but their limit is 0 and stays it."""
    (tmp_path / "key").write_text("x")
    script = (
        "import json, resource, subprocess, sys\nfrom plumbline.core.keyfiles import read_secret\n"
        "read_secret(sys.argv[1], 10)\n"
        "child = 'import resource; print(list(resource.getrlimit(resource.RLIMIT_CORE)))'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "key")], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [0, 0]
