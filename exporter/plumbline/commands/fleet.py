"""``plumbline fleet``: baselines of many nodes from a control host; what each action shows."""

import argparse
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from plumbline.baseline.signature import sign
from plumbline.commands.shared import INTERRUPTED, complain, positive_duration, set_by_signals, show, user_name
from plumbline.config.workloads import load_catalogue
from plumbline.core.console import Step, line, make_console, progress, table
from plumbline.core.units import count_text, duration_text, figure_text
from plumbline.errors import BaselineError, ConfigError, Unavailable
from plumbline.fleet import acceptance, crush
from plumbline.fleet.classes import LEAST_NODES, Beside
from plumbline.fleet.inventory import Host, read_inventory, with_domains
from plumbline.fleet.node import Nodes, NodeState
from plumbline.fleet.push import choose, push
from plumbline.fleet.recording import Progress, Recording, Stopped, Times, ask_all, changed, class_of, due
from plumbline.fleet.ssh import Ssh, words_of
from plumbline.fleet.store import ACCEPTED, RECORDED, Acceptance, Session, Store, Turn
from plumbline.fleet.waves import Limits, Member, waves
from plumbline.report.phrases import listed

NOT_COMPARED = 3
_PAGE_WITHIN_S = 30.0
_ASKING = "asking the nodes"


def run_record(options: argparse.Namespace) -> int:
    store, limits = Store(options.dir), Limits(options.share, options.at_once)
    times = Times(
        node_s=positive_duration(options.node_timeout, "--node-timeout"),
        health_s=positive_duration(options.health_timeout, "--health-timeout"),
    )
    hosts = _hosts(options)
    stopping, console = threading.Event(), make_console()
    nodes = _nodes(options, stopping)
    with set_by_signals(stopping), nullcontext() if options.plan else store.alone(), _drawn(console) as drawn:
        session = None if options.restart else store.session()
        if session is not None and not session.over and not options.plan:
            session = _continued(session, hosts, options)
            sizes = _class_sizes(hosts, session)
        else:
            drawn(Progress(_ASKING))
            session, sizes, why = _planned(store, nodes, hosts, options)
            if options.plan or not session.turns:
                _print_plan(console, session, sizes, limits, why)
                return 0
        recording = Recording(
            store,
            nodes,
            {host.name: host for host in hosts},
            limits,
            times,
            load_catalogue(),
            stopping,
            drawn,
            complain,
        )
        try:
            session = recording.run(session, sizes)
        except Stopped as stopped:
            complain(f"plumbline: {stopped}")
            return INTERRUPTED
    failed = session.named("failed")
    line(console, f"{len(session.named('recorded'))} of {len(session.turns)} nodes recorded: {options.dir / RECORDED}")
    for name in failed:
        line(console, f"failed: {name}: {session.turns[name].error}", "bold red")
    line(console, "next: plumbline fleet review" if not failed else "the next `fleet record` tries them again")
    return 1 if failed else 0


def _continued(session: Session, hosts: Sequence[Host], options: argparse.Namespace) -> Session:
    """The interrupted recording, with the options that it began with."""
    asked = tuple(_record_options(options))
    if options.everything or options.node:
        reason = "an interrupted recording goes on with all of its nodes; leave this out, or say --restart"
        raise ConfigError("--all" if options.everything else "--node", reason)
    if asked and asked != session.options:
        began = " ".join(session.options) or "none"
        reason = f"the interrupted recording began with others ({began}); leave them out, or say --restart"
        raise ConfigError("fleet record", reason, value=" ".join(asked))
    known = {host.name for host in hosts}
    gone = [name for name in session.turns if name not in known]
    done = len(session.named("recorded"))
    complain(f"continuing: {done} of {len(session.turns)} nodes are recorded; --restart plans anew")
    if gone:
        complain(f"no longer in the inventory, left out: {', '.join(gone)}")
    turns = {name: turn for name, turn in session.turns.items() if name in known}
    return Session(started=session.started, options=session.options, turns=turns)


