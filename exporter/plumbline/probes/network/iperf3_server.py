"""The server for other nodes' throughput probes: an iperf3 server that serves one client, ends, and restarts.

iperf3 has no list of allowed clients, but prints its client's address before the first byte of a test. We end the
server when that is not in ``allow``, and when a client sends nothing or never finishes. So a stranger can disturb
measurements, and iperf3 has parsed the client's parameters by then: ``allow`` prevents tests, but is not a firewall.
(A proxy that checks peers first would cost the throughput to be measured; iperf3's RSA keys prevent neither problem.)

The server dies with the daemon (``launch.py``). One thread starts it and waits for it, as the kernel requires for that;
there is never more than one.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import select
import shutil
import threading
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from plumbline.config.model import NetworkServerConfig, split_address
from plumbline.core import threads
from plumbline.core.backoff import Backoff
from plumbline.core.process import Child, named_environment
from plumbline.errors import PlumblineError
from plumbline.probes.run.tool import IPERF3
from plumbline.sources.net.routes import IpAddress, IpNetwork

log = logging.getLogger(__name__)

LONGEST_TEST_S = 600.0  # none of our probes runs this long; a client that does is foreign or dead
SILENT_CLIENT_S = 10.0  # a client identifies itself within a round trip; iperf3 itself would wait for ever
LISTENS_WITHIN_S = 10.0  # it takes some hundredths of a second; beyond this it hangs, or is not iperf3
STRANGER_COSTS_S = 1.0  # pause after a rejected client, so that it can't keep us busy all the time
_SERVED_AGAIN_AFTER_S = 0.05
_LOOK_S = 0.2
# output of one server, before it serves and in all: a few lines, and 128 streams reported every second for ten minutes
_MAX_GREETING_BYTES, _MAX_SAID_BYTES = 1 << 16, 8 << 20
_END_WITHIN_S = 1.0
_ACCEPTED = re.compile(rb"Accepted connection from ([0-9A-Fa-f.:]+)(?:%\S+)?, port \d+")
_LISTENING = b"Server listening on"


class ServerPlan(Struct, frozen=True):
    """Where to listen, and for whom. Compared at a reload."""

    address: str
    port: int
    allow: tuple[IpNetwork, ...]  # Empty: every address in this host's networks that address belongs to

    @classmethod
    def of(cls, config: NetworkServerConfig) -> ServerPlan:
        address, port = split_address(config.listen)
        return cls(str(ipaddress.ip_address(address)), port, config.networks)

    @property
    def listen(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    def argv(self, program: str) -> tuple[str, ...]:
        return (program, "--server", "--one-off", "--bind", self.address, "--port", str(self.port))


class _End(Struct, frozen=True):
    """How one server ended. ``trouble`` is empty if it served a client."""

    trouble: str = ""
    ours: bool = False  # True: the server could not listen; False: a client was at fault


class IperfServer:
    """Keeps one server running from :meth:`start` to :meth:`stop`. ``networks`` returns an address' networks."""

    def __init__(
        self,
        plan: ServerPlan,
        environment: Mapping[str, str],
        *,
        networks: Callable[[str], tuple[IpNetwork, ...]],
        which: Callable[[str], str | None] = shutil.which,
        silent_client_s: float = SILENT_CLIENT_S,
        listens_within_s: float = LISTENS_WITHIN_S,
    ) -> None:
        self.plan = plan
        self._env = named_environment(environment)
        self._networks, self._which = networks, which
        self._silent_client_s, self._listens_within_s = silent_client_s, listens_within_s
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.up = False  # Whether it listens or serves
        self.trouble = ""  # Why it is not up, or which client it last refused; empty if all is well

    @property
    def why_down(self) -> str:
        """Its address and why it is down, in a sentence; empty while it is up, and before the first attempt ended."""
        return "" if self.up or not self.trouble else f"{self.plan.listen}: {self.trouble}"

    def start(self) -> None:
        self._thread = threads.start("iperf3-server", self._keep, of=self.plan.listen, until=self._stopping)

    def stop(self, timeout_s: float = 2.0) -> bool:
        """End it; False if that takes longer than ``timeout_s``."""
        self._stopping.set()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _keep(self) -> None:
        backoff = Backoff()
        try:
            while not self._stopping.is_set():
                end = self._once()
                self.up = not end.ours
                if end.trouble and end.trouble != self.trouble:
                    log.warning("network server %s: %s", self.plan.listen, end.trouble)
                elif self.trouble and not end.trouble:
                    log.info("network server %s: works again", self.plan.listen)
                self.trouble = end.trouble
                if end.ours:
                    self._stopping.wait(backoff.failed())
                else:
                    backoff.settled()
                    self._stopping.wait(STRANGER_COSTS_S if end.trouble else _SERVED_AGAIN_AFTER_S)
        finally:
            self.up = False

    def _once(self) -> _End:
        program = self._which("iperf3")
        if program is None:
            return _End(IPERF3.missing, ours=True)
        try:
            allowed = self.plan.allow or self._networks(self.plan.address)
        except PlumblineError as error:
            return _End(str(error), ours=True)
        if not allowed:
            return _End(f"{self.plan.address} is not an address of this host", ours=True)
        # a terminal, because the C library only line-buffers for one: the client must be known at once
        ours, theirs = os.openpty()
        try:
            process = Child(self.plan.argv(program), tied=True, env=self._env, stdout=theirs, stderr=theirs)
        except OSError as error:
            os.close(ours)
            return _End(error.strerror or "", ours=True)
        finally:
            os.close(theirs)
        try:
            return _Service(self, process, ours, allowed).follow()
        finally:
            process.end(_END_WITHIN_S / 2, killed_within_s=_END_WITHIN_S)
            os.close(ours)


