"""``plumbline nic --fabric``: the ports of the InfiniBand fabric with errors, and what is at the other end of each."""

import argparse
import os

from rich.console import Console

from plumbline.commands.shared import show
from plumbline.core.console import line, table
from plumbline.core.process import ProcessRunner
from plumbline.core.units import count_text
from plumbline.sources.net.fabric import Fabric, read_fabric


def run(options: argparse.Namespace) -> int:
    fabric = read_fabric(ProcessRunner(os.environ))
    show(options, fabric, lambda console: print_fabric(console, fabric))
    return 0


def print_fabric(console: Console, fabric: Fabric) -> None:
    checked = f"{count_text(fabric.nodes, 'node')}, {count_text(fabric.ports, 'port')}"
    line(
        console, f"{checked}: {count_text(len(fabric.bad), 'port')} with errors since the counters were cleared", "bold"
    )
    rows = [
        (
            port.node,
            str(port.port),
            ", ".join(f"{name} {value}" for name, value in port.counters.items()),
            f"{port.peer} port {port.peer_port}" if port.peer else "unknown",
            port.remark,
        )
        for port in fabric.bad
    ]
    if rows:
        table(console, ("Node", "Port", "Errors", "Other end", "Link"), rows)
        line(console, "what they mean, and how to clear them: the runbook of PlumblineInfinibandErrors")
