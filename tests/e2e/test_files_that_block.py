"""Files that somebody names and that never end or never answer: at the start, in `config check`, at a reload."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.bindfs import Fuse
from support.certificates import Certificates, make_certificates
from support.daemon import COMMAND, Daemon, command_line, eventually, run, running, write_config

pytestmark = pytest.mark.long
KINDS = {
    "configuration": "plumbline.yaml",
    "web": "web.yml",
    "certificate": "server.crt",
    "key": "server.key",
    "client CA": "ca.crt",
    "site": "site.yaml",
}
SOON_S = 60.0
"""For a process that used to hang for ever; here it starts, waits five seconds and ends, six of its kind beside it."""
SITE = "schema_version: 1\nentries: [{workload: randread-4k-qd1-j1, device_class: nvme, latency: {p50: 84us}}]\n"
TLS = {"cert_file": "server.crt", "key_file": "server.key", "client_ca_file": "ca.crt"}


@dataclass
class Files:
    """All files of a daemon in ``folder``, but that of ``kind``, which lies at ``elsewhere``."""

    folder: Path
    kind: str
    elsewhere: Path

    def path(self, kind: str) -> Path:
        """Where the file of this kind lies."""
        return (self.elsewhere if kind == self.kind else self.folder) / KINDS[kind]

    def write(self, certificates: Certificates) -> None:
        """Good ones."""
        tls = {key: str(self.path(kind)) for key, kind in zip(TLS, ("certificate", "key", "client CA"), strict=True)}
        tls["client_auth_type"] = "VerifyClientCertIfGiven"
        self.path("web").write_text(json.dumps({"tls_server_config": tls}))
        self.path("site").write_text(SITE)
        for kind in ("certificate", "key", "client CA"):
            shutil.copy(certificates.folder / KINDS[kind], self.path(kind))
        config = {
            "web": {"config_file": str(self.path("web"))},
            "baseline": {"files": [str(self.path("site"))]},
            "probes": [{"type": "canary", "name": "canary", "enabled": False}],
        }
        self.path("configuration").write_text(json.dumps(config))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("pem"))


def blocked(folder: Path, elsewhere: Path, certificates: Certificates) -> dict[str, Files]:
    """For each kind a set of files whose one of that kind lies below ``elsewhere``."""
    made = {}
    for kind in KINDS:
        files = Files(folder / kind, kind, elsewhere / kind)
        files.folder.mkdir()
        files.elsewhere.mkdir()
        files.write(certificates)
        made[kind] = files
    return made


def start(files: Files) -> subprocess.Popen[str]:
    argv = [*COMMAND, "serve", "--web.listen-address", "127.0.0.1:0", "--storage.path", str(files.folder / "state")]
    argv += ["--config.file", str(files.path("configuration"))]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(files: Files) -> subprocess.Popen[str]:
    argv = [*COMMAND, "config", "check", str(files.path("configuration"))]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Its exit code and what it complained of; one that does not end is a failure."""
    try:
        _, said = process.communicate(timeout=SOON_S)
    finally:
        process.kill()
        process.wait()
    return process.returncode, said.splitlines()


def assert_each_is_refused(made: dict[str, Files], words: str) -> None:
    """Half of them at the start, half by the check, all beside each other: both read by the same few functions."""
    processes = [(kind, start(made[kind])) for kind in ("configuration", "key", "site")]
    processes += [(kind, check(made[kind])) for kind in ("web", "certificate", "client CA")]
    found = [(kind, *ended(process)) for kind, process in processes]
    for kind, code, said in found:
        assert code == 1, (kind, said)
        assert len(said) == 1, (kind, said)
        assert f"{KINDS[kind]}" in said[0], (kind, said)
        assert "can't be read" in said[0], (kind, said)
        assert words in said[0], (kind, said)


def test_pipes_are_refused_at_the_start_and_by_the_check(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "pipes").mkdir()
    made = blocked(tmp_path, tmp_path / "pipes", certificates)
    for kind, files in made.items():
        files.path(kind).unlink()
        os.mkfifo(files.path(kind))
    assert_each_is_refused(made, "not a regular file")


@pytest.mark.needs_root
def test_a_mount_that_hangs_is_refused_at_the_start_and_by_the_check(
    tmp_path: Path, fuse: Fuse, certificates: Certificates
) -> None:
    made = blocked(tmp_path, fuse.point, certificates)
    fuse.hang()
    assert_each_is_refused(made, "no answer")


@pytest.mark.needs_root
def test_a_start_that_waits_for_a_mount_can_be_ended(tmp_path: Path, fuse: Fuse, certificates: Certificates) -> None:
    files = blocked(tmp_path, fuse.point, certificates)["site"]
    fuse.hang()
    process = start(files)
    eventually(lambda: len(threads(process.pid)) > 1)
    process.terminate()
    code, said = ended(process)
    assert (code, said) == (-signal.SIGTERM, []) or (code == 1 and len(said) == 1)


