"""``plumbline fleet push`` and ``status``: what the nodes have, and what they get."""

import argparse
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from plumbline.commands.fleet import ASKING, hosts_of, nodes_of
from plumbline.commands.shared import set_by_signals, show
from plumbline.core.console import line, make_console, progress, table
from plumbline.errors import BaselineError
from plumbline.fleet.answers import NodeFault
from plumbline.fleet.node import NodeState
from plumbline.fleet.push import choose, push
from plumbline.fleet.recording import ask_all, change_text, changed, class_of
from plumbline.fleet.store import ACCEPTED, RECORDED, Acceptance, Store


def run_push(options: argparse.Namespace) -> int:
    console, stopping = make_console(), threading.Event()
    store, hosts = Store(options.dir), hosts_of(options)
    accepted = _accepted(store)
    nodes = nodes_of(options, hosts, stopping)
    with set_by_signals(stopping), progress(make_console(sys.stderr), ASKING, piped=False):
        placed = push(store, accepted, nodes, hosts, ask_all(nodes, hosts))
    rows = [
        (
            placement.node,
            placement.choice.kind or "none",
            placement.choice.why,
            Text(placement.message, style="bold red" if placement.failed else ""),
        )
        for placement in placed
    ]
    table(console, ("Node", "Baseline", "Which", "Said"), rows)
    failed = [placement.node for placement in placed if placement.failed]
    counts = f"{len(placed) - len(failed)} of {len(placed)} nodes have one"
    line(console, counts, "bold red" if failed else "green")
    return 1 if failed else 0


def run_status(options: argparse.Namespace) -> int:
    stopping = threading.Event()
    store, hosts = Store(options.dir), hosts_of(options)
    nodes = nodes_of(options, hosts, stopping)
    with set_by_signals(stopping), progress(make_console(sys.stderr), ASKING, piped=False):
        states = ask_all(nodes, hosts)
    accepted, recorded = store.last_acceptance(), store.loaded(RECORDED)
    kept = {name: site for name, (_, site) in (store.loaded(ACCEPTED) | recorded).items()}
    rows = []
    for host in hosts:
        state = states[host.name]
        row = {"node": host.name, "class": class_of(host, None), "domain": host.domain}
        if isinstance(state, NodeFault):
            rows.append(row | {"error": state.reason, "own": False})
            continue
        fleet_class = class_of(host, state)
        own = accepted.nodes.get(host.name) if accepted else None
        since = changed(kept.get(host.name), state)
        choice = choose(host.name, fleet_class, state, accepted) if accepted else None
        placed = bool(own and state.measured and state.measured.sha256 == own.sha256)
        rows.append(
            row
            | {
                "class": fleet_class,
                "accepted": own.recorded if own else "",
                "waits": host.name in recorded,
                "judges_by": _judges_by(state, placed),
                "changed": [change_text(change) for change in since or ()],
                "next": choice.why if choice and not choice.there else "",
                "own": placed and not since,
            }
        )
    show(options, rows, lambda console: _print_status(console, rows, accepted))
    return 0 if all(row["own"] for row in rows) else 1


def _judges_by(state: NodeState, placed: bool) -> str:
    """By which baseline the node judges now."""
    if state.measured is not None:
        return "its own" if placed else "its own, not the accepted one"
    return "its class's" if state.fleet_class is not None else "none"


def _print_status(console: Console, statuses: Sequence[Mapping[str, Any]], accepted: Acceptance | None) -> None:
    rows = []
    for row in statuses:
        remarks = [row["error"]] if "error" in row else [*row["changed"], row["next"]]
        if row.get("waits"):
            remarks.append("recorded, not accepted yet")
        style = "" if row["own"] else "yellow"
        rows.append(
            (
                row["node"],
                row["class"],
                row["domain"],
                row.get("accepted", ""),
                Text(row.get("judges_by", "not reached"), style=style),
                "; ".join(filter(None, remarks)),
            )
        )
    table(console, ("Node", "Class", "Domain", "Recorded and accepted", "Judges by", "Remarks"), rows)
    if accepted is not None:
        line(console, f"last accepted by {accepted.accepted_by}, {accepted.accepted}")
    else:
        line(console, "nothing is accepted yet")


def _accepted(store: Store) -> Acceptance:
    accepted = store.last_acceptance()
    if accepted is None:
        raise BaselineError(str(store.path), "nothing is accepted yet; `plumbline fleet accept` does that")
    return accepted
