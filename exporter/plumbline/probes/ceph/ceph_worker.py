"""The session with the cluster, in a small separate process: this keeps librados and its threads out of the daemon.

``probes/ceph_session.py`` starts it in an isolated interpreter as ``… <socket fd>``: one JSON line in, one JSON line
out, one after the other. It connects at the first request, and again after a failure.

It outlives the daemon only briefly: when the socket closes it releases its locks and ends; if that hangs, it ends
anyway. The daemon does not wait for a hung worker: it gives up in time and starts another.
"""

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from plumbline.core import threads
from plumbline.core.foreign import parse_json, shaped
from plumbline.core.memory import LIBRADOS, keep_memory_private, limit_memory
from plumbline.errors import KeyTypeUnknown, PlumblineError
from plumbline.probes.ceph.ceph_status import wants_detail
from plumbline.probes.ceph.librados import Access, Cluster, Pool, connect

_GRACE_S = 2.0
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4


class Worker:
    """Answers requests: ``{"do": "status"}``, ``{"do": "lock", …}``. Not thread-safe."""

    def __init__(self, access: Access, connect_to: Callable[[Access], Cluster] = connect) -> None:
        self._access, self._connect = access, connect_to
        self._cluster: Cluster | None = None
        self._pools: dict[tuple[str, str], Pool] = {}
        self._held: dict[tuple[str, str, str], tuple[Pool, str]] = {}
        self._calls: dict[str, Callable[..., Any]] = {
            "status": self._status,
            "lock": self._lock,
            "renew": self._renew,
            "unlock": self._unlock,
            "lockers": self._lockers,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """``{"ok": …}`` or ``{"error": …}``; never raises because of the cluster."""
        arguments = dict(request)
        try:
            with shaped("the cluster"):
                return {"ok": self._calls[arguments.pop("do")](**arguments)}
        except KeyTypeUnknown as error:
            return {"error": str(error), "errno": errno.EKEYREJECTED}
        except PlumblineError as error:
            # once connected, what is missing is a pool
            return {"error": str(error), "errno": errno.ENOTCONN if self._cluster is None else errno.ENOENT}
        except OSError as error:
            return {
                "error": f"{error.filename}: {error.strerror}" if error.filename else str(error),
                "errno": error.errno,
            }

    def close(self) -> None:
        """Release held locks, and disconnect."""
        for (_, oid, name), (pool, cookie) in tuple(self._held.items()):
            with contextlib.suppress(OSError):  # the lease expires by itself
                pool.unlock(oid, name, cookie=cookie)
        for pool in self._pools.values():
            pool.close()
        if self._cluster is not None:
            self._cluster.close()

    def _open(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._connect(self._access)
        return self._cluster

    def _pool(self, pool: str, namespace: str) -> Pool:
        key = (pool, namespace)
        if key not in self._pools:
            self._pools[key] = self._open().pool(pool, namespace=namespace)
        return self._pools[key]

    def _status(self) -> dict[str, Any]:
        """The parts that decide; the whole status would be long on a big cluster."""
        status = self._open().mon_command("status")
        detail = self._open().mon_command("health", {"detail": "detail"}) if wants_detail(status) else None
        return {"status": {key: status.get(key) for key in ("health", "pgmap")}, "detail": detail}

    def _lock(self, *, pool: str, namespace: str, oid: str, name: str, cookie: str, about: str, lease_s: float) -> bool:
        place = self._pool(pool, namespace)
        if not place.lock(oid, name, cookie=cookie, description=about, lease_s=lease_s):
            return False
        self._held[place.name, oid, name] = (place, cookie)
        return True

    def _renew(
        self, *, pool: str, namespace: str, oid: str, name: str, cookie: str, about: str, lease_s: float
    ) -> bool:
        return self._pool(pool, namespace).renew(oid, name, cookie=cookie, description=about, lease_s=lease_s)

    def _unlock(self, *, pool: str, namespace: str, oid: str, name: str, cookie: str) -> bool:
        place = self._pool(pool, namespace)
        self._held.pop((place.name, oid, name), None)
        return place.unlock(oid, name, cookie=cookie)

    def _lockers(self, *, pool: str, namespace: str, oid: str, name: str) -> list[dict[str, str]]:
        lockers = self._pool(pool, namespace).lockers(oid, name)
        return [{"client": holder.client, "cookie": holder.cookie, "address": holder.address} for holder in lockers]


def main(argv: list[str]) -> int:
    """Answer until the socket closes."""
    keep_memory_private()  # it will hold a key
    limit_memory(LIBRADOS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the daemon, which ends this worker
    if os.geteuid():
        _drop_capabilities()
    with socket.socket(fileno=int(argv[0])) as connection, connection.makefile("rwb") as lines:
        first = lines.readline()
        if not first:
            return 0
        access = Access(**parse_json(first, source="the daemon"))
        limit_s = _GRACE_S + access.operation_timeout_s
        threads.start("end", partial(_end_with, connection.fileno(), limit_s))
        worker = Worker(access)
        try:
            for line in lines:
                lines.write(json.dumps(worker.answer(parse_json(line, source="the daemon"))).encode() + b"\n")
                lines.flush()
        except ConnectionError:
            pass  # nobody waits for this answer any more
        worker.close()
    return 0


def _drop_capabilities() -> None:
    """Drop the capabilities for querying disks: a process on the network must not have them (capset(2), version 3).

    Root keeps them: they may be needed to read a keyring of Ceph's user.
    """
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    libc.capset(ctypes.byref(header), ctypes.byref(nothing))


def _end_with(connection: int, limit_s: float) -> None:
    """Wait until the other end is gone, then as long as an orderly end may take; librados may hang for ever."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    while not poll.poll():
        pass
    time.sleep(limit_s)
    os._exit(1)
