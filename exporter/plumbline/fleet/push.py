"""Which baseline each node gets: its own, or, as long as it has none that fits it, its class's."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from plumbline.baseline.fingerprint import Fingerprint, Part, changes
from plumbline.core.answers import in_turn
from plumbline.errors import BaselineError, StateError
from plumbline.fleet.answers import NodeFault, from_node, short
from plumbline.fleet.inventory import Host
from plumbline.fleet.node import Nodes, NodeState, Parcel
from plumbline.fleet.recording import class_of
from plumbline.fleet.store import ACCEPTED, CLASSES, Acceptance, AcceptedFile, Store

_CONNECTIONS = 16


class Choice(Struct, frozen=True):
    """``kind``: ``measured`` or ``class``, empty: nothing; ``name``: of the file; ``there``: it is in place already."""

    kind: str
    name: str
    why: str
    there: bool = False


class Placed(Struct, frozen=True):
    node: str
    choice: Choice
    message: str = ""
    failed: bool = False


def choose(name: str, fleet_class: str, state: NodeState, acceptance: Acceptance) -> Choice:
    """What ``name`` judges by. Its own accepted file, unless its disks are others: then it is a replaced node."""
    own, common = acceptance.nodes.get(name), acceptance.classes.get(fleet_class)
    if own is not None and state.measured is not None and state.measured.sha256 == own.sha256:
        return Choice("measured", name, "its own, in place", there=True)
    if own is not None and state.measured is not None and state.measured.recorded > own.recorded:
        return Choice("", name, "has a newer one that was not accepted; record it with the fleet")
    if own is not None and not (other := replaced(own, state)):
        return Choice("measured", name, "its own")
    why = f"its disks are others than at acceptance: {other}" if own is not None else "none of its own is accepted"
    if common is None:
        return Choice("", name, f"{why}, and its class {fleet_class} has no accepted figures")
    there = state.fleet_class is not None and state.fleet_class.sha256 == common.sha256
    placed = ", in place" if there else ""
    return Choice("class", fleet_class, f"{why}; its class's until it is recorded{placed}", there=there)


def replaced(own: AcceptedFile, state: NodeState) -> str:
    """How the disks differ from those of the acceptance; empty if they don't, or if that is unknown."""
    then, now = Fingerprint(disks=own.fingerprint.disks), Fingerprint(disks=state.fingerprint.disks)
    return next(
        (short(f"{change.then}; now {change.now}") for change in changes(then, now) if change.part is Part.DISKS), ""
    )


def push(
    store: Store,
    acceptance: Acceptance,
    nodes: Nodes,
    hosts: Sequence[Host],
    states: Mapping[str, NodeState | NodeFault],
) -> tuple[Placed, ...]:
    """Put each node's file in place, unless it is there. Failures are answers: the other nodes go on."""

    def place(host: Host) -> Placed:
        state = states[host.name]
        if isinstance(state, NodeFault):
            return Placed(host.name, Choice("", host.name, ""), state.reason, failed=True)
        choice = choose(host.name, class_of(host, state), state, acceptance)
        if not choice.kind or choice.there:
            return Placed(host.name, choice, failed=not choice.kind)
        answer = from_node(lambda: nodes.install(host, _parcel(store, acceptance, choice)))
        if isinstance(answer, NodeFault):
            return Placed(host.name, choice, answer.reason, failed=True)
        return Placed(host.name, choice, answer)

    return tuple(in_turn(hosts, place, _CONNECTIONS, what="fleet push"))


def _parcel(store: Store, acceptance: Acceptance, choice: Choice) -> Parcel:
    """What is sent. Raises :class:`BaselineError` where it is not here as it was accepted."""
    folder, files = (ACCEPTED, acceptance.nodes) if choice.kind == "measured" else (CLASSES, acceptance.classes)
    try:
        accepted = store.accepted(folder, files, choice.name)
    except StateError as error:
        raise BaselineError(choice.name, short(str(error))) from error
    if accepted is None:
        raise BaselineError(choice.name, "is not accepted")
    return Parcel(kind=choice.kind, text=accepted[0], signature=accepted[1])
