"""What a node answers, bounded before anything else sees it: a checked value, or a :class:`NodeFault` of that node.

A node of a fleet may be broken or in somebody else's hands. Whatever it prints, its fault is one row of the table, and
the other nodes go on. So every answer passes through here: :func:`from_node` around each call, :func:`checked_state`
and :func:`checked_site` for what came of it.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import msgspec

from plumbline.baseline.site import MAX_BYTES, LoadedSite, SiteFile, encode, parse_site
from plumbline.core.escape import excerpt
from plumbline.errors import BaselineError, Unavailable

T = TypeVar("T")

# A model is an argument of ssh and a part of a file's name. Firmware has 64 characters for it.
MODEL_BYTES = 100
# With what the store appends, a file's name must stay below the 255 bytes that file systems allow.
NAME_BYTES = 200
_TEXT_CHARACTERS, _ITEMS = 1000, 10_000  # a node with 100 disks and 1,000 ports has half as many items
_ENTRIES, _NOTES = 1000, 100  # a node has some dozen entries, and a note for each at most
_LEAST, _MOST = 1e-15, 1e15  # figures that can be written again, as the median of a class (Quantity.of)
_REASON_CHARACTERS = 300
# What code raises where a value is not what it expects. Errors of this host (OSError, StateError) are not among them.
_DEFECTS = (
    msgspec.MsgspecError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class Refused(Unavailable):
    """The node was reached and did not do it, or what it gave can't be used."""


class NodeFault(msgspec.Struct, frozen=True):
    """Why a node has no part in what the others do. ``reason``: one short printable line; ``refused``: the node was
    reached."""

    reason: str
    refused: bool = False


def from_node(call: Callable[[], T]) -> T | NodeFault:
    """The value of ``call``, which asks a node or reads what one gave, or the node's fault. Errors of this host pass:
    they are not the node's."""
    try:
        return call()
    except (Unavailable, BaselineError) as error:
        return NodeFault(short(str(error)), refused=isinstance(error, Refused | BaselineError))
    except _DEFECTS as error:
        reason = f"its answer is not understood ({type(error).__name__}: {error}); please report this"
        return NodeFault(short(reason), refused=True)


def short(text: str) -> str:
    """A node's text as a part of one line."""
    return excerpt(" ".join(text[: 4 * _REASON_CHARACTERS].split()), _REASON_CHARACTERS)


def check_bounds(answer: msgspec.Struct, *, except_for: str = "") -> None:
    """Refuse texts that are too long for a row, and too many of them. ``except_for``: a text that has its own limit.
    Raises :class:`Refused`."""
    for number, text in enumerate(_texts(msgspec.to_builtins(answer, enc_hook=encode, str_keys=True))):
        if number >= _ITEMS:
            raise Refused(f"its answer has more than {_ITEMS:,} values; it is not used")
        if len(text) > _TEXT_CHARACTERS and text != except_for:
            raise Refused(f"its answer has a text of {len(text):,} characters ({short(text[:40])}…); it is not used")


def check_model(model: str) -> None:
    """Refuse a model that names no file. Raises :class:`Refused`."""
    if len(model.encode("utf-8", "surrogatepass")) > MODEL_BYTES or not model.isprintable():
        raise Refused(f"its model is no name of at most {MODEL_BYTES} bytes: {short(model[:40])}; set it in the list")


def check_name(own: Collection[str], claimed: str, others: Collection[str]) -> None:
    """Refuse a node that calls itself as another entry of the list. ``own``: what the list calls it; ``others``: the
    names of all. Raises :class:`Refused`."""
    if claimed in own or claimed.partition(".")[0] in {name.partition(".")[0] for name in own}:
        return
    if claimed in others:
        raise Refused(f"calls itself {short(claimed)}, which is another node of the list; keep one, or rename it")


def checked_site(text: str, *, where: str, host: str | None) -> LoadedSite:
    """A baseline that a node gave. Raises :class:`BaselineError` or :class:`Refused`."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise BaselineError(where, f"is longer than {MAX_BYTES >> 20} MiB, and no daemon would read it")
    site = parse_site(text, where=where, host=host)
    check_bounds(site.file)
    _check_site(site.file, where)
    for entry in site.entries:
        figures = (*entry.latency.values(), *filter(None, (entry.iops, entry.throughput)))
        if not all(_LEAST <= figure <= _MOST for figure in figures):
            raise BaselineError(where, f"has a figure that nothing achieves, of {entry.workload} {entry.operation}")
    return site


def _check_site(file: SiteFile, where: str) -> None:
    if len(file.entries) > _ENTRIES or len(file.notes) > _NOTES:
        raise BaselineError(where, f"has more than {_ENTRIES:,} entries or {_NOTES} notes")
    if file.fleet_class and not is_file_name(file.fleet_class):
        raise BaselineError(where, "names no class of a fleet", key="fleet_class", value=file.fleet_class)


def is_file_name(name: str) -> bool:
    """Whether a file can have the name, with what the store appends."""
    plain = name.isprintable() and "/" not in name and not name.startswith(".")
    return plain and 0 < len(name.encode()) <= NAME_BYTES


def _texts(value: Any) -> Iterator[str]:
    """Every text of a tree, keys too, and an empty one for each other value."""
    stack = [value]
    while stack:
        match stack.pop():
            case str() as text:
                yield text
            case dict() as mapping:
                stack += [*mapping.keys(), *mapping.values()]
            case list() | tuple() as items:
                stack += items
            case _:
                yield ""