def threads(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").glob("*"))


def refusals(daemon: Daemon) -> list[str]:
    return [line for line in daemon.said().splitlines() if "reload refused" in line]


def scrape(daemon: Daemon, certificates: Certificates) -> dict[str, str]:
    """Over TLS, by its own client: the metrics without labels."""
    with urllib.request.urlopen(f"{daemon.url}/metrics", context=certificates.client(), timeout=30) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line[:1] not in ("#", "")]
    return dict(line.rpartition(" ")[::2] for line in lines)


def serve(stack: ExitStack, files: Files) -> Daemon:
    argument = ("--config.file", files.path("configuration"))
    return stack.enter_context(running(files.folder, *argument))


def test_pipes_are_refused_at_a_reload(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "all").mkdir()
    files = Files(tmp_path / "all", "", tmp_path)
    files.write(certificates)
    with ExitStack() as stack:
        daemon = serve(stack, files)
        for number, kind in enumerate(KINDS, 1):
            path = files.path(kind)
            kept = path.rename(path.with_suffix(".kept"))
            os.mkfifo(path)
            daemon.send(signal.SIGHUP)
            eventually(lambda number=number: len(refusals(daemon)) >= number)
            assert "not a regular file" in refusals(daemon)[-1]
            assert path.name in refusals(daemon)[-1]
            assert scrape(daemon, certificates)["plumbline_config_last_reload_successful"] == "0"
            kept.replace(path)
            daemon.send(signal.SIGHUP)
            eventually(lambda: scrape(daemon, certificates)["plumbline_config_last_reload_successful"] == "1")
        assert daemon.stop()[0] == 0


@pytest.mark.needs_root
def test_a_mount_that_hangs_at_a_reload_holds_neither_scrapes_nor_the_stop(
    tmp_path: Path, fuse: Fuse, certificates: Certificates
) -> None:
    """Nobody sends SIGHUP: to look whether a file changed asks the mount already."""
    made = blocked(tmp_path, fuse.point, certificates)
    with ExitStack() as stack:
        daemons = {kind: serve(stack, made[kind]) for kind in ("configuration", "certificate", "site")}
        stack.callback(fuse.go_on)
        fuse.hang()
        for kind, daemon in daemons.items():
            eventually(lambda daemon=daemon: refusals(daemon))
            assert KINDS[kind] in refusals(daemon)[0]
            assert "no answer" in refusals(daemon)[0]
            assert len(refusals(daemon)) == 1, "said once, while it hangs"
            assert scrape(daemon, certificates)["plumbline_config_last_reload_successful"] == "0"
            assert len(threads(daemon.pid)) < 40, "no thread more for each look"
        for kind in ("configuration", "certificate"):
            assert daemons[kind].stop()[0] == 0
        fuse.go_on()
        eventually(lambda: scrape(daemons["site"], certificates)["plumbline_config_last_reload_successful"] == "1")
        assert daemons["site"].stop()[0] == 0


@pytest.mark.needs_root
def test_a_canary_is_looked_after_while_a_reload_hangs(tmp_path: Path, fuse: Fuse) -> None:
    (fuse.point / "site.yaml").write_text(SITE)
    config = {"baseline": {"files": [str(fuse.point / "site.yaml")]}}
    config["probes"] = [{"type": "canary", "name": "canary", "file_size": "16MiB"}]
    with running(tmp_path, config=config) as daemon:
        first = eventually(lambda: [each for each in daemon.children() if daemon.children()] and daemon.worker())
        fuse.hang()
        daemon.send(signal.SIGHUP)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: [pid for pid in _workers(daemon) if pid != first])
        assert daemon.stop()[0] == 0


def _workers(daemon: Daemon) -> list[int]:
    return [child for child in daemon.children() if "canary_worker" in command_line(child)]


def test_a_recorded_baseline_that_is_a_pipe_is_said_and_the_daemon_starts(tmp_path: Path) -> None:
    config = {"probes": [{"type": "canary", "name": "canary", "enabled": False}]}
    with running(tmp_path, config=config) as daemon:  # it makes its directory, and marks it
        assert daemon.stop()[0] == 0
    os.mkfifo(tmp_path / "state" / "baseline.yaml")
    began = time.monotonic()
    with running(tmp_path, config=config) as daemon:
        assert time.monotonic() - began < SOON_S
        assert "not a regular file" in daemon.page()
        assert daemon.stop()[0] == 0


@pytest.mark.parametrize("wrong", ["/dev/zero", "/dev/ptmx", "/etc"])
def test_devices_and_directories_as_configuration(wrong: str) -> None:
    said = run("config", "check", wrong)
    assert said.returncode == 1
    assert said.stderr.count("\n") == 1
    assert "not a regular file" in said.stderr or "Is a directory" in said.stderr


def test_a_nul_in_any_name_is_refused_with_its_key(tmp_path: Path) -> None:
    file = write_config(tmp_path, {"storage_path": "/var/lib/a\0b"})
    said = run("config", "check", file)
    assert said.returncode == 1
    assert "storage_path" in said.stderr
    assert "NUL" in said.stderr
