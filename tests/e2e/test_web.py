"""The daemon behind TLS and passwords: scraped by a real Prometheus, reloaded, attacked; and what it never shows."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import bcrypt
import pytest
import yaml

from support import attackers
from support.certificates import Certificates, make_certificates
from support.daemon import WITHIN_S, Daemon, command_line, eventually, run, running
from support.ports import free_port
from support.programs import need
from support.scraped import Scrape

pytestmark = pytest.mark.usefixtures("private_files")

ROOT = Path(__file__).parents[2]
PASSWORD = "correct-horse-battery"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(8)).decode()
QUIET: dict[str, object] = {"probes": []}
TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
USERS = f"basic_auth_users: {{prometheus: {HASH}}}\n"


@dataclass(slots=True)
class Guarded:
    """A daemon with a web configuration file, and what its clients need."""

    daemon: Daemon
    certificates: Certificates

    @property
    def file(self) -> Path:
        """The web configuration file."""
        return self.certificates.folder / "web.yaml"

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        parts = urlsplit(self.daemon.url)
        assert parts.hostname
        assert parts.port
        return parts.hostname, parts.port

    def connect(self, client: str | None = None) -> http.client.HTTPSConnection:
        """A connection of its own."""
        return http.client.HTTPSConnection(*self.address, timeout=10, context=self.certificates.client(client))

    def get(self, path: str, user: str = f"prometheus:{PASSWORD}", client: str | None = None) -> tuple[int, str]:
        """Status and text."""
        connection = self.connect(client)
        try:
            return ask(connection, path, user)
        finally:
            connection.close()

    def metrics(self) -> Scrape:
        """The text exposition."""
        status, text = self.get("/metrics?profile=full")
        assert status == 200, text
        return Scrape.of_text(text)


def ask(connection: http.client.HTTPConnection, path: str, user: str = f"prometheus:{PASSWORD}") -> tuple[int, str]:
    headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response.status, response.read().decode()


@contextlib.contextmanager
def guarded(folder: Path, text: str, config: object = QUIET) -> Iterator[Guarded]:
    certificates = make_certificates(folder / "tls")
    file = folder / "tls" / "web.yaml"
    file.write_text(text)
    with running(folder, "--web.config.file", file, config=config) as daemon:
        yield Guarded(daemon, certificates)


@pytest.fixture(scope="module")
def door(module_folder: Path) -> Iterator[Guarded]:
    """One daemon for everything that changes only its web configuration file."""
    with guarded(module_folder, TLS + USERS) as started:
        yield started


def test_the_door_is_shut_and_says_so(door: Guarded) -> None:
    assert door.daemon.url.startswith("https://")
    for path in ("/", "/metrics", "/-/healthy", "/-/ready"):
        assert door.get(path)[0] == 200
        assert door.get(path, user="")[0] == 401
        assert door.get(path, user="prometheus:wrong")[0] == 401
    metrics = door.metrics()
    assert metrics.get("plumbline_web_info", reach="loopback", encryption="tls", authentication="password") == 1
    assert (metrics.get("plumbline_web_requests_refused_total", reason="authentication") or 0) >= 8


def test_a_kept_connection_pays_for_the_password_once(door: Guarded) -> None:
    connection = door.connect()
    ask(connection, "/-/healthy")
    began = time.process_time()
    took = time.monotonic()
    for _ in range(20):
        assert ask(connection, "/-/healthy")[0] == 200
    took = time.monotonic() - took
    connection.close()
    one_check = min(timed(lambda: bcrypt.checkpw(b"x", HASH.encode())) for _ in range(3))
    assert time.process_time() >= began
    assert took < 20 * one_check


def timed(do: Any) -> float:
    began = time.monotonic()
    do()
    return time.monotonic() - began


def test_a_new_user_and_a_new_certificate_hold_without_a_restart(door: Guarded) -> None:
    pid = door.daemon.pid
    kept = door.connect()
    assert ask(kept, "/-/healthy")[0] == 200
    before = kept.sock.getpeercert(binary_form=True)

    door.certificates.sign("server", "DNS:localhost,IP:127.0.0.1")
    new = bcrypt.hashpw(b"other", bcrypt.gensalt(4)).decode()
    door.file.write_text(TLS + f"basic_auth_users: {{prometheus: {HASH}, ops: {new}}}\n")
    eventually(lambda: door.get("/-/healthy", user="ops:other")[0] == 200)

    again = door.connect()
    assert ask(again, "/-/healthy")[0] == 200
    assert again.sock.getpeercert(binary_form=True) != before
    again.close()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        ask(kept, "/-/healthy")  # it came in by another certificate: to be opened anew, as Prometheus does by itself

    door.file.write_text(TLS + USERS)
    eventually(lambda: door.get("/-/healthy", user="ops:other")[0] == 401)
    assert door.daemon.pid == pid


def test_a_bad_file_changes_nothing_and_is_said_once(door: Guarded) -> None:
    already = door.daemon.said().count("refused, the running configuration stays")
    door.file.write_text(TLS + "basic_auth_users: {prometheus: hunter2}\n")
    eventually(lambda: door.metrics().get("plumbline_config_last_reload_successful") == 0)
    assert door.get("/-/healthy", user="")[0] == 401
    assert "basic_auth_users.prometheus: not a bcrypt hash" in door.get("/")[1]
    time.sleep(3)  # several looks at the file
    assert door.daemon.said().count("refused, the running configuration stays") == already + 1
    assert "hunter2" not in door.daemon.said() + door.get("/")[1]

    door.file.write_text(TLS + USERS)
    eventually(lambda: door.metrics().get("plumbline_config_last_reload_successful") == 1)


@pytest.mark.parametrize("name", ["web.yaml", "server.key"])
def test_a_key_that_others_may_read_changes_nothing_and_is_said_once(door: Guarded, name: str) -> None:
    already = door.daemon.said().count("refused, the running configuration stays")
    file = door.file.with_name(name)
    file.chmod(0o644)
    eventually(lambda: door.metrics().get("plumbline_config_last_reload_successful") == 0)
    assert door.get("/-/healthy", user="")[0] == 401
    assert "is accessible to others (mode 0644); chmod 600 it" in door.get("/")[1]
    time.sleep(3)  # several looks at the file
    assert door.daemon.said().count("refused, the running configuration stays") == already + 1

    file.chmod(0o600)
    eventually(lambda: door.metrics().get("plumbline_config_last_reload_successful") == 1)


@pytest.mark.parametrize("text", ["", "{}\n", TLS])
def test_a_file_cut_short_opens_nothing(door: Guarded, text: str) -> None:
    """As an editor or a full disk leaves it; two seconds later nobody may come in without the password."""
    already = door.daemon.said().count("reload refused")
    door.file.write_text(text)
    eventually(lambda: door.daemon.said().count("reload refused") > already)
    for path in ("/", "/metrics", "/-/healthy"):
        assert door.get(path, user="")[0] == 401
    assert door.metrics().get("plumbline_config_last_reload_successful") == 0
    assert f"{door.file}: " in door.get("/")[1]
    door.file.write_text(TLS + USERS)
    eventually(lambda: door.metrics().get("plumbline_config_last_reload_successful") == 1)


def test_a_guard_that_goes_is_a_warning_a_metric_and_a_line(door: Guarded) -> None:
    loaded = door.daemon.said().count("configuration reloaded")
    door.file.write_text(TLS + USERS + "rate_limit: {interval: 1ms, burst: 1000}\n")
    eventually(lambda: door.daemon.said().count("configuration reloaded") > loaded)
    already = door.daemon.said().count("a reload removed rate_limit")
    door.file.write_text(TLS + USERS)
    eventually(lambda: door.daemon.said().count("a reload removed rate_limit") > already)
    assert door.metrics().get("plumbline_web_guards_lost") == 1
    assert "a reload removed rate_limit; restart the daemon if this is intended" in door.get("/")[1]


def test_an_empty_web_file_does_not_start(folder: Path) -> None:
    file = folder / "web.yaml"
    file.write_text("")
    done = run("serve", "--web.config.file", file, "--storage.path", folder / "state")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"plumbline: {file}: is empty; write {{}} to set nothing"


def test_no_secret_is_in_argv_log_metrics_or_page(door: Guarded) -> None:
    key = "".join(door.certificates.key("server").read_text().splitlines()[1:-1])
    daemon = door.daemon
    shown = [
        daemon.said(),
        *(command_line(pid) for pid in (daemon.pid, *daemon.children())),
        *(door.get(path)[1] for path in ("/", "/metrics", "/-/ready", "/none")),
    ]
    for text in shown:
        for secret in (PASSWORD, HASH, HASH[10:30], key[20:60], base64.b64encode(PASSWORD.encode()).decode()):
            assert secret not in text


def test_a_flood_of_everything_at_once_does_not_keep_a_scrape_out(door: Guarded) -> None:
    kept = door.connect()
    assert ask(kept, "/metrics")[0] == 200
    attacks = (
        attackers.idle,
        attackers.slow_heads,
        attackers.half_open_tls,
        attackers.huge_heads,
        attackers.guessing(door.certificates.client()),
    )
    with attacked_daemon(door, *attacks):
        for _ in range(8):
            assert ask(kept, "/metrics")[0] == 200  # who has shown a password is never the one to go
            assert door.get("/metrics")[0] == 200
            time.sleep(0.2)
    kept.close()
    assert (door.metrics().get("plumbline_web_requests_refused_total", reason="crowded") or 0) > 0
    assert "Traceback" not in door.daemon.said()


@contextlib.contextmanager
def attacked_daemon(door: Guarded, *attacks: attackers.Attack) -> Iterator[None]:
    """Under attack once it is felt: connections have had to go."""
    with attackers.attacked(door.address, *attacks):
        eventually(lambda: door.metrics().get("plumbline_web_requests_refused_total", reason="crowded"))
        yield


def test_client_certificates_alone_are_enough(folder: Path) -> None:
    tls = TLS.replace("}", ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt}")
    with guarded(folder, tls) as started:
        assert started.get("/metrics", user="", client="client")[0] == 200
        for name in (None, "stranger"):
            with pytest.raises((OSError, http.client.HTTPException)):
                started.get("/metrics", user="", client=name)
        metrics = Scrape.of_text(started.get("/metrics?profile=full", client="client")[1])
        assert metrics.get("plumbline_web_info", authentication="certificate") == 1
        assert metrics.get("plumbline_web_requests_refused_total", reason="tls") == 2


def documented(what: str) -> str:
    """A fenced block of docs/web.md that holds ``what``."""
    blocks = (ROOT / "docs" / "web.md").read_text().split("```")[1::2]
    (found,) = [block for block in blocks if what in block]
    return found.partition("\n")[2]


def test_prometheus_scrapes_it_as_documented(folder: Path) -> None:
    need("prometheus")
    web = documented("basic_auth_users:").replace("$2y$10$", "$2b$08$")
    web = web.replace(web.partition("prometheus: ")[2].split()[0], HASH)
    with guarded(folder, web) as started:
        job = yaml.safe_load(documented("scrape_configs:"))["scrape_configs"][0]
        job["static_configs"] = [{"targets": ["{}:{}".format(*started.address)]}]
        job["tls_config"]["ca_file"] = str(started.certificates.crt("ca"))
        secret = folder / "password"
        secret.write_text(PASSWORD)
        job["basic_auth"]["password_file"] = str(secret)
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
        port = free_port()
        argv = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]  # fmt: skip
        with (folder / "prometheus.log").open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log) as process:
            try:
                eventually(lambda: '"value":[' in query(port, "up == 1"))
                assert '"authentication":"password"' in query(port, "plumbline_web_info")
                with attacked_daemon(started, attackers.idle, attackers.half_open_tls, attackers.slow_heads):
                    time.sleep(5)
                missed = query(port, "min_over_time(up[5s])")
                assert '"1"]' in missed, missed
            finally:
                process.terminate()
                process.wait(WITHIN_S)


def query(port: int, expression: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/api/v1/query?query=" + expression.replace(" ", "%20"))
        return connection.getresponse().read().decode()
    except OSError:
        return ""
    finally:
        connection.close()


def test_an_open_port_is_served_and_said(folder: Path) -> None:
    with running(folder, "--web.listen-address", "0.0.0.0:0", config=QUIET) as daemon:
        daemon.url = daemon.url.replace("0.0.0.0", "127.0.0.1")
        said = "anyone who can reach this port can read everything here"
        assert said in daemon.said()
        assert said in daemon.page()
        assert daemon.metrics().get("plumbline_web_info", reach="network", authentication="none") == 1
    with running(folder, config=QUIET) as daemon:
        assert said not in daemon.said() + daemon.page()


def test_config_check_looks_at_the_web_file_and_its_certificates(folder: Path) -> None:
    certificates = make_certificates(folder / "tls")
    web, config = certificates.folder / "web.yaml", folder / "plumbline.yaml"
    web.write_text(TLS + USERS)
    config.write_text(f"web: {{config_file: {web}}}\n")
    good = run("config", "check", config)
    assert (good.returncode, good.stdout) == (0, f"{config}: good\n{web}: good\n")
    certificates.crt("server").unlink()
    for arguments in ((config,), ("--web.config.file", web)):
        bad = run("config", "check", *arguments)
        assert bad.returncode == 1
        assert bad.stderr.startswith(f"plumbline: {web}: tls_server_config.cert_file = ")
        assert len(bad.stderr.splitlines()) == 1
    assert run("config", "check").returncode == 1


def test_a_bad_web_file_does_not_start(folder: Path) -> None:
    file = folder / "web.yaml"
    file.write_text("tls_server_confg: {}\n")
    done = run("serve", "--web.config.file", file, "--storage.path", folder / "state")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"plumbline: {file}: tls_server_confg: no such key; see docs/web.md"


# --- memory


ABORTS = """
import os, resource
{}
try:
    resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))  # a pipe as core_pattern would not heed the limit either
