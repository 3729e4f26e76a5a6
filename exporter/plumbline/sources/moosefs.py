"""MooseFS as its master knows it: ``mfscli -s '|' -SIC -SCS`` of MooseFS 3.0 and 4.57 (mfscli(1))::

    all chunks matrix:|goal/copies/chunks:|2|1|10
    all chunks matrix:|chunkclass missing:|1        no valid copy
    all chunks matrix:|chunkclass endangered:|10    one copy, and more are wanted
    all chunks matrix:|chunkclass undergoal:|0      several copies, and more are wanted
    chunk servers:|10.78.0.1|9422|1|-|3.0.117|0|maintenance_off|10|33226739712|97793294336|-|0|0|0
    Disconnected chunk servers:|10.78.0.2|9422|2|maintenance_off

Where no master answers it says so, and its exit status is 0.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from plumbline.core.process import Runner
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.command import printed
from plumbline.sources.kernel.sysfs import read_bytes

_WHAT = "mfscli"
_WITHIN_S = 15.0  # it tries for 4 s whether a master that does not answer is there
_CLASS = re.compile(r"all chunks matrix:\|chunkclass ([a-z ]{1,40}):\|([0-9]{1,18})")
_SERVER = re.compile(r"(Disconnected )?chunk servers:\|([^|]{1,64})\|([0-9]{1,5})\|(.*)")
_LISTENS = re.compile(rb"^\s*MATOCL_LISTEN_(HOST|PORT)\s*=\s*([A-Za-z0-9][A-Za-z0-9.:_-]{0,252})\s*$", re.MULTILINE)


class MoosefsReading(Struct, frozen=True):
    """``chunks``: by class, in MooseFS' words. ``chunkservers``: address and port → whether it is connected, without
    those that are gone and in maintenance."""

    chunks: Mapping[str, int]
    chunkservers: Mapping[str, bool]


def parse_chunks(data: bytes) -> MoosefsReading:
    """:class:`ParseError` for an answer without chunks; other lines are skipped."""
    text = data.decode("utf-8", "surrogateescape")
    chunks, servers = dict[str, int](), dict[str, bool]()
    for line in text.split("\n"):
        if match := _CLASS.fullmatch(line):
            chunks[match[1]] = int(match[2])
        elif match := _SERVER.fullmatch(line):
            gone = match[1] is not None
            if not (gone and match[4].endswith("maintenance_on")):
                servers[f"{match[2]}:{match[3]}"] = not gone
    if not chunks:
        raise ParseError(_WHAT, f"names no chunks: {' '.join(text.split())[:200]}")
    return MoosefsReading(chunks, servers)


def read_chunks(roots: Roots, runner: Runner) -> MoosefsReading:
    """Ask the master of this host, where its configuration says it listens; :class:`Unavailable` where none is."""
    config = read_bytes(roots.etc / "mfs" / "mfsmaster.cfg")
    if config is None:
        raise Unavailable("no MooseFS master is set up here")
    listens = {key.decode(): value.decode() for key, value in _LISTENS.findall(config)}
    argv = ("mfscli", "-H", listens.get("HOST", "127.0.0.1"), "-P", listens.get("PORT", "9421"), "-n", "-s", "|")
    return parse_chunks(printed(runner.run((*argv, "-SIC", "-SCS"), timeout_s=_WITHIN_S), _WHAT, _WITHIN_S))