class _Service:
    def __init__(self, server: IperfServer, process: Child, output: int, allowed: tuple[IpNetwork, ...]) -> None:
        self._server, self._process, self._output, self._allowed = server, process, output, allowed
        self._begun = time.monotonic()
        self._rest = b""
        self._bytes = 0
        self._said = ""
        self._served = False
        self._since: float | None = None
        self._at_rest: int | None = None

    def follow(self) -> _End:
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        while not self._server._stopping.is_set():
            if poll.poll(1000 * _LOOK_S):
                try:
                    chunk = os.read(self._output, 1 << 16)
                except OSError:  # EIO: the other end is closed
                    break
                self._bytes += len(chunk)
                if self._bytes > (_MAX_SAID_BYTES if self._served else _MAX_GREETING_BYTES):
                    return _End("iperf3 wrote too much output and was stopped", ours=True)
                if refused := self._read(chunk):
                    return _End(refused)
            if self._at_rest is None and time.monotonic() - self._begun > self._server._listens_within_s:
                return _End(f"iperf3 does not listen within {self._server._listens_within_s:g} s", ours=True)
            if late := self._late():
                return _End(late)
        if self._served or self._server._stopping.is_set():
            return _End()
        return _End(self._said or "iperf3 ended without a message", ours=self._at_rest is None)

    def _read(self, chunk: bytes) -> str:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-4096:]
        for line in lines:
            if _LISTENING in line:
                self._server.up = True
                self._at_rest = _open_files(self._process.pid)
            elif match := _ACCEPTED.search(line):
                peer = _address(match[1].decode("ascii"))
                if not any(peer in network for network in self._allowed):
                    return f"{peer} is not in allow: its test was stopped"
                self._served, self._since = True, time.monotonic()
            elif line.startswith(b"iperf3: "):
                self._said = self._said or _said(line)  # the first line says why, the last that it exits
        return ""

    def _late(self) -> str:
        """Why a client blocks the server: it has an extra open file, but has not printed its client's address."""
        now = time.monotonic()
        if self._served:
            if now - (self._since or now) > LONGEST_TEST_S:
                return f"a test took longer than {LONGEST_TEST_S:g} s and was stopped"
            return ""
        files = _open_files(self._process.pid)
        if self._at_rest is None or files is None or files <= self._at_rest:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since > self._server._silent_client_s:
            return f"a client connected and sent nothing for {self._server._silent_client_s:g} s"
        return ""


def _said(line: bytes) -> str:
    """``iperf3: error - unable to start listener …`` without the common prefix."""
    return line.decode("utf-8", "replace").strip().removeprefix("iperf3: ").removeprefix("error - ")[:300]


def _address(text: str) -> IpAddress:
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _open_files(pid: int) -> int | None:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  (pathlib would stat each)
    except OSError:
        return None
