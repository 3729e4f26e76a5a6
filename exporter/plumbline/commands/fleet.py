"""``plumbline fleet``: baselines of many nodes from a control host; what each action shows."""

import argparse
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import msgspec
from rich.console import Console
from rich.text import Text

from plumbline.baseline.comparison import NOT_COMPARED
from plumbline.baseline.model import experiment
from plumbline.baseline.signature import sign
from plumbline.commands.shared import INTERRUPTED, complain, positive_duration, set_by_signals, show, user_name
from plumbline.core.console import Step, line, make_console, progress, table
from plumbline.core.grouping import grouped
from plumbline.core.keyfiles import read_anchor
from plumbline.core.units import count_text, duration_text, figure_text
from plumbline.core.words import listed
from plumbline.errors import BaselineError, ConfigError, Unavailable, UnknownName
from plumbline.fleet import acceptance, crush
from plumbline.fleet.answers import NodeFault
from plumbline.fleet.classes import LEAST_NODES, ClassSpread
from plumbline.fleet.inventory import Host, read_inventory, with_domains
from plumbline.fleet.node import Nodes, NodeState
from plumbline.fleet.recording import (
    Progress,
    Recording,
    Stopped,
    Times,
    ask_all,
    check_names,
    class_of,
    due,
    namesakes,
)
from plumbline.fleet.ssh import Ssh, words_of
from plumbline.fleet.store import ACCEPTED, RECORDED, NodeRecording, Session, Store
from plumbline.fleet.waves import Limits, Member, waves

_PAGE_WITHIN_S = 30.0
_MAX_SSH_CONFIG = 1 << 20
ASKING = "asking the nodes"


def run_record(options: argparse.Namespace) -> int:
    store, limits = Store(options.dir), Limits(options.share, options.at_once)
    times = Times(
        node_s=positive_duration(options.node_timeout, "--node-timeout"),
        health_s=positive_duration(options.health_timeout, "--health-timeout"),
    )
    hosts = hosts_of(options)
    stopping, console = threading.Event(), make_console()
    nodes = nodes_of(options, hosts, stopping)
    with set_by_signals(stopping), nullcontext() if options.plan else store.alone(), _drawn(console) as drawn:
        faults: dict[str, NodeFault] = {}
        session = None if options.restart else store.session()
        if session is not None and not session.over and not options.plan:
            session = _continued(session, hosts, options)
            sizes = _class_sizes(hosts, session)
        else:
            drawn(Progress(ASKING))
            session, sizes, why, faults = _planned(store, nodes, hosts, options)
            if options.plan or not session.turns:
                _print_plan(console, session, sizes, limits, why)
                return _print_failed(console, faults)
        recording = Recording(
            store,
            nodes,
            {host.name: host for host in hosts},
            limits,
            times,
            stopping,
            drawn,
            complain,
        )
        try:
            session = recording.run(session, sizes)
        except Stopped as stopped:
            complain(f"plumbline: {stopped}")
            return INTERRUPTED
    line(console, f"{len(session.named('recorded'))} of {len(session.turns)} nodes recorded: {options.dir / RECORDED}")
    faults |= {name: NodeFault(session.turns[name].error) for name in session.named("failed")}
    failed = _print_failed(console, faults)
    line(console, "next: plumbline fleet review" if not failed else "the next `fleet record` tries them again")
    return failed


def _print_failed(console: Console, faults: Mapping[str, NodeFault]) -> int:
    """The rows of the nodes that the others went on without; returns the exit code."""
    for name, fault in faults.items():
        line(console, f"failed: {name}: {fault.reason}", "bold red")
    return 1 if faults else 0


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
) -> tuple[Session, dict[str, int], dict[str, str], dict[str, NodeFault]]:
    """A new recording: of whom, the size of each class, why each node, and which nodes it goes on without."""
    answers = ask_all(nodes, hosts)
    states = {name: state for name, state in answers.items() if isinstance(state, NodeState)}
    faults = {name: state for name, state in answers.items() if isinstance(state, NodeFault)}
    for name, fault in faults.items():
        complain(f"left out: {name}: {fault.reason}")
    for text in namesakes(answers):
        complain(f"plumbline: {text}")
    if not states:
        raise Unavailable("no node answered; try one by hand: ssh NODE plumbline --version")
    kept = {name: site for folder in (ACCEPTED, RECORDED) for name, (_, site) in store.loaded(folder).items()}
    why = due(kept, states, everything=options.everything)
    classes = {host.name: class_of(host, states.get(host.name)) for host in hosts}
    if unknown := set(options.node) - set(classes):
        raise UnknownName(f"--node = {', '.join(sorted(unknown))!r}: is not in the inventory")
    turns = {
        host.name: NodeRecording(fleet_class=classes[host.name], domain=host.domain)
        for host in hosts
        if host.name in why and (not options.node or host.name in options.node)
    }
    session = Session(started=time.time(), options=tuple(_record_options(options)), turns=turns)
    return (
        session,
        Counter(classes.values()),
        why,
        {name: faults[name] for name in faults if not options.node or name in options.node},
    )