def _planned(
    store: Store, nodes: Nodes, hosts: Sequence[Host], options: argparse.Namespace
) -> tuple[Session, dict[str, int], dict[str, str]]:
    """A new recording: of whom, the size of each class, and why each node."""
    catalogue = load_catalogue()
    found = ask_all(nodes, hosts)
    for name, state in found.items():
        if isinstance(state, str):
            complain(f"left out: {name}: {state}")
    states = {name: state for name, state in found.items() if isinstance(state, NodeState)}
    if not states:
        raise Unavailable("no node answered; try one by hand: ssh NODE plumbline --version")
    kept = {
        name: site for folder in (ACCEPTED, RECORDED) for name, (_, site) in store.loaded(folder, catalogue).items()
    }
    why = due(kept, states, everything=options.everything)
    classes = {host.name: class_of(host, states.get(host.name)) for host in hosts}
    if unknown := set(options.node) - set(classes):
        raise ConfigError("--node", "is not in the inventory", value=", ".join(sorted(unknown)))
    turns = {
        host.name: Turn(fleet_class=classes[host.name], domain=host.domain)
        for host in hosts
        if host.name in why and (not options.node or host.name in options.node)
    }
    session = Session(started=time.time(), options=tuple(_record_options(options)), turns=turns)
    sizes: dict[str, int] = {}
    for name in classes.values():
        sizes[name] = sizes.get(name, 0) + 1
    return session, sizes, why


def _class_sizes(hosts: Sequence[Host], session: Session) -> dict[str, int]:
    """As far as the list says them: nodes that were not due then may not have been asked since."""
    sizes: dict[str, int] = {}
    for host in hosts:
        turn = session.turns.get(host.name)
        name = turn.fleet_class if turn else class_of(host, None)
        sizes[name] = sizes.get(name, 0) + 1
    return sizes


def _record_options(options: argparse.Namespace) -> Iterator[str]:
    for flag, value in (("--runs", options.runs), ("--run-duration", options.run_duration)):
        if value:
            yield from (flag, value)
    for name in options.without:
        yield from ("--without", name)


def _print_plan(
    console: Console, session: Session, sizes: Mapping[str, int], limits: Limits, why: Mapping[str, str]
) -> None:
    if not session.turns:
        line(console, "nothing to record: every node that answered is as it was recorded", "green")
        return
    members = [Member(name, turn.fleet_class, turn.domain) for name, turn in session.turns.items()]
    planned = waves(members, limits, class_sizes=sizes)
    rows = [
        (str(number), member.name, member.fleet_class, member.domain, why[member.name])
        for number, wave in enumerate(planned, 1)
        for member in wave
    ]
    table(console, ("Wave", "Node", "Class", "Domain", "Because"), rows)
    line(console, f"{len(members)} nodes in {len(planned)} waves; nothing was measured")


@contextmanager
def _drawn(console: Console) -> Iterator[Callable[[Progress], None]]:
    """On a terminal one bar for the fleet; in a pipe a line for each step of a node."""

    def step(now: Progress) -> Step:
        left = f"about {duration_text(now.left_s)} left" if now.left_s else ""
        wave = f"wave {now.wave} of {now.waves}, {now.done} of {now.total} nodes recorded" if now.total else ""
        head = f"wave {now.wave} of {now.waves}" if now.wave else now.stage
        more = ", ".join(filter(None, (f"{now.done} of {now.total} nodes" if now.total else "", left, now.stage)))
        text = head if console.is_terminal else now.stage
        return Step(text, now.done / now.total if now.total else None, more=more, line=_piped(now.stage, wave, left))

    lock = threading.Lock()
    with progress(console, "fleet") as drawn:

        def locked(now: Progress) -> None:
            with lock:
                drawn(step(now))

        yield locked


def _piped(stage: str, *more: str) -> str:
    known = "; ".join(filter(None, more))
    return f"{stage} ({known})" if known else stage


