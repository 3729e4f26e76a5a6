"""The iperf3 server that we ship, started by its unit's command."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.programs import need

UNIT = Path(__file__).parents[2] / "systemd" / "plumbline-iperf3.service"
_WITHIN_S = 20.0


def command(*arguments: str) -> list[str]:
    """What the unit starts, with ``arguments`` as ``$ARGS``."""
    (line,) = re.findall(r"^ExecStart=/usr/bin/iperf3 (.+) \$ARGS$", UNIT.read_text(), re.M)
    return [need("iperf3"), *line.split(), *arguments]


@contextmanager
def iperf3_server(address: str, port: int, prefix: Sequence[str] = ()) -> Iterator[int]:
    """Serve while the context is open; gives the process id. ``prefix``: a command that runs it elsewhere."""
    argv = [*prefix, *command("--bind", address, "--port", str(port), "--forceflush")]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    try:
        deadline = time.monotonic() + _WITHIN_S
        while b"Server listening" not in process.stdout.readline():
            assert time.monotonic() < deadline
            assert process.poll() is None, "the server ended"
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
