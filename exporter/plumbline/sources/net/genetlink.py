"""The numbers of a generic-netlink family, which differ from boot to boot. Uses pyroute2, in a process of its own.

Slow tier only: pyroute2 is used once per start, and would stay in memory: 12 MiB, more than all our own modules. A
scrape uses :mod:`plumbline.sources.net.netlink`.
"""

import errno
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache

import msgspec

from plumbline.core.foreign import decode_json
from plumbline.core.isolated import argv_of
from plumbline.core.light_import import without_init
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.net.netlink import raise_errno

_WITHIN_S = 10.0
_ASKING = threading.Lock()


def resolve_family(name: str) -> int:
    """The message type of a generic-netlink family, e.g. ``ethtool`` (Linux 5.6); ``Unavailable`` if it is lacking."""
    return _answer(name).number


def settings_group() -> int:
    """The multicast group that announces changed ethtool settings; ``Unavailable`` when this kernel lacks it."""
    groups = _answer("ethtool").groups
    if "monitor" not in groups:
        raise_errno(errno.ENOENT, f"{_source('ethtool')}: group monitor")
    return groups["monitor"]


class _Answer(msgspec.Struct, frozen=True):
    """What the process writes; ``code``: an errno, 0 for success."""

    number: int = 0
    groups: dict[str, int] = {}
    code: int = 0


def _answer(name: str) -> _Answer:
    with _ASKING:  # at the start two threads want the same answer
        answer = _ask(name)
    raise_errno(answer.code, _source(name))
    return answer


@cache  # a number, or that there is none, holds until the next boot; other errors may pass, and are raised
def _ask(name: str) -> _Answer:
    argv, source = argv_of(__name__, name, site_packages=True), _source(name)
    try:  # not a ProcessRunner: the niceness of a probe would delay the first page on a busy host
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, env={"LC_ALL": "C"}, check=False
        )
        answer = decode_json(done.stdout, _Answer, source=source)
    except subprocess.TimeoutExpired:
        raise ParseError(source, f"the process that asks for it gave no answer within {_WITHIN_S:g} s") from None
    except OSError as error:
        raise Unavailable(f"{source}: no process can be started to ask for it: {error.strerror}") from error
    except ParseError as error:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ParseError(source, f"the process that asks for it failed: {last or done.returncode}") from error
    if answer.code != errno.ENOENT:
        raise_errno(answer.code, source)
    return answer


def _source(name: str) -> str:
    return f"generic netlink family {name}"


def main(arguments: Sequence[str]) -> int:
    """The process: asks for the family that is its argument."""
    with without_init("pyroute2"):  # half of the time
        from pyroute2.netlink import genlmsg  # noqa: PLC0415
        from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415
        from pyroute2.netlink.generic import GenericNetlinkSocket  # noqa: PLC0415
    try:
        with GenericNetlinkSocket() as sock:  # type: ignore[no-untyped-call]
            sock.bind(arguments[0], genlmsg)
            answer = _Answer(int(sock.prid), dict(sock.mcast_groups))
    except NetlinkError as error:
        answer = _Answer(code=int(error.code))
    except OSError as error:
        answer = _Answer(code=error.errno or errno.EIO)
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0