def run_review(options: argparse.Namespace) -> int:
    store = Store(options.dir)
    try:
        reviewed = acceptance.review(store, load_catalogue())
    except BaselineError as error:
        complain(f"plumbline: {error}")
        return NOT_COMPARED
    if unknown := set(options.node) - set(reviewed.nodes):
        raise ConfigError("--node", "has no figures here", value=", ".join(sorted(unknown)))
    data = [
        msgspec.structs.asdict(row) | {"outlier": row.outlier, "new": row.node in reviewed.new} for row in reviewed.rows
    ]
    show(options, data, lambda console: _print_review(console, reviewed, options.node))
    if not any(row.limit for row in reviewed.rows):
        return NOT_COMPARED
    return 1 if reviewed.outliers else 0


def _print_review(console: Console, reviewed: acceptance.Reviewed, only: Sequence[str]) -> None:
    heads = ("Class", "Nodes", "Layer", "Workload", "Operation", "Figure", "Median", "MAD", "In line to", "Furthest")
    if only:
        rows = [row for row in reviewed.rows if row.node in only]
        table(console, ("Node", *heads[2:7], "Its own", "Ratio", "In line to"), [_node_row(row) for row in rows])
    else:
        by_figure: dict[tuple[Any, ...], list[Beside]] = {}
        for row in reviewed.rows:
            by_figure.setdefault((row.fleet_class, row.entry.key, row.entry.config_hash, row.figure), []).append(row)
        table(console, heads, [_class_row(rows) for rows in by_figure.values()])
    if any(row.limit is None for row in reviewed.rows):
        line(console, f"not judged where fewer than {LEAST_NODES} nodes have a figure", "yellow")
    for row in reviewed.outliers:
        line(console, f"out of line: {acceptance.words(row)}", "bold red")
    notes: dict[str, list[str]] = {}
    for name in reviewed.new:
        for note in reviewed.nodes[name].file.notes:
            notes.setdefault(note, []).append(name)
    for note, names in notes.items():
        of = names[0] if len(names) == 1 else f"{names[0]} and {count_text(len(names) - 1, 'other')}"
        line(console, f"note of {of}: {note}", "yellow")
    odd = len({row.node for row in reviewed.outliers})
    counted = f"{len(reviewed.new)} to accept, {len(reviewed.nodes) - len(reviewed.new)} accepted before"
    verdict = f"{odd} out of line" if odd else "all in line"
    line(console, f"{counted}; {verdict}", "bold red" if odd else "green")


def _class_row(rows: Sequence[Beside]) -> tuple[str | Text, ...]:
    """One figure of one class; the node that is furthest from the median."""
    far = max(rows, key=lambda row: max(row.ratio, 1 / row.ratio))
    furthest = Text(f"{far.node} ×{far.ratio:.2f}", style="bold red" if far.outlier else "")
    return (far.fleet_class, str(far.nodes), *_what(far), _middle(far), f"±{far.mad_ratio:.1%}", _limit(far), furthest)


def _node_row(row: Beside) -> tuple[str | Text, ...]:
    ratio = Text(f"{row.ratio:.2f}", style="bold red" if row.outlier else "")
    return (row.node, *_what(row), _middle(row), figure_text(row.figure, row.value), ratio, _limit(row))


def _what(row: Beside) -> tuple[str, ...]:
    entry = row.entry
    layer = f"{entry.layer} {entry.device_class}"
    return layer, entry.workload, entry.operation, row.figure.removeprefix("latency.")


def _middle(row: Beside) -> str:
    return figure_text(row.figure, row.middle)


def _limit(row: Beside) -> str:
    return "not judged" if row.limit is None else f"×{row.limit:.2f}"


def run_accept(options: argparse.Namespace) -> int:
    store, catalogue, console = Store(options.dir), load_catalogue(), make_console()
    if not options.key.is_file():
        raise ConfigError("--key", "no such file; make a key: ssh-keygen -t ed25519 -f FILE", value=str(options.key))
    reviewed = acceptance.review(store, catalogue, without=options.without)
    done = acceptance.accept(
        store,
        reviewed,
        catalogue,
        by=options.by or f"{user_name()}@{socket.gethostname()}",
        key=options.key.name,
        sign=lambda text: sign(text, options.key, environment=os.environ),
        although=options.although,
    )
    made = done.acceptance
    for text in made.outliers:
        line(console, f"accepted although out of line: {text}", "yellow")
    for text in done.drifted:
        line(console, text, "yellow")
    line(console, f"accepted by {made.accepted_by}, {made.accepted}: {', '.join(made.now)}", "green")
    line(console, f"classes: {', '.join(made.classes) or 'none'}; next: plumbline fleet push")
    return 0


