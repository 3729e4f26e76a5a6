"""A real glusterd on one host: its own process, mount and network namespace, its bricks in a folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from plumbline.core.process import Completed, ProcessRunner
from plumbline.core.roots import Roots

from .daemon import eventually
from .netns import namespace
from .programs import need

ADDRESS = "192.0.2.1"
"""It takes no loopback address for a brick."""

_START = """
mount --make-rprivate /
for place in /var/lib/glusterd /var/log/glusterfs /run; do
  mkdir -p "$0$place" "$place" && mount --bind "$0$place" "$place" || exit
done
mkdir -p /run/gluster
glusterd --no-daemon &
wait  # also for bricks that are killed: to glusterd, one that nobody waits for still runs
"""


class Glusterd(ProcessRunner):
    """Runs commands beside it; ``roots`` are those of its host."""

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(os.environ)
        self.folder, self.pid = folder, pid
        self.roots = Roots.under(folder)

    def run(self, argv: Sequence[str], **limits: Any) -> Completed:
        return super().run(("nsenter", "-t", str(self.pid), "-m", "-n", "-p", "--", *argv), **limits)

    def do(self, *argv: str) -> str:
        """What a command that has to succeed printed."""
        done = self.run(argv, timeout_s=60.0)
        assert done.returncode == 0, done
        return done.stdout.decode()

    def volume(self, *words: str) -> str:
        """``gluster volume`` with these words."""
        return self.do("gluster", "--mode=script", "--log-file=/dev/null", "volume", *words)

    def brick(self, name: str) -> str:
        """A new brick as ``volume create`` wants it."""
        return f"{ADDRESS}:{self.folder / name}"

    def process_of(self, name: str) -> psutil.Process:
        """The process that serves this brick."""
        path = str(self.folder / name)
        (found,) = [
            process for process in psutil.process_iter() if process.name() == "glusterfsd" and path in process.cmdline()
        ]
        return found


@contextmanager
def glusterd(folder: Path) -> Iterator[Glusterd]:
    """Started, and ended with all that it has started."""
    for program in ("glusterd", "gluster", "unshare", "nsenter"):
        need(program)
    with namespace() as network:
        network.ip("address", "add", f"{ADDRESS}/24", "dev", "lo")
        shell = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", _START, folder)
        with subprocess.Popen(["ip", "netns", "exec", network.name, *shell]) as process:
            try:
                eventually((folder / "run" / "glusterd.socket").exists)
                children = psutil.Process(process.pid).children(recursive=True)
                (own,) = [child for child in children if child.name() == "glusterd"]
                host = Glusterd(folder, own.pid)
                # at its first start it sets up geo-replication, a dozen programs of Python
                asks = ("gluster", "--mode=script", "--log-file=/dev/null", "pool", "list")
                eventually(lambda: host.run(asks, timeout_s=10.0).returncode == 0, within_s=120)
                yield host
            finally:
                process.kill()
