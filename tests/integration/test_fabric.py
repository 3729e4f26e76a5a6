"""``plumbline nic --fabric`` with the real ibqueryerrors, over a fabric that ibsim simulates and opensm manages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.daemon import COMMAND, eventually
from support.programs import need

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
]
FABRIC = """
Switch 4 "switch-1"
[1] "node1"[1]
[2] "node2"[1]

Ca 1 "node1"
[1] "switch-1"[1]

Ca 1 "node2"
[1] "switch-1"[2]
"""


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[tuple[Any, Path]]:
    """ibsim's console, and the folder in which its clients have to run."""
    for program in ("ibqueryerrors", "ibsim", "opensm"):
        need(program)
    (tmp_path / "net").write_text(FABRIC)
    with ExitStack() as stack:

        def start(*argv: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                argv,
                cwd=tmp_path,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait, 30)
            stack.callback(process.kill)
            return process

        ibsim = start("ibsim", "-s", "net")
        start("ibsim-run", "opensm", "-f", str(tmp_path / "opensm.log"))
        assert ibsim.stdin is not None
        yield ibsim.stdin, tmp_path


def asked(folder: Path) -> tuple[int, Any]:
    """With a program of that name first in the PATH, because ours hands no LD_PRELOAD on."""
    program = folder / "bin" / "ibqueryerrors"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec ibsim-run {shutil.which("ibqueryerrors")} "$@"\n')
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    argv = [*COMMAND, "nic", "--fabric", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def test_a_port_with_errors_and_its_other_end(fabric: tuple[Any, Path]) -> None:
    console, folder = fabric
    eventually(lambda: asked(folder), until=lambda now: now[0] == 0 and now[1]["nodes"] == 3, within_s=60, every_s=1)
    console.write('PerformanceSet "node1"[1] PortCounters.SymbolErrorCounter=17\n')
    console.flush()
    _, seen = eventually(lambda: asked(folder), until=lambda now: now[0] == 0 and now[1]["bad"], within_s=30, every_s=1)
    (port,) = seen["bad"]
    assert (port["node"], port["port"], port["counters"]) == ("node1", 1, {"SymbolErrorCounter": 17})
    assert (port["peer"], port["peer_port"]) == ("switch-1", 1)