def run_push(options: argparse.Namespace) -> int:
    console, stopping = make_console(), threading.Event()
    store, hosts = Store(options.dir), _hosts(options)
    accepted = _accepted(store)
    nodes = _nodes(options, stopping)
    with set_by_signals(stopping), progress(make_console(sys.stderr), _ASKING, piped=False):
        placed = push(store, accepted, nodes, hosts, ask_all(nodes, hosts))
    rows = [
        (one.node, one.choice.kind or "none", one.choice.why, Text(one.said, style="bold red" if one.failed else ""))
        for one in placed
    ]
    table(console, ("Node", "Baseline", "Which", "Said"), rows)
    failed = [one.node for one in placed if one.failed]
    counts = f"{len(placed) - len(failed)} of {len(placed)} nodes have one"
    line(console, counts, "bold red" if failed else "green")
    return 1 if failed else 0


def run_status(options: argparse.Namespace) -> int:
    stopping = threading.Event()
    store, hosts = Store(options.dir), _hosts(options)
    nodes, catalogue = _nodes(options, stopping), load_catalogue()
    with set_by_signals(stopping), progress(make_console(sys.stderr), _ASKING, piped=False):
        states = ask_all(nodes, hosts)
    accepted, recorded = store.last_acceptance(), store.loaded(RECORDED, catalogue)
    kept = {name: site for name, (_, site) in (store.loaded(ACCEPTED, catalogue) | recorded).items()}
    found = []
    for host in hosts:
        state = states[host.name]
        row = {"node": host.name, "class": class_of(host, None), "domain": host.domain}
        if isinstance(state, str):
            found.append(row | {"error": state, "own": False})
            continue
        fleet_class = class_of(host, state)
        own = accepted.nodes.get(host.name) if accepted else None
        since = changed(kept.get(host.name), state)
        choice = choose(host.name, fleet_class, state, accepted) if accepted else None
        placed = bool(own and state.measured and state.measured.sha256 == own.sha256)
        found.append(
            row
            | {
                "class": fleet_class,
                "accepted": own.recorded if own else "",
                "waits": host.name in recorded,
                "judges_by": _judges_by(state, placed),
                "changed": [f"{each.part.value}: {each.then} → {each.now}" for each in since or ()],
                "next": choice.why if choice and not choice.there else "",
                "own": placed and not since,
            }
        )
    show(options, found, lambda console: _print_status(console, found, accepted))
    return 0 if all(row["own"] for row in found) else 1


def _judges_by(state: NodeState, placed: bool) -> str:
    """By which baseline the node judges now."""
    if state.measured is not None:
        return "its own" if placed else "its own, not the accepted one"
    return "its class's" if state.fleet_class is not None else "none"


def _print_status(console: Console, found: Sequence[Mapping[str, Any]], accepted: Acceptance | None) -> None:
    rows = []
    for row in found:
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


def _hosts(options: argparse.Namespace) -> tuple[Host, ...]:
    hosts = read_inventory(options.inventory, group=options.group, domain_var=getattr(options, "domain_var", ""))
    url = getattr(options, "racks_from", None)
    if url is None:
        return hosts
    from plumbline.sources.prometheus.access import OPEN, load_access  # noqa: PLC0415

    file = options.racks_http_config_file
    racks = crush.read_racks(url, timeout_s=_PAGE_WITHIN_S, access=load_access(file) if file else OPEN)
    if others := crush.missing(hosts, racks):
        complain(f"not in the CRUSH map, so by the inventory's domain: {listed(others)}")
    return with_domains(hosts, racks)


def _nodes(options: argparse.Namespace, stopping: threading.Event) -> Nodes:
    flags = ("--config.file", options.node_config, "--storage.path", options.node_storage)
    return Nodes(Ssh(command=words_of(options.node_command), flags=flags, config=options.ssh_config), stopping)
