"""Lines of runbooks run as on a node: with which variables, what the examples mean here, and what is a mistake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .daemon import Daemon
from .runbooks import programs

MISTAKE = re.compile(
    r"(invalid|unrecognized|unknown|illegal|unexpected) (option|subcommand|command|column|operator|predicate|user)"
    r"|(unrecognized|unknown|unexpected) arguments?"
    r"|usage:|syntax error|bad flag|no such option|command not found|missing operand|unbound variable|parse error"
    r"|conversion .* unknown|unrecogni[sz]ed option|invalid choice|Unmatched|is unknown, try",
    re.IGNORECASE,
)
OWN = {"for", "done", "cat", "ls", "plumbline", "ceph_daemon"}
"""Words of the shell and names that the tests give a meaning."""
STOPS_S = 6
"""Commands that watch (``iostat 1 60``) are ended after this long: by then they have understood their options."""


@dataclass(frozen=True)
class Node:
    """Where lines are run: what stands before each, and which text of the pages means what here."""

    prelude: str
    here: Mapping[str, str]
    environment: Mapping[str, str]
    inside: tuple[str, ...] = ()
    """A command that runs it elsewhere."""

    def run(self, line: str, known: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        values = {name: self.value(name, value) for name, value in known.items()}
        script = self.prelude + "".join(f"{name}={value}\n" for name, value in values.items()) + line
        for text, meant in self.here.items():
            script = script.replace(text, meant)
        # a `timeout` of the line's own would be a process group of its own, which the one here does not end
        script = re.sub(r"\btimeout \d+ ", "", script)
        argv = ["timeout", "--kill-after=2", str(STOPS_S), *self.inside, "bash", "-uc", script]
        return subprocess.run(
            argv, capture_output=True, text=True, errors="replace", env=dict(self.environment), check=False, timeout=60
        )

    def value(self, name: str, example: str) -> str:
        """A network card where the page has one, a disk where it has one; ``inside`` has what the examples say."""
        if self.inside:
            return "none" if example.startswith("$(") else example
        if name in ("DEVICE", "SLAVE") and re.match(r"en|bond", example):
            return min((path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo"), default="lo")
        if name in ("DEVICE", "DISK"):
            return min(path.name for path in Path("/sys/block").iterdir())
        return example


def shim(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def path_of(shims: Path) -> str:
    return f"{shims}:{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"


def prelude_of(folder: Path, daemon: Daemon) -> str:
    """What setup.md sets, for a daemon that no service manager runs and nobody restarts."""
    return (
        f"PLUMBLINE=plumbline PLUMBLINE_AS_DAEMON=plumbline PLUMBLINE_LOG='cat {folder}/log'\n"
        f"PLUMBLINE_FLAGS='--config.file {folder}/plumbline.yaml --storage.path {folder}'\n"
        "PROMETHEUS=http://localhost:9090\n"
        f"PLUMBLINE_STATE={folder} PLUMBLINE_STATUS='kill -0 {daemon.pid}'\n"
        f"PLUMBLINE_RELOAD='kill -0 {daemon.pid}' PLUMBLINE_RESTART='kill -0 {daemon.pid}'\n"
    )


def meanings(folder: Path, address: str, prometheus_url: str) -> dict[str, str]:
    return {
        "stor01.example:10047": address,
        "http://localhost:10047": f"http://{address}",
        "prom.example:9090": urlsplit(prometheus_url).netloc,
        "http://localhost:9090": prometheus_url,
        "192.0.2.12": "127.0.0.1",
        "stor01.example": "127.0.0.1",
        "/etc/plumbline": str(folder),
        "/var/tmp/by-hand": f"{folder}/by-hand",
        "--size=64M": "--size=1M",
        "--runtime=10 ": "--runtime=1 ",
    }


NOT_HERE = {
    "iscsiadm": "comes with a daemon",
    "mdadm": "comes with a daemon; arrays are looked at in the lab",
    "multipath": "comes with a daemon",
    "multipathd": "comes with a daemon",
    "nfsiostat": "comes with daemons of NFS",
    "nfsstat": "comes with daemons of NFS",
    "zpool": "needs a kernel module that Debian does not build",
}
"""Programs of runbooks that no test starts, and why."""


def missing(line: str) -> set[str]:
    """Programs that a line needs and this machine lacks."""
    return {name for name in programs(line) - OWN if shutil.which(name) is None}


def bad(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode in (126, 127) or MISTAKE.search(done.stderr) is not None