except (OSError, ValueError):
    pass
os.abort()
"""


def dumps_core(folder: Path, first: str) -> bool:
    folder.mkdir()
    done = subprocess.Popen([sys.executable, "-c", ABORTS.format(first)], cwd=folder, stderr=subprocess.DEVNULL)
    _, status, _ = os.wait4(done.pid, 0)
    done.returncode = 0
    assert os.WTERMSIG(status) == signal.SIGABRT
    return os.WCOREDUMP(status) or bool([*folder.iterdir()])


def can_dump() -> bool:
    return resource.getrlimit(resource.RLIMIT_CORE)[1] == resource.RLIM_INFINITY


@pytest.mark.skipif(not can_dump(), reason="the limit of core files can't be raised here")
def test_what_holds_secrets_leaves_no_core(folder: Path) -> None:
    if not dumps_core(folder / "without", ""):
        pytest.skip("this system writes no core files at all")
    private = "from plumbline.core.memory import keep_memory_private; keep_memory_private()"
    assert not dumps_core(folder / "with", private)


def test_the_daemon_and_its_children_have_no_core_limit_left(folder: Path) -> None:
    with running(folder, config={"probes": [{"type": "canary", "name": "canary"}]}) as daemon:
        children = eventually(daemon.children)
        for pid in (daemon.pid, *children):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                assert resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0)
