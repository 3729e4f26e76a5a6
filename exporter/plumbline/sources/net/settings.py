"""One ethtool setting of many ports: from a netlink dump or, where the kernel lacks that, one ioctl per port."""

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
    """For the slow tier. Ports that lack a setting, or fail, are left out."""

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
        """The setting of ``ports``, by interface index. ``family`` ``None``: no ethtool netlink (before Linux 5.6).

        Netlink gained its commands over time (until 5.13 for FEC); where the kernel lacks one, the ioctl is used.
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
    """The result of ``read``, or the error it raised: a failed part must not stop the other parts."""
    try:
        return read()
    except PlumblineError as error:
        return error


def value(part: T | PlumblineError) -> T:
    """Undo :func:`attempt`: return the result, or raise the error."""
    if isinstance(part, PlumblineError):
        raise part.with_traceback(None)  # raised once per scrape: it must not accumulate tracebacks
    return part


def each(ports: Mapping[int, Link], ask: Callable[[bytes], T]) -> dict[int, T]:
    """The answers by interface index, without the ports that do not answer."""
    found = {}
    for index, link in ports.items():
        try:
            found[index] = ask(link.raw_name)
        except Unavailable:
            continue  # the driver does not support this, or the port has gone
    return found
