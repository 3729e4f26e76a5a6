"""Round-trip times: one small packet at a time, percentiles, and the share of lost packets.

A packet counts as lost without an answer after a second: in a storage network that is a thousand times too late.
The packet is an ICMP echo, or the handshake of a TCP connection, whose duration the kernel measures:
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/tcp.h (``struct tcp_info``, ``tcpi_rtt``)
"""

import contextlib
import errno
import math
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from plumbline.config.probes.network import RttConfig
from plumbline.config.workloads import RoundTrip
from plumbline.core.units import si
from plumbline.errors import ProbeRefused
from plumbline.probes.network.echo import Answer, EchoSocket, Reply, Unreachable
from plumbline.probes.network.peer import Findings, PeerProbe, failure, peers
from plumbline.probes.run.model import Host, Plan, Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome
from plumbline.probes.run.tool import refuse_if_stopped
from plumbline.sources.net.routes import IpAddress

LOST_AFTER_S = 1.0
# after this many packets without any answer the peer is absent, and the rest would only take time
_GIVE_UP_AFTER = 10
_MINIMUM = 3
_CHECK_S = 0.1  # how soon a stop is noticed while waiting for an answer
_RTT_AT = 68  # of tcpi_rtt, microseconds; since Linux 2.6
_U32 = struct.Struct("=I")
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)


class RttProbe(PeerProbe, frozen=True):
    config: RttConfig
    workload: RoundTrip

    def _measure(self, run: Run) -> Findings:
        with self._asking(run) as ask:
            return measure(
                ask,
                run=run,
                packets=self.config.packets,
                gap_s=float(self.config.gap),
                timeout_s=float(self.config.timeout),
                target=str(self.peer.endpoint),
            )

    @contextlib.contextmanager
    def _asking(self, run: Run) -> Iterator[Callable[[], Reply | None]]:
        address, bind, port = self.peer.address(), self.peer.local(), self.peer.endpoint.port
        if self.workload.protocol == "tcp":
            if port is None:
                raise ProbeRefused("no-port", f"{self.peer.endpoint}: a TCP handshake needs host:port")
            yield lambda: handshake(address, port, bind, timeout_s=LOST_AFTER_S, stopping=run.stopping)
            return
        with EchoSocket(address, bind, stopping=run.stopping) as echo:
            yield lambda: echo.exchange(self.workload.payload_bytes, LOST_AFTER_S)


def build(config: RttConfig, workload: RoundTrip, host: Host) -> Plan:
    return Plan(periodic=tuple(RttProbe(config, workload, peer) for peer in peers(config, host)))


def measure(
    ask: Callable[[], Reply | None], *, run: Run, packets: int, gap_s: float, timeout_s: float, target: str
) -> Findings:
    """Send ``packets`` one after the other; ends early after ``timeout_s``, or if the first ones get no answer."""
    deadline = time.monotonic() + timeout_s - LOST_AFTER_S
    seconds: list[float] = []
    asked, refusal = 0, ""
    ask()  # not counted: it may wait for the neighbour's hardware address to be resolved
    while asked < packets and time.monotonic() < deadline:
        run.stopping.wait(gap_s)
        reply = ask()
        refuse_if_stopped(run.stopping.is_set())
        asked += 1
        if isinstance(reply, Answer):
            seconds.append(reply.seconds)
        elif isinstance(reply, Unreachable):
            refusal = f"{f'{reply.hop} reports: ' if reply.hop else ''}{reply.reason}"
        if not seconds and asked >= _GIVE_UP_AFTER:
            break
        run.progress(Progress("measuring", asked / packets, _figures(seconds, asked)))
    if not seconds:
        return failure(f"{target}: no answer to {asked} packets{f'; {refusal}' if refusal else ''}")
    if asked < min(packets, _MINIMUM):
        return Findings(Outcome.TIMEOUT, message=f"{target}: only {asked} packets in {timeout_s:g} s")
    result = OperationResult(
        operation="round-trip", latency=statistics(seconds), loss_ratio=(asked - len(seconds)) / asked
    )
    return Findings(Outcome.SUCCESS, (result,))


def statistics(seconds: Sequence[float]) -> dict[str, float]:
    """Mean, maximum and percentiles by nearest rank: the smallest value that this share of packets does not exceed."""
    ordered = sorted(seconds)

    def percentile(percent: int) -> float:
        return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]

    named = {f"p{percent}": percentile(percent) for percent in (50, 95, 99)}
    return {"mean": math.fsum(ordered) / len(ordered), **named, "max": ordered[-1]}


def _figures(seconds: Sequence[float], asked: int) -> str:
    if not seconds:
        return f"no answer to {asked} packets"
    figures = statistics(seconds)
    lost = asked - len(seconds)
    return f"p50 {si(figures['p50'], 's')}, p99 {si(figures['p99'], 's')}, {lost} lost"


def handshake(
    address: IpAddress, port: int, bind: IpAddress | None, *, timeout_s: float, stopping: threading.Event
) -> Answer | Unreachable | None:
    """Connect and close. ``None``: no answer in time, or stopped. The time is the kernel's first RTT estimate, from the
    SYN to its acknowledgement; our own measurement would include how late this process was woken. A refused connection
    is not an answer: it may come from a firewall on the way, and an operator who configured the port wants to know that
    nothing listens there any more."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as sock:
        sock.setblocking(False)
        if bind is not None:
            try:
                sock.bind((str(bind), 0))
            except OSError as error:
                return Unreachable(f"{bind} can't be used: {error.strerror}")
        begun = time.monotonic()
        code = sock.connect_ex((str(address), port))
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        while code == errno.EINPROGRESS:
            left = begun + timeout_s - time.monotonic()
            if left <= 0 or stopping.is_set():
                return None
            if poll.poll(1000 * min(left, _CHECK_S)):
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        took = time.monotonic() - begun
        if code == 0:
            return Answer(min(_kernel_rtt_s(sock) or took, took))
    return None if code in _UNREACHABLE else Unreachable(os.strerror(code))


def _kernel_rtt_s(sock: socket.socket) -> float | None:
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    if len(info) < _RTT_AT + _U32.size:
        return None
    microseconds = _U32.unpack_from(info, _RTT_AT)[0]
    return microseconds / 1e6 if microseconds else None
