"""Records the nodes that need it, wave after wave, and keeps each step, so that an interruption costs no node.

A node needs a recording if none is kept here, or if it is no longer what was recorded (its fingerprint changed). Before
each wave all of its nodes are asked whether their cluster is fit. A node that says no comes after all others, and is
asked again until it is fit or its time is up: if the cluster really is not fit, all of its nodes say so.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from plumbline.baseline.fingerprint import Change, changes
from plumbline.baseline.site import LoadedSite
from plumbline.core.answers import in_turn
from plumbline.core.grouping import grouped
from plumbline.errors import BaselineError, ConfigError, PlumblineError, Unavailable
from plumbline.fleet.answers import MODEL_BYTES, NAME_BYTES, NodeFault, checked_site, from_node, is_file_name, short
from plumbline.fleet.inventory import Host
from plumbline.fleet.node import Nodes, NodeState
from plumbline.fleet.store import RECORDED, YAML, Session, Store, sha256
from plumbline.fleet.waves import Limits, Member, waves

_RUN = ", run "  # in a line of `baseline record` about its progress
_CONNECTIONS = 16  # that ask states, or put files in place, at the same time


class Times(msgspec.Struct, frozen=True):
    """How long to wait, in seconds: for one node, for a node's cluster to become fit, for what an interrupted recording
    left measuring, and between two looks."""

    node_s: float = 4 * 3600.0
    health_s: float = 3600.0
    interrupted_s: float = 600.0
    look_again_s: float = 15.0


class Progress(msgspec.Struct, frozen=True):
    """``stage``: what happens now; ``left_s``: ``None`` before the first wave is over."""

    stage: str
    done: int = 0
    total: int = 0
    wave: int = 0
    waves: int = 0
    left_s: float | None = None


class Stopped(PlumblineError):
    """Stopped on request; the next recording of the fleet goes on."""


def ask_all(nodes: Nodes, hosts: Sequence[Host]) -> dict[str, NodeState | NodeFault]:
    """Each node's state, or why it gave none."""

    def ask(host: Host) -> NodeState | NodeFault:
        return from_node(lambda: nodes.state(host))

    answers = in_turn(hosts, ask, _CONNECTIONS, what="fleet question")
    return dict(zip((host.name for host in hosts), answers, strict=True))


def namesakes(states: Mapping[str, NodeState | NodeFault]) -> list[str]:
    """A line for each name that several nodes call themselves by: they may be one node."""
    own_names = {name: state.host for name, state in states.items() if isinstance(state, NodeState)}
    return [
        f"{' and '.join(same)} call themselves {short(own)}; if they are one node, keep one in the list"
        for own, same in grouped(own_names, own_names.__getitem__).items()
        if len(same) > 1
    ]


def class_of(host: Host, state: NodeState | None) -> str:
    """Model and role: as the list says, or the node itself; safe as a file's name."""
    name = host.fleet_class or "-".join(filter(None, (host.model or (state.model if state else ""), host.role)))
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name).strip(".-") or "node"


def check_names(hosts: Sequence[Host]) -> None:
    """Refuse a list whose names are too long for files. Raises :class:`ConfigError`."""
    for host in hosts:
        if not is_file_name(host.name):
            raise ConfigError(
                host.name, f"is longer than {NAME_BYTES} characters, and names files; give it a short one"
            )
        if len(class_of(host, None).encode()) > (most := NAME_BYTES - MODEL_BYTES):
            raise ConfigError(host.name, f"its class, or role, is longer than {most} bytes, and names a file")


def changed(then: LoadedSite | None, state: NodeState) -> tuple[Change, ...] | None:
    """What of the node changed since it was recorded; ``None`` if it was not recorded."""
    if then is None or then.file.fingerprint is None:
        return None
    return changes(then.file.fingerprint, state.fingerprint)


def change_text(change: Change) -> str:
    """``kernel: 6.1.0 → 6.12.48``"""
    return short(f"{change.part.value}: {change.then} → {change.now}")


