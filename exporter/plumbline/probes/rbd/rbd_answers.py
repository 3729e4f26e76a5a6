"""Parses the JSON answers of ``rbd info``, ``status``, ``image-meta list`` and ``diff``.

https://docs.ceph.com/en/latest/man/8/rbd/ · Ceph 12 to 20::

    {"name":"x","size":268435456,"order":22,"object_size":4194304,"snapshot_count":0,"features":["layering"], …}
    {"watchers":[{"address":"127.0.0.1:0/3506735386","client":4176,"cookie":139640594060864}]}
    {"plumbline.owner":"node-1/rbd-latency"}
    [{"offset":0,"length":4194304,"exists":"true"}]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from plumbline.errors import ParseError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What decides whether the image can be used. ``parent``: whether it is a clone."""

    size_bytes: int
    features: tuple[str, ...] = ()
    snapshots: int = 0
    parent: bool = False


@dataclass(frozen=True, slots=True)
class Watcher:
    """A client that has an image open. ``address`` is in Ceph's form: ``10.0.0.7:0/3506735386``."""

    address: str
    client: int | None = None

    @property
    def ip(self) -> str:
        """The client's IP address."""
        return self.address.rpartition(":")[0].removeprefix("[").removesuffix("]")

    def __str__(self) -> str:
        return self.address if self.client is None else f"client.{self.client} at {self.address}"


class _Info(msgspec.Struct, frozen=True):
    size: Annotated[int, Meta(ge=0)]
    features: list[str] = []
    snapshot_count: Annotated[int, Meta(ge=0)] = 0
    parent: object = None


class _Watcher(msgspec.Struct, frozen=True):
    address: str
    client: int | None = None


class _Status(msgspec.Struct, frozen=True):
    watchers: list[_Watcher] | dict[str, _Watcher] = []
    """Before Ceph 13 an object whose only key repeats."""


def parse_info(data: bytes) -> ImageInfo:
    """Parse ``rbd info --format json``."""
    found = _decode(data, _Info, "rbd info")
    return ImageInfo(found.size, tuple(found.features), found.snapshot_count, found.parent is not None)


def parse_watchers(data: bytes) -> tuple[Watcher, ...]:
    """Parse ``rbd status --format json``."""
    found = _decode(data, _Status, "rbd status").watchers
    each = found.values() if isinstance(found, dict) else found
    return tuple(Watcher(watcher.address, watcher.client) for watcher in each)


def parse_metadata(data: bytes) -> dict[str, str]:
    """Parse ``rbd image-meta list --format json``; without metadata some releases print nothing."""
    return _decode(data, dict[str, str], "rbd image-meta list") if data.strip() else {}


def parse_extents(data: bytes) -> int:
    """Parse ``rbd diff --format json``: the number of extents that hold data."""
    return len(_decode(data, list[dict[str, object]], "rbd diff"))


def _decode(data: bytes, kind: type[T], source: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(source, f"not what rbd writes: {error}") from error
