"""A fleet of real nodes on one machine: each a namespace with its own host name, network, files and sshd.

Each node measures round trips over a wire of its own (:mod:`.wire`), whose delay the test chooses: a node with another
delay than its like is slow. ssh reaches the nodes from the namespace of the control host, over a switch.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .daemon import COMMAND, Daemon, running
from .netns import Namespace, namespace
from .programs import need
from .wire import DEVICE, wire

PEER = "10.78.0.2"
PACKETS, GAP_S = 25, 0.02


@dataclass
class SshNode:
    """``folder`` is its ``etc`` and ``var``; inside the node they are the fleet's paths, the same on every node."""

    name: str
    number: int
    delay_s: float
    domain: str
    folder: Path
    ns: Namespace
    pid: int

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def storage(self) -> Path:
        return self.folder / "var"

    @property
    def inside(self) -> list[str]:
        """A command that runs another one in all of the node's namespaces."""
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "-u", "--"]

    def run(self, *argv: str) -> str:
        done = subprocess.run([*self.inside, *argv], capture_output=True, text=True, check=True)
        return done.stdout


@dataclass
class SshFleet:
    folder: Path
    control: Namespace
    nodes: dict[str, SshNode] = field(default_factory=dict)

    @property
    def inventory(self) -> Path:
        return self.folder / "fleet.txt"

    def write_inventory(self, names: Sequence[str] | None = None) -> None:
        lines = [
            f"{node.name} ansible_host={node.address} role=hdd model=box domain={node.domain}"
            for name, node in self.nodes.items()
            if names is None or name in names
        ]
        self.inventory.write_text("# the test's fleet\n" + "\n".join(lines) + "\n")

    def argv(self, *words: str | Path) -> list[str]:
        """``plumbline fleet …`` on the control host."""
        return ["ip", "netns", "exec", self.control.name, *COMMAND, "fleet", *map(str, words)]

    def on_nodes(self) -> list[str]:
        """The flags of the actions that ask nodes."""
        return [
            "--inventory", str(self.inventory), "--ssh-config", str(self.folder / "ssh_config"),
            "--node-command", shlex.join(COMMAND), "--node-config", str(self.folder / "etc/plumbline.yaml"),
            "--node-storage", str(self.folder / "var"),
        ]  # fmt: skip

    def run(self, action: str, *words: str | Path, asks: bool = False) -> subprocess.CompletedProcess[str]:
        argv = self.argv(action, "--dir", self.folder / "fleet", *words, *(self.on_nodes() if asks else []))
        return subprocess.run(argv, capture_output=True, text=True, timeout=400, check=False)

    @contextmanager
    def daemon(self, name: str) -> Iterator[Daemon]:
        """The node's daemon, inside the node; its page is on a loopback of its own: ask through ``node.run``."""
        node = self.nodes[name]
        flags = ("--config.file", self.folder / "etc/plumbline.yaml", "--storage.path", self.folder / "var")
        with running(node.folder / "daemon", *flags, prefix=node.inside, whole=False) as daemon:
            yield daemon

    def page(self, name: str, daemon: Daemon, path: str = "/metrics?profile=full") -> str:
        script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read().decode())"
        return self.nodes[name].run(sys.executable, "-c", script, f"{daemon.url}{path}")


@contextmanager
def ssh_fleet(folder: Path, delays: Mapping[str, float], domains: Mapping[str, str]) -> Iterator[SshFleet]:
    """Nodes by name → the delay of their wire in seconds, one way; and their failure domains."""
    for program in ("sshd", "ssh", "ssh-keygen", "nsenter", "unshare", "ip"):
        need(program)
    for name in ("etc", "var"):
        (folder / name).mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host_key"], check=True)
    (folder / "ssh_config").write_text(
        f"Host *\n  User root\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
        f"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    with ExitStack() as stack:
        control = stack.enter_context(namespace())
        control.ip("link", "add", "switch", "type", "bridge")
        control.ip("addr", "add", "10.77.0.254/24", "dev", "switch")
        control.ip("link", "set", "switch", "up")
        fleet = SshFleet(folder, control)
        for number, (name, delay_s) in enumerate(delays.items(), 1):
            fleet.nodes[name] = _node(stack, fleet, name, number, delay_s, domains[name])
        fleet.write_inventory()
        yield fleet


def _node(stack: ExitStack, fleet: SshFleet, name: str, number: int, delay_s: float, domain: str) -> SshNode:
    ns, peer = stack.enter_context(namespace()), stack.enter_context(namespace())
    port = f"port{number}"
    fleet.control.ip("link", "add", port, "type", "veth", "peer", "name", "lan0", "netns", ns.name)
    fleet.control.ip("link", "set", port, "master", "switch", "up")
    ns.ip("addr", "add", f"10.77.0.{number}/24", "dev", "lan0")
    ns.ip("link", "set", "lan0", "up")
    stack.enter_context(wire(ns, peer, delay_s=delay_s))
    for end, address in ((ns, "10.78.0.1/24"), (peer, f"{PEER}/24")):
        end.ip("addr", "add", address, "dev", DEVICE)
        end.ip("link", "set", DEVICE, "up")
    folder = fleet.folder / name
    for part in ("etc", "var", "daemon"):
        (folder / part).mkdir(parents=True)
    write_node_config(folder)
    (folder / "sshd_config").write_text(
        f"ListenAddress 10.77.0.{number}\nHostKey {fleet.folder}/host_key\nAuthorizedKeysFile {fleet.folder}/key.pub\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 50\n"
    )
    sshd = need("sshd")
    script = (
        f"hostname {name} && mount --bind {folder}/etc {fleet.folder}/etc"
        f" && mount --bind {folder}/var {fleet.folder}/var"
        f" && exec {sshd} -D -E {folder}/sshd.log -f {folder}/sshd_config"
    )
    argv = ["ip", "netns", "exec", ns.name, "unshare", "--uts", "--mount", "sh", "-c", script]
    process = subprocess.Popen(argv)
    stack.callback(_end, process)
    _until_listening(ns, number)
    return SshNode(name, number, delay_s, domain, folder, ns, process.pid)


def write_node_config(folder: Path, **baseline: object) -> None:
    """Round trips over the node's wire; ``baseline``: that part of the configuration."""
    probe = {
        "type": "rtt", "name": "rtt", "targets": [PEER], "packets": PACKETS, "gap": f"{GAP_S * 1000:g}ms",
        "interval": "1h", "max_load_per_cpu": 1000,
    }  # fmt: skip
    (folder / "etc/plumbline.yaml").write_text(json.dumps({"probes": [probe], "baseline": baseline}))


def _until_listening(ns: Namespace, number: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        found = subprocess.run(
            ["ip", "netns", "exec", ns.name, sys.executable, "-c", _LOOK, f"10.77.0.{number}"],
            check=False,
            capture_output=True,
        )
        if found.returncode == 0:
            return
        assert time.monotonic() < deadline, f"sshd of node {number} does not listen"
        time.sleep(0.1)


_LOOK = "import socket, sys; socket.create_connection((sys.argv[1], 22), timeout=2)"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
