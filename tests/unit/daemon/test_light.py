"""What a daemon that is only scraped does not load; docs/sizing.md has its memory."""

import subprocess
import sys

import pytest

FOR = {
    "pyroute2": "one question at the start, in a process of its own",
    "prometheus_client.exposition": "servers and clients; ours render and serve",
    "asyncio": "pyroute2",
    "jinja2": "pages",
    "plumbline.status.page": "the status page",
    "rich": "the terminal",
    "psutil": "canaries",
    "plumbline.probes.rbd.rbd_fio": "a kind of probe that is not configured",
    "ssl": "TLS",
    "bcrypt": "users",
    "hashlib": "users and probes; it loads OpenSSL",
}


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    code = "import sys, plumbline.cli, plumbline.commands.serve; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize("module", FOR)
def test_a_daemon_that_is_only_scraped_does_not_load(module: str, loaded: set[str]) -> None:
    assert "plumbline.daemon.daemon" in loaded
    assert module not in loaded, f"only for {FOR[module]}"
