"""Records the nodes that need it, wave after wave, and keeps each step, so that an interruption costs no node.

A node needs a recording if none is kept here, or if it is no longer what was recorded (its fingerprint changed). Before
each wave all of its nodes are asked whether their cluster is fit; the wave begins when none says no.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from plumbline.baseline.fingerprint import Change, changes
from plumbline.baseline.site import LoadedSite, parse_site
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.core.answers import in_turn
from plumbline.errors import BaselineError, ConfigError, PlumblineError, Unavailable
from plumbline.fleet.inventory import Host
from plumbline.fleet.node import Nodes, NodeState, Refused
from plumbline.fleet.store import RECORDED, YAML, Session, Store, sha256
from plumbline.fleet.waves import Limits, Member, waves

_RUN = ", run "  # in a line of `baseline record` about its progress
_CONNECTIONS = 16  # that ask states, or put files in place, at the same time


class Times(msgspec.Struct, frozen=True):
    """How long to wait, in seconds: for one node, for a healthy cluster in all and between two looks."""

    node_s: float = 4 * 3600.0
    health_s: float = 3600.0
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


def ask_all(nodes: Nodes, hosts: Sequence[Host], *, text: bool = False) -> dict[str, NodeState | str]:
    """Each node's state, or why it gave none. Raises :class:`ConfigError` if two names are one node: it would be
    measured twice at once."""

    def ask(host: Host) -> NodeState | str:
        try:
            return nodes.state(host, text=text)
        except Unavailable as error:
            return str(error)

    asked = in_turn(hosts, ask, _CONNECTIONS, what="fleet question")
    found = dict(zip((host.name for host in hosts), asked, strict=True))
    called = Counter(state.host for state in found.values() if isinstance(state, NodeState))
    for own, times in called.items():
        if times > 1:
            names = [name for name, state in found.items() if isinstance(state, NodeState) and state.host == own]
            raise ConfigError(" and ".join(names), f"are one node: each calls itself {own}; keep one in the list")
    return found


def class_of(host: Host, state: NodeState | None) -> str:
    """Model and role: as the list says, or the node itself; safe as a file's name."""
    name = host.fleet_class or "-".join(filter(None, (host.model or (state.model if state else ""), host.role)))
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name).strip(".-") or "node"


def changed(then: LoadedSite | None, state: NodeState) -> tuple[Change, ...] | None:
    """What of the node changed since it was recorded; ``None`` if it was not recorded."""
    if then is None or then.file.fingerprint is None:
        return None
    return changes(then.file.fingerprint, state.fingerprint)


def due(kept: Mapping[str, LoadedSite], states: Mapping[str, NodeState], *, everything: bool) -> dict[str, str]:
    """Node → why it is recorded: of those that need it, or of all."""
    found = {}
    for name, state in states.items():
        since = changed(kept.get(name), state)
        if since is None:
            found[name] = "not recorded yet"
        elif since:
            found[name] = "; ".join(f"{each.part.value}: {each.then} → {each.now}" for each in since)
        elif everything:
            found[name] = "on request"
    return found


@dataclass(slots=True)
class Recording:
    """One run of ``plumbline fleet record``. ``say`` gets a line for people; the session is kept after each change."""

    store: Store
    nodes: Nodes
    hosts: Mapping[str, Host]
    limits: Limits
    times: Times
    catalogue: WorkloadCatalogue
    stopping: threading.Event
    progress: Callable[[Progress], None]
    say: Callable[[str], None]
    session: Session = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, session: Session, class_sizes: Mapping[str, int]) -> Session:
        """Measure all that is left of ``session``; raises :class:`Stopped`, and :class:`Unavailable` where no node of
        a wave could be measured, or the cluster is not fit for too long."""
        self.session = session
        self._keep()
        planned = self._planned(class_sizes)
        for number, wave in enumerate(planned, 1):
            at = Progress("", wave=number, waves=len(planned))
            names = [member.name for member in wave]
            self._wait_for_health(names, at)
            self._measure(names, at, planned[number - 1 :])
            if not any(self.session.turns[name].status == "recorded" for name in names):
                raise Unavailable(
                    f"no node of the wave could be measured ({', '.join(names)}); the next `fleet record` goes on"
                )
        return self.session

    def _planned(self, class_sizes: Mapping[str, int]) -> list[tuple[Member, ...]]:
        """First those that an interruption may have left measuring: nothing else may run beside them. Last those that
        failed before: a node that is broken keeps no other from its turn."""
        turns = self.session.turns

        def members(names: Iterable[str]) -> list[Member]:
            return [Member(name, turns[name].fleet_class, turns[name].domain) for name in names]

        return [
            wave
            for status in ("running", "due", "failed")
            for wave in waves(members(self.session.named(status)), self.limits, class_sizes=class_sizes)
        ]

    def _wait_for_health(self, names: Sequence[str], at: Progress) -> None:
        deadline = time.monotonic() + self.times.health_s
        said = ""
        while why := self._not_fit(names):
            if time.monotonic() >= deadline:
                raise Unavailable(f"{why}; the next `fleet record` goes on")
            if why != said:
                self.say(f"waiting: {why}")
                said = why
            self._show(at, f"waiting: {why}")
            if self.stopping.wait(self.times.look_again_s):
                raise self._stopped()

    def _not_fit(self, names: Sequence[str]) -> str:
        """The first reason why the wave must not begin; empty if there is none. A node that can't be reached is no
        reason: it fails in its turn."""
        for name, state in ask_all(self.nodes, [self.hosts[name] for name in names]).items():
            if self.stopping.is_set():
                raise self._stopped()
            if isinstance(state, str):
                continue
            if state.unreachable:
                return f"{name}: its cluster is not reached: {state.unreachable}"
            if state.closed:
                return f"{name}: its cluster is not fit: {'; '.join(state.closed.values())}"
            if state.recording:
                return f"{name}: a recording is still under way there"
        return ""

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
        turn, began = self.session.turns[name], time.monotonic()
        try:
            self.nodes.record(
                self.hosts[name],
                [*self.session.options, "--class", turn.fleet_class, *(["--restart"] if anew else [])],
                timeout_s=self.times.node_s,
                on_line=lambda line: self._show(at, f"{name}: {line}", left) if _RUN in line else None,
            )
            text = self._fetched(name)
        except (Unavailable, BaselineError) as error:
            if not self.stopping.is_set():  # else it stays `running`: it may still measure there
                refused = isinstance(error, Refused | BaselineError)
                self._turn(name, status="failed", error=str(error), anew=refused)
                self.say(f"failed: {name}: {error}")
            return
        self.store.write(RECORDED, name + YAML, text)
        self._turn(name, status="recorded", seconds=time.monotonic() - began, finished=time.time())
        self._show(at, f"{name}: recorded", left)

    def _fetched(self, name: str) -> str:
        """The text of what the node has just recorded, whole and readable."""
        state = self.nodes.state(self.hosts[name], text=True)
        candidate = state.candidate
        if candidate is None or sha256(candidate.text) != candidate.sha256:
            raise Unavailable("recorded, but the file is not there as it was written")
        file = parse_site(candidate.text, where=name, host=state.host, catalogue=self.catalogue).file
        asked = ("measured", self.session.turns[name].fleet_class)
        if (file.source, file.fleet_class) != asked:  # it would count in another class, and name a file here
            said = f"{file.source} {file.fleet_class}".strip()
            raise BaselineError(name, f"gave a baseline other than asked for ({' '.join(asked)})", value=said)
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
