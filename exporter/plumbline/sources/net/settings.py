"""One ethtool setting of many ports: a netlink dump or, where the kernel lacks that, an ioctl for each port."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import TypeVar

from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.net import ethnl
from plumbline.sources.net.links import Link
from plumbline.sources.net.netlink import Message, Netlink, Refused

T = TypeVar("T")


class SettingsReader:
    """For the slow tier. Ports that do not have a setting, or fail, are left out."""

    def __init__(self, generic: Netlink) -> None:
        self._generic = generic

    def read(
        self,
        family: int | None,
        command: int,
        parse: Callable[[Message], tuple[int, T]],
        ports: Mapping[int, Link],
        *,
        by_ioctl: Callable[[bytes], T],
        flags: int = 0,
    ) -> dict[int, T]:
        """By interface index, of ``ports`` only. ``family`` ``None``: no ethtool netlink (before Linux 5.6).

        Commands came one after another (until 5.13 for FEC): one that the kernel does not know is asked by ioctl.
        Raises when netlink fails otherwise, or a reply is malformed.
        """
        if family is not None:
            try:
                return ethnl.read_all(
                    self._generic,
                    family,
                    command,
                    parse,
                    flags=flags,
                    expected=ports,
                    only=ports,
                    on_skip=lambda _item, _reason: None,
                )
            except Refused as refusal:
                if refusal.code != errno.EOPNOTSUPP:
                    raise
        return each(ports, by_ioctl)


def attempt(read: Callable[[], T]) -> T | PlumblineError:
    """What it reads, or the error it raises: one part of many must not take the others with it."""
    try:
        return read()
    except PlumblineError as error:
        return error


def value(part: T | PlumblineError) -> T:
    """The opposite of :func:`attempt`."""
    if isinstance(part, PlumblineError):
        raise part.with_traceback(None)  # raised once a scrape: it must not collect tracebacks
    return part


def each(ports: Mapping[int, Link], ask: Callable[[bytes], T]) -> dict[int, T]:
    """What every port answers, by interface index, without those that do not."""
    found = {}
    for index, link in ports.items():
        try:
            found[index] = ask(link.raw_name)
        except Unavailable:
            continue  # this driver does not know it, or the port has gone
    return found
