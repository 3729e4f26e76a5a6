"""Nodes behind a real sshd on loopback, some honest and some not; each is a port of one sshd with a command of its own.

An honest node is a host name, a configuration and a storage path of its own, in which the real program runs. Of a
hostile one only the sshd is real: a script answers in the place of the program.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .daemon import COMMAND
from .ports import free_ports
from .programs import need

_LISTENING = 15  # an sshd listens on up to 16 ports
_HONEST = """#!/bin/sh
exec unshare --uts --mount sh -c 'hostname {name} && mount --bind {node}/etc {fleet}/etc \\
  && mount --bind {node}/var {fleet}/var && exec sh -c "$SSH_ORIGINAL_COMMAND"'
"""
# A hostile node: `words` is what it was asked, `state` prints a node's state, `good` is a baseline as it was asked for.
_HOSTILE = """#!{python}
import hashlib, json, os, sys, time
words = os.environ["SSH_ORIGINAL_COMMAND"]
out, fleet_class = sys.stdout, {fleet_class!r}
good = ("schema_version: 1\\nsource: measured\\nname: {name}\\nhost: {name}\\nfleet_class: " + fleet_class
        + "\\nrecorded: 2026-11-25T12:00:00+00:00\\nentries:\\n"
        + "- {{workload: icmp-rtt-56, operation: round-trip, device_class: unknown, latency: {{p50: 1ms}}}}\\n")
def state(text=good, **more):
    values = dict(host={name!r}, version="0.1.0", model="box",
                  candidate=dict(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text))
    values.update(more)
    out.write(json.dumps(values))
asked = "state" if "baseline state" in words else "record" if "baseline record" in words else "install"
{script}
"""


@dataclass
class LoopbackFleet:
    folder: Path
    lines: list[str] = field(default_factory=list)

    def run(self, action: str, *words: str | Path, asks: bool = True) -> subprocess.CompletedProcess[str]:
        argv = [*COMMAND, "fleet", action, "--dir", str(self.folder / "fleet"), *map(str, words)]
        if asks:
            argv += [
                "--inventory", str(self.folder / "fleet.txt"), "--ssh-config", str(self.folder / "ssh_config"),
                "--node-command", shlex.join(COMMAND), "--node-config", str(self.folder / "etc/plumbline.yaml"),
                "--node-storage", str(self.folder / "var"),
            ]  # fmt: skip
        return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False, errors="replace")


@contextmanager
def loopback_fleet(folder: Path, honest: Sequence[str], hostile: dict[str, str]) -> Iterator[LoopbackFleet]:
    """``hostile``: name → Python that answers there. Needs root, for the host names of the honest ones."""
    for program in ("sshd", "ssh", "ssh-keygen", "unshare"):
        need(program)
    fleet = LoopbackFleet(folder)
    for name in ("etc", "var"):
        (folder / name).mkdir()
    for key in ("key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    (folder / "ssh_config").write_text(
        f"Host *\n  User root\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
        f"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    with ExitStack() as stack:
        names = [*honest, *hostile]
        for first in range(0, len(names), _LISTENING):
            nodes = {name: _command(fleet, name, hostile.get(name)) for name in names[first : first + _LISTENING]}
            stack.enter_context(_sshd(fleet, nodes, hostile))
        (folder / "fleet.txt").write_text("\n".join(fleet.lines) + "\n")
        yield fleet


@contextmanager
def _sshd(fleet: LoopbackFleet, nodes: dict[str, Path], hostile: dict[str, str]) -> Iterator[None]:
    folder, ports, matches = fleet.folder, list(free_ports(len(nodes))), []
    config = [
        "ListenAddress 127.0.0.1", f"HostKey {folder}/host_key", f"AuthorizedKeysFile {folder}/key.pub",
        "StrictModes no", "UsePAM no", "PidFile none", "PasswordAuthentication no", "PermitRootLogin yes",
        "MaxStartups 200", *(f"Port {port}" for port in ports),
    ]  # fmt: skip
    for port, (name, command) in zip(ports, nodes.items(), strict=True):
        matches += [f"Match LocalPort {port}", f"  ForceCommand {command}"]
        # a hostile node says itself of which model it is
        model = "" if "model=" in hostile.get(name, "") else "model=box "
        fleet.lines.append(f"{name} ansible_host=127.0.0.1 ansible_port={port} {model}role=hdd domain={name}")
    file, log = folder / f"sshd_config.{ports[0]}", folder / f"sshd.{ports[0]}.log"
    file.write_text("\n".join([*config, *matches]) + "\n")
    with subprocess.Popen([need("sshd"), "-D", "-E", log, "-f", file]) as process:
        try:
            _until_listening(process, ports[-1], log)
            yield
        finally:
            process.terminate()


def _command(fleet: LoopbackFleet, name: str, script: str | None) -> Path:
    return _honest(fleet, name) if script is None else _hostile(fleet, name, script)


def _honest(fleet: LoopbackFleet, name: str) -> Path:
    node = fleet.folder / name
    for part in ("etc", "var"):
        (node / part).mkdir(parents=True)
    probe = {
        "type": "rtt", "name": "rtt", "targets": ["127.0.0.1"], "packets": 10, "gap": "10ms",
        "interval": "1h", "max_load_per_cpu": 1000,
    }  # fmt: skip
    (node / "etc/plumbline.yaml").write_text(json.dumps({"probes": [probe]}))
    return _script(node / "node.sh", _HONEST.format(name=name, node=node, fleet=fleet.folder))


def _hostile(fleet: LoopbackFleet, name: str, script: str) -> Path:
    (fleet.folder / name).mkdir()
    text = _HOSTILE.format(python=sys.executable, name=name, fleet_class="box-hdd", script=script)
    return _script(fleet.folder / name / "node.py", text)


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    os.chmod(path, 0o755)  # noqa: PTH101
    return path


def _until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return
