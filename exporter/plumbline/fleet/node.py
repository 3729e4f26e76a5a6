"""What a node and the control host say to each other, in JSON through ssh.

``plumbline baseline state`` prints a :class:`NodeState`; ``plumbline baseline install`` reads a :class:`Parcel`.
"""

from collections.abc import Callable, Collection, Sequence
from threading import Event

import msgspec

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.core.foreign import decode_json
from plumbline.errors import ParseError, Unavailable
from plumbline.fleet.answers import Refused, check_bounds, check_model, check_name, short
from plumbline.fleet.inventory import Host
from plumbline.fleet.ssh import Ssh

_STATE_WITHIN_S = 60.0  # a fingerprint takes up to 10 s, the start of a sandboxed program some more
_INSTALL_WITHIN_S = 60.0


class FileState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A baseline file on a node. ``recorded``: ISO 8601; ``text``: only where it was asked for."""

    sha256: str
    recorded: str = ""
    text: str = ""


class NodeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node now. ``host``: as it calls itself, and as its baseline names it; ``model``: of the machine, empty if
    unknown. ``recording``: one is under way. ``closed``: each gate that the cluster closes, and why; ``cluster``:
    whether there is one; ``unreachable``: why it could not be asked."""

    host: str
    version: str
    model: str = ""
    fingerprint: Fingerprint = Fingerprint()
    recording: bool = False
    cluster: bool = False
    closed: dict[str, str] = {}
    unreachable: str = ""
    measured: FileState | None = None
    fleet_class: FileState | None = None
    candidate: FileState | None = None


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline to put in place, and its signature. ``kind``: ``measured``, the node's own, or ``class``."""

    kind: str
    text: str
    signature: str


def checked_state(state: NodeState, host: Host, names: Collection[str]) -> NodeState:
    """The state if it is one that a node can have. ``names``: of all nodes of the list. Raises :class:`Refused`."""
    check_bounds(state, except_for=state.candidate.text if state.candidate else "")
    check_model(state.model)
    check_name((host.name, host.address), state.host, names)
    return state


class Nodes(msgspec.Struct, frozen=True):
    """The commands that a fleet runs on its nodes; each raises :class:`Unavailable` with the reason, which is a
    :class:`Refused` if the node gave it. ``names``: of all nodes of the list."""

    ssh: Ssh
    stopping: Event
    names: frozenset[str] = frozenset()

    def state(self, host: Host, *, text: bool = False) -> NodeState:
        """``text``: with that of the candidate."""
        words = ["baseline", "state", *(["--text"] if text else [])]
        answer = self.ssh.run(host, words, timeout_s=_STATE_WITHIN_S, stopping=self.stopping)
        if answer.returncode:
            raise Refused(answer.reason)
        try:
            state = decode_json(answer.stdout, NodeState, source="`baseline state`")
        except ParseError as error:
            raise Unavailable(f"{error}; is it this release there?") from None
        return checked_state(state, host, self.names)

    def record(self, host: Host, options: Sequence[str], *, timeout_s: float, on_line: Callable[[str], object]) -> None:
        words = ["baseline", "record", "--candidate", *options]
        answer = self.ssh.run(host, words, timeout_s=timeout_s, stopping=self.stopping, on_line=on_line)
        if answer.returncode:
            raise Refused(answer.reason)

    def install(self, host: Host, parcel: Parcel) -> str:
        """Put a baseline in place; returns what the node said."""
        answer = self.ssh.run(
            host,
            ["baseline", "install"],
            timeout_s=_INSTALL_WITHIN_S,
            stopping=self.stopping,
            sent=msgspec.json.encode(parcel).decode(),
        )
        if answer.returncode:
            raise Refused(answer.reason)
        return short(answer.stdout)