def due(kept: Mapping[str, LoadedSite], states: Mapping[str, NodeState], *, everything: bool) -> dict[str, str]:
    """Node → why it is recorded: of those that need it, or of all."""
    hosts_due = {}
    for name, state in states.items():
        since = changed(kept.get(name), state)
        if since is None:
            hosts_due[name] = "not recorded yet"
        elif since:
            hosts_due[name] = "; ".join(map(change_text, since))
        elif everything:
            hosts_due[name] = "on request"
    return hosts_due


@dataclass(slots=True)
class Recording:
    """One run of ``plumbline fleet record``. ``say`` gets a line for people; the session is kept after each change."""

    store: Store
    nodes: Nodes
    hosts: Mapping[str, Host]
    limits: Limits
    times: Times
    stopping: threading.Event
    progress: Callable[[Progress], None]
    say: Callable[[str], None]
    session: Session = field(init=False)
    # Node that was not fit when its wave began → since when (monotonic), and why
    _unfit: dict[str, tuple[float, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, session: Session, class_sizes: Mapping[str, int]) -> Session:
        """Measure all that is left of ``session``; a node that can't be measured is ``failed``, with the reason. Raises
        :class:`Stopped`."""
        self.session = session
        self._keep()
        self._wait_for_interrupted()
        planned = self._planned(class_sizes)
        while planned:
            measured = [self._wave(number, planned) for number in range(len(planned))]
            planned = self._waves(self._unfit, class_sizes)
            if planned and not any(measured):
                self._wait()
        return self.session

    def _planned(self, class_sizes: Mapping[str, int]) -> list[tuple[Member, ...]]:
        """First those that an interruption may have left measuring. Last those that failed before: a broken node keeps
        no other from its turn."""
        return [
            wave
            for status in ("running", "due", "failed")
            for wave in self._waves(self.session.named(status), class_sizes)
        ]

    def _waves(self, names: Iterable[str], class_sizes: Mapping[str, int]) -> list[tuple[Member, ...]]:
        turns = self.session.turns
        members = [Member(name, turns[name].fleet_class, turns[name].domain) for name in names]
        return list(waves(members, self.limits, class_sizes=class_sizes))

    def _wait_for_interrupted(self) -> None:
        """Wait while a node that an interruption left measuring says that it still does: nothing else may run beside
        it. A run ends sooner than this wait."""
        deadline, before = time.monotonic() + self.times.interrupted_s, list[str]()
        while (names := self._still_recording()) and time.monotonic() < deadline:
            if names != before:
                self.say(f"waiting: {', '.join(names)}: a recording is still under way there")
                before = names
            self._wait()

    def _still_recording(self) -> list[str]:
        states = ask_all(self.nodes, [self.hosts[name] for name in self.session.named("running")])
        return [name for name, state in states.items() if isinstance(state, NodeState) and state.recording]

    def _wave(self, number: int, planned: Sequence[Sequence[Member]]) -> bool:
        """Measure the nodes of a wave that are fit; whether there was any."""
        at = Progress("", wave=number + 1, waves=len(planned))
        names = self._fit([member.name for member in planned[number]], at)
        if names:
            self._measure(names, at, planned[number:])
        return bool(names)

    def _fit(self, names: Sequence[str], at: Progress) -> list[str]:
        """The nodes of which nothing speaks against a measurement; the others fail, or are asked again later."""
        fit = []
        for name, state in ask_all(self.nodes, [self.hosts[name] for name in names]).items():
            if self.stopping.is_set():
                raise self._stopped()
            if isinstance(state, NodeFault):
                self._failed(name, state, anew=self.session.turns[name].anew)
            elif why := _not_fit(state):
                self._postpone(name, why, at)
            else:
                self._unfit.pop(name, None)
                fit.append(name)
        return fit

    def _postpone(self, name: str, why: str, at: Progress) -> None:
        since, before = self._unfit.get(name, (time.monotonic(), ""))
        if time.monotonic() - since >= self.times.health_s:
            self._failed(name, NodeFault(why), anew=self.session.turns[name].anew)
            return
        self._unfit[name] = since, why
        if why != before:
            self.say(f"waiting: {name}: {why}")
        self._show(at, f"waiting: {name}: {why}")

    def _failed(self, name: str, fault: NodeFault, *, anew: bool) -> None:
        self._unfit.pop(name, None)
        self._turn(name, status="failed", error=fault.reason, anew=anew)
        self.say(f"failed: {name}: {fault.reason}")

    def _wait(self) -> None:
        if self.stopping.wait(self.times.look_again_s):
            raise self._stopped()

    def _measure(self, names: Sequence[str], at: Progress, left: Sequence[Sequence[Member]]) -> None:
        anew = {name for name in names if self.session.turns[name].anew}
        for name in names:
            self._turn(name, status="running", error="", anew=False)
        self._show(at, f"measuring {', '.join(names)}", left)
        for _ in in_turn(
            names,
            lambda name: self._measure_one(name, at, left, anew=name in anew),
            len(names),
            what="fleet recording",
        ):
            pass
        if self.stopping.is_set():
            raise self._stopped()

    def _measure_one(self, name: str, at: Progress, left: Sequence[Sequence[Member]], *, anew: bool) -> None:
        """``anew``: without the runs that an earlier recording kept, which were refused."""
        began = time.monotonic()
        text = from_node(lambda: self._recorded(name, at, left, anew=anew))
        if isinstance(text, NodeFault):
            if not self.stopping.is_set():  # else it stays `running`: it may still measure there
                self._failed(name, text, anew=text.refused)
            return
        self.store.write(RECORDED, name + YAML, text)
        self._turn(name, status="recorded", seconds=time.monotonic() - began, finished=time.time())
        self._show(at, f"{name}: recorded", left)

    def _recorded(self, name: str, at: Progress, left: Sequence[Sequence[Member]], *, anew: bool) -> str:
        """Record a node; the text of what it recorded, whole and as asked for."""
        fleet_class = self.session.turns[name].fleet_class
        self.nodes.record(
            self.hosts[name],
            [*self.session.options, "--class", fleet_class, *(["--restart"] if anew else [])],
            timeout_s=self.times.node_s,
            on_line=lambda line: self._show(at, f"{name}: {short(line)}", left) if _RUN in line else None,
        )
        state = self.nodes.state(self.hosts[name], text=True)
        candidate = state.candidate
        if candidate is None or sha256(candidate.text) != candidate.sha256:
            raise Unavailable("recorded, but the file is not there as it was written")
        file = checked_site(candidate.text, where=name, host=state.host).file
        if (file.source, file.fleet_class) != ("measured", fleet_class):  # it would count in another class
            actual = f"{file.source} {file.fleet_class}".strip()
            raise BaselineError(name, f"gave a baseline other than asked for (measured {fleet_class})", value=actual)
        return candidate.text

    def _turn(self, name: str, **changed: object) -> None:
        with self._lock:
            turn = msgspec.structs.replace(self.session.turns[name], **changed)
            self.session = msgspec.structs.replace(self.session, turns={**self.session.turns, name: turn})
            self.store.keep_session(self.session)

    def _keep(self) -> None:
        with self._lock:
            self.store.keep_session(self.session)

    def _show(self, at: Progress, stage: str, left: Sequence[Sequence[Member]] = ()) -> None:
        turns = self.session.turns.values()
        took = [turn.seconds for turn in turns if turn.status == "recorded" and turn.seconds]
        remaining = sum(1 for wave in left if any(self._open(member.name) for member in wave))
        done = sum(turn.status == "recorded" for turn in turns)
        left_s = median(took) * remaining if took and remaining else None
        self.progress(Progress(stage, done, len(turns), at.wave, at.waves, left_s))

    def _open(self, name: str) -> bool:
        return self.session.turns[name].status in {"due", "running"}

    def _stopped(self) -> Stopped:
        done, total = len(self.session.named("recorded")), len(self.session.turns)
        return Stopped(f"stopped; {done} of {total} nodes are recorded, the next `fleet record` goes on")


def _not_fit(state: NodeState) -> str:
    """Why a node must not be measured now; empty if nothing speaks against it."""
    if state.unreachable:
        return f"its cluster is not reached: {short(state.unreachable)}"
    if state.closed:
        return f"its cluster is not fit: {short('; '.join(state.closed.values()))}"
    return "a recording is still under way there" if state.recording else ""
