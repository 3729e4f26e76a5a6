"""Errors that all switches and adapters of an InfiniBand fabric count: ``ibqueryerrors -r`` (infiniband-diags,
ibqueryerrors(8)), which lists the ports with a counter above its threshold and ends with 1 where there is one::

    Errors for 0x200000 "switch-1"
       GUID 0x200000 port ALL: [PortRcvErrors == 5]
       GUID 0x200000 port 1: [PortRcvErrors == 5]
           Link info:  1  1[  ] ==( 4X 2.5 Gbps Active/  LinkUp)==>  0x0000000000100001  2  1[  ] "node1" ( )

    ## Summary: 3 nodes checked, 2 bad nodes found
    ##          6 ports checked, 2 ports have errors beyond threshold

A switch has a line for ALL of its ports, the sum. An adapter's name is that of its host.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from plumbline.core.process import Runner
from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.command import printed
from plumbline.sources.distribution import advice

COMMAND = ("ibqueryerrors", "-r")
_WHAT = "ibqueryerrors"
_WITHIN_S = 120.0  # it asks one port after the other: some seconds for a thousand
_MAX_BYTES = 64 << 20
_NODE = re.compile(r'Errors for (?:0x[0-9a-f]+ )?"(.*)"')
_PORT = re.compile(r"\s+GUID 0x[0-9a-f]+ port (\d{1,3}): (.*)")
_COUNTER = re.compile(r"\[(\w+) == (\d{1,20})[^\]]*\]")
_LINK = re.compile(r'\s+Link info: .*==>\s+0x[0-9a-f]+\s+\d+\s+(\d{1,3})\[.*?\] "(.*)" \((.*)\)\s*')
_SUMMARY = re.compile(r"## Summary: (\d{1,9}) nodes checked")
_PORTS = re.compile(r"##\s+(\d{1,9}) ports checked")


class FabricPort(Struct, frozen=True):
    """A port with errors. ``peer``: node and port at the other end; empty and 0 where it is not told. ``remark``: what
    the link could be, if it is less."""

    node: str
    port: int
    counters: Mapping[str, int]
    peer: str = ""
    peer_port: int = 0
    remark: str = ""


class Fabric(Struct, frozen=True):
    """What was checked, and the ports with errors, in the order of the answer."""

    nodes: int
    ports: int
    bad: tuple[FabricPort, ...]


def parse_fabric(data: bytes) -> Fabric:
    """:class:`ParseError` for an answer that does not end with its summary; unknown lines are skipped."""
    node, bad, nodes, ports = "", list[FabricPort](), None, 0
    for line in data.decode("utf-8", "replace").splitlines():
        if match := _NODE.fullmatch(line):
            node = match[1]
        elif (match := _PORT.fullmatch(line)) and (counters := _COUNTER.findall(match[2])):
            bad.append(FabricPort(node, int(match[1]), {name: int(value) for name, value in counters}))
        elif (match := _LINK.fullmatch(line)) and bad:
            last = bad[-1]
            bad[-1] = FabricPort(last.node, last.port, last.counters, match[2], int(match[1]), match[3].strip())
        elif match := _SUMMARY.match(line):
            nodes = int(match[1])
        elif match := _PORTS.match(line):
            ports = int(match[1])
    if nodes is None:
        raise ParseError(_WHAT, "has no summary")
    return Fabric(nodes, ports, tuple(bad))


def read_fabric(runner: Runner) -> Fabric:
    """Ask the whole fabric, from this host. :class:`PlumblineError` if that fails."""
    done = runner.run(COMMAND, timeout_s=_WITHIN_S, max_output_bytes=_MAX_BYTES)
    if done.returncode == 1 and b"## Summary" in done.stdout and not done.truncated:  # ports with errors
        return parse_fabric(done.stdout)
    if done.returncode == 127:
        raise PlumblineError(f"{_WHAT} is not installed; {advice(_WHAT)}")
    return parse_fabric(printed(done, _WHAT, _WITHIN_S))