def _class_sizes(hosts: Sequence[Host], session: Session) -> dict[str, int]:
    """As far as the list says them: nodes that were not due then may not have been asked since."""
    turns = session.turns
    return Counter(turns[host.name].fleet_class if host.name in turns else class_of(host, None) for host in hosts)


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
        reviewed = acceptance.review(store)
    except BaselineError as error:
        complain(f"plumbline: {error}")
        return NOT_COMPARED
    if unknown := set(options.node) - {*reviewed.nodes, *reviewed.faults}:
        raise UnknownName(f"--node = {', '.join(sorted(unknown))!r}: has no figures here")
    data = [
        msgspec.structs.asdict(row) | {"outlier": row.outlier, "new": row.node in reviewed.new} for row in reviewed.rows
    ]
    data += [
        {"node": name, "error": fault.reason, "outlier": False, "new": False} for name, fault in reviewed.faults.items()
    ]
    show(options, data, lambda console: _print_review(console, reviewed, options.node))
    if reviewed.outliers or reviewed.faults:
        return 1
    return 0 if any(row.limit for row in reviewed.rows) else NOT_COMPARED


def _print_review(console: Console, reviewed: acceptance.Reviewed, only: Sequence[str]) -> None:
    heads = ("Class", "Nodes", "Layer", "Workload", "Operation", "Figure", "Median", "MAD", "In line to", "Furthest")
    if only:
        rows = [row for row in reviewed.rows if row.node in only]
        table(console, ("Node", *heads[2:7], "Its own", "Ratio", "In line to"), [_node_row(row) for row in rows])
    else:
        by_figure = grouped(reviewed.rows, lambda row: (row.fleet_class, experiment(row.entry), row.figure))
        table(console, heads, [_class_row(rows) for rows in by_figure.values()])
    if any(row.limit is None for row in reviewed.rows):
        line(console, f"not judged where fewer than {LEAST_NODES} nodes have a figure", "yellow")
    _print_failed(console, reviewed.faults)
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


def _class_row(rows: Sequence[ClassSpread]) -> tuple[str | Text, ...]:
    """One figure of one class; the node that is furthest from the median."""
    far = max(rows, key=lambda row: max(row.ratio, 1 / row.ratio))
    furthest = Text(f"{far.node} ×{far.ratio:.2f}", style="bold red" if far.outlier else "")
    return (far.fleet_class, str(far.nodes), *_what(far), _middle(far), f"±{far.mad_ratio:.1%}", _limit(far), furthest)


def _node_row(row: ClassSpread) -> tuple[str | Text, ...]:
    ratio = Text(f"{row.ratio:.2f}", style="bold red" if row.outlier else "")
    return (row.node, *_what(row), _middle(row), figure_text(row.figure, row.value), ratio, _limit(row))


def _what(row: ClassSpread) -> tuple[str, ...]:
    entry = row.entry
    layer = f"{entry.layer} {entry.device_class}"
    return layer, entry.workload, entry.operation, row.figure.removeprefix("latency.")


def _middle(row: ClassSpread) -> str:
    return figure_text(row.figure, row.middle)


def _limit(row: ClassSpread) -> str:
    return "not judged" if row.limit is None else f"×{row.limit:.2f}"


def run_accept(options: argparse.Namespace) -> int:
    store, console = Store(options.dir), make_console()
    if not options.key.is_file():
        raise ConfigError("--key", "no such file; make a key: ssh-keygen -t ed25519 -f FILE", value=str(options.key))
    with store.alone("accept"):
        reviewed = acceptance.review(store, without=options.without)
        for name, fault in reviewed.faults.items():
            complain(f"left out: {name}: {fault.reason}")
        done = acceptance.accept(
            store,
            reviewed,
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


def hosts_of(options: argparse.Namespace) -> tuple[Host, ...]:
    hosts = read_inventory(options.inventory, group=options.group, domain_var=getattr(options, "domain_var", ""))
    check_names(hosts)
    url = getattr(options, "racks_from", None)
    if url is None:
        return hosts
    from plumbline.sources.prometheus.access import load_access  # noqa: PLC0415

    racks = crush.read_racks(url, timeout_s=_PAGE_WITHIN_S, access=load_access(options.racks_http_config_file))
    if others := crush.missing(hosts, racks):
        complain(f"not in the CRUSH map, so by the inventory's domain: {listed(others)}")
    return with_domains(hosts, racks)


def nodes_of(options: argparse.Namespace, hosts: Sequence[Host], stopping: threading.Event) -> Nodes:
    flags = ("--config.file", options.node_config, "--storage.path", options.node_storage)
    if options.ssh_config is not None:
        try:
            read_anchor(options.ssh_config, _MAX_SSH_CONFIG)
        except OSError as error:
            raise ConfigError(
                "--ssh-config", f"can't be used: {error.strerror}", value=str(options.ssh_config)
            ) from None
    ssh = Ssh(command=words_of(options.node_command), flags=flags, config=options.ssh_config)
    return Nodes(ssh, stopping, frozenset(host.name for host in hosts))
