"""The cluster map, queried in the background: the scrape shows the latest answer.

A separate process queries it every minute and exits (``probes/ceph_task.py``): if it hangs it is killed, and the
session that renews the cluster's lock never waits for the manager.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping

from plumbline.config.model import Config
from plumbline.core.process import ProcessRunner, Runner
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import Slot
from plumbline.errors import ParseError, PlumblineError, ProbeRefused, Unavailable
from plumbline.probes.ceph import ceph_task
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.sources.ceph.ceph_daemons import head_daemon
from plumbline.sources.ceph.cephmap import CephMap, parse_cephmap

log = logging.getLogger(__name__)

CEPH_MAP, CEPH_MAP_EVERY_S = "ceph map", 60.0
"""Capacity changes over days, and a minute's delay is acceptable for a host that dies."""
KEPT_S = 300.0
"""How long to keep showing the last map when the cluster answers partly or not at all: a change of manager takes half a
minute after a crash, and nothing is lost by it. The map's age is exported."""
_QUESTIONS = 5
# About 1 KiB an OSD.
_MAX_BYTES = 64 << 20
_MAX_WORDS = 300


class CephMapWatch:
    """The slot and the job that fills it. ``config`` returns the active configuration, ``wall`` Unix seconds."""

    def __init__(
        self,
        config: Callable[[], Config],
        *,
        roots: Roots,
        environment: Mapping[str, str],
        runner: Runner | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._config, self._roots, self._wall = config, roots, wall
        self._processes = ProcessRunner(environment)
        self._runner: Runner = runner or self._processes
        self._known: tuple[CephAccess, CephMap] | None = None
        self._whole = True
        self.map = Slot[CephMap](self._read, what="the cluster map's parts", stale_after_s=4 * CEPH_MAP_EVERY_S)

    def jobs(self) -> list[Job]:
        """One job; it limits its own run time."""
        return [Job(CEPH_MAP, CEPH_MAP_EVERY_S, 0.0, self.map.refresh)]

    def stop(self) -> None:
        """End the running queries."""
        self._processes.stop()

    def _read(self) -> CephMap:
        """:class:`Unavailable` if this node is not to ask, has no cluster or has no key."""
        config = self._config()
        self._check(config)
        access = CephAccess.of(config.ceph)
        try:
            access.check()
        except ProbeRefused as refusal:
            raise Unavailable(str(refusal)) from refusal
        last = self._last(access)
        try:
            found = self._ask(access)
        except PlumblineError as error:
            if last is None:
                raise
            return self._kept(last, str(error))
        if found.unread and last is not None and not last.unread:
            return self._kept(last, found.unread)
        self._known, self._whole = (access, found), True
        return found

    def _check(self, config: Config) -> None:
        if not config.collectors.get("cephmap", True):
            raise Unavailable("the collector is switched off")
        if config.ceph.map == "never":
            raise Unavailable("ceph.map is never")
        if config.ceph.map == "auto" and not head_daemon(self._roots):
            raise Unavailable("no monitor or manager is set up here; ceph.map: always asks nevertheless")

    def _ask(self, access: CephAccess) -> CephMap:
        librados = access.librados()
        limit_s = librados.connect_timeout_s + _QUESTIONS * librados.operation_timeout_s + 1.0
        asked_at = self._wall()
        done = self._runner.run(ceph_task.argv(librados, "map"), timeout_s=limit_s, max_output_bytes=_MAX_BYTES)
        if done.cancelled:
            raise Unavailable("the daemon is ending")
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:_MAX_WORDS]
            raise PlumblineError(f"the cluster does not tell its map: {said or f'no answer within {limit_s:g} s'}")
        try:
            answers = json.loads(done.stdout)
        except (ValueError, RecursionError) as error:
            raise ParseError("the cluster map", f"not JSON: {error}") from None
        return parse_cephmap(answers, read_ts=asked_at)

    def _last(self, access: CephAccess) -> CephMap | None:
        """The last map of this cluster, if it is fresh enough."""
        if self._known is None or self._known[0] != access or self._wall() - self._known[1].read_ts > KEPT_S:
            return None
        return self._known[1]

    def _kept(self, last: CephMap, why: str) -> CephMap:
        if self._whole:
            log.info("%s; the last map is shown for up to %.0f s", why, KEPT_S)
        self._whole = False
        return last
