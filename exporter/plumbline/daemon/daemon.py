"""The daemon's life from start to reload to stop; ``daemon/wiring.py`` builds its parts.

scrape    sources.read_x() → Reading → collectors.samples() → exposition → server
probes    probing (canary processes, scheduled jobs) → state → collectors
reload    new file → checked → planned → applied; a failure before "applied" keeps the running configuration. Everything
          before it happens outside the main loop: a file may be on a mount that hangs
"""

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from plumbline import __version__
from plumbline.background.ceph import CEPH_MAP
from plumbline.background.host import DISKS_CHANGED, LINK_FACTS, LINKS_CHANGED, NETWORK_FACTS
from plumbline.background.leases import Leases
from plumbline.background.presence import DISK_PRESENCE
from plumbline.checks.model import Finding
from plumbline.collectors.daemon import DaemonState
from plumbline.collectors.registry import NAMES
from plumbline.config.installation import Installation, announce
from plumbline.config.model import Config, split_address
from plumbline.config.options import Overrides, check_key_files, read_config, storage_path
from plumbline.core import threads
from plumbline.core.answers import ThreadedCall, ask_side_by_side
from plumbline.core.memory import give_back_memory, keep_memory_private, share_one_heap
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job, Scheduler
from plumbline.core.single_flight import Shared
from plumbline.daemon.running import FileWatch, HostContext, PreparedConfig, named, web_file
from plumbline.daemon.signals import Signals
from plumbline.daemon.wiring import CEPH, FACTS_WITHIN_S, FINGERPRINT, Wiring, no_daemon
from plumbline.errors import PlumblineError, StateError, Unavailable
from plumbline.probes.run.plan import recordable
from plumbline.probes.run.state import ProbeRecord, StateStore, read_state
from plumbline.sources.kernel.hotplug import BlockHotplug
from plumbline.sources.net.genetlink import settings_group
from plumbline.sources.net.linkevents import LinkEvents
from plumbline.status.recent import RecentCounters
from plumbline.web.guard import Exposure, Guard, make_guard
from plumbline.web.routes import Site
from plumbline.web.server import Server

if TYPE_CHECKING:
    from plumbline.status.model import StatusModel

log = logging.getLogger("plumbline")

# Settings change once a month, and growth is judged over an hour, so a minute's delay does not matter.
JUDGE_EVERY_S = 60.0
FIRST_PAGE_WITHIN_S, FIRST_READINGS_WITHIN_S = 15.0, 7.0
"""After the start a page of metrics comes within the first limit, whatever hangs. The second is the part of it
spent waiting for the slow tier; the rest is the limit for all collectors together."""
CHECK_WITHIN_S = 10.0
"""How long each look of `plumbline check` waits for facts; a disk that hangs must not make the command hang."""
FINDINGS, STATE = "findings", "state"
LOOK_AT_STATE_EVERY_S = 5.0  # A path that was replaced or could not be written to is used again this soon
RELOAD_CHECK_EVERY_S = 2.0  # Only checks the times of a few files; short, so that a saved change takes effect soon
PLAN_ANEW_EVERY_S = 60.0  # The shortest time between plans for OSDs that come and go: each plan queries the cluster
STOP_WITHIN_S = 1.6  # How long the parts may take to stop; SIGTERM promises two seconds altogether


def serve(*, config_file: Path | None, storage_path_flag: Path | None, roots: Roots, overrides: Overrides) -> int:
    """Run the daemon until SIGTERM or SIGINT; returns the exit code. Raises one clear error if it can't start."""
    share_one_heap()
    environment = dict(os.environ)
    reread = partial(read_config, config_file, overrides, collectors=NAMES)
    config = reread()
    store = StateStore(storage_path(storage_path_flag, config, environment))
    store.open()
    try:
        context = HostContext(config_file, store.directory, roots, environment, socket.gethostname())
        return Daemon(config, context, store, reread=reread).run()
    finally:
        store.close()


class Examined(msgspec.Struct, frozen=True):
    """The result of `plumbline check`. ``blind``: what failed or hung → why; nothing that depends on it was judged."""

    host: str
    findings: tuple[Finding, ...]
    window_s: float
    blind: Mapping[str, str]


def examine(*, config_file: Path | None, storage_path_flag: Path | None, roots: Roots, wait_s: float) -> Examined:
    """Look at this host twice, ``wait_s`` seconds apart, and judge it, whether or not a daemon runs. Only reads:
    starts, locks and writes nothing. :class:`Unavailable` if nothing at all could be judged."""
    config = read_config(config_file, collectors=NAMES)
    store = StateStore(storage_path(storage_path_flag, config, os.environ))
    host = socket.gethostname()
    wired = Wiring(HostContext(config_file, store.directory, roots, os.environ, host), config, store, state=no_daemon)
    with suppress(StateError):  # without it nothing is known of the probes
        records = read_state(store.directory)
        wired.record = lambda probe: records.get(probe, ProbeRecord())
    wired.collect(daemon=False)
    jobs = {job.name: partial(job.run, threading.Event()) for job in wired.slow_tier()}
    hung: set[str] = set()
    for pause_s in (0.0, wait_s):
        time.sleep(pause_s)
        # a job that hung is not run again: its slot reports that, and a rerun would only delay the next look too
        chosen = {name: run for name, run in jobs.items() if name not in hung}
        hung |= set(ask_side_by_side(chosen, CHECK_WITHIN_S, what="look")[1])
        snapshot = wired.exposition.scrape()
        findings = wired.judge.look(snapshot.readings, time.monotonic())
    failed = (collector for collector in snapshot.collectors if not collector.success)
    blind = {f"collector {collector.name} fails": collector.reason for collector in failed}
    blind |= dict.fromkeys(sorted(hung), f"no answer within {CHECK_WITHIN_S:g} s; see dmesg")
    if not findings:
        raise Unavailable("nothing could be judged: " + ("; ".join(blind.values()) or "the host gave no readings"))
    return Examined(host, findings, wait_s, blind)


class Daemon:
    """One daemon: :meth:`run` returns after a request to stop."""

    def __init__(
        self, config: Config, context: HostContext, store: StateStore, *, reread: Callable[[], Config]
    ) -> None:
        self._reread, self._store, self._context = reread, store, context
        self._signals = Signals()
        # Runs work that may block; its answer is what to do next in the main loop.
        self._call = ThreadedCall[Callable[[], object]](self._signals.wake)
        # Monotonic seconds: the start, and when the page of metrics becomes available.
        self._began_s = self._page_from_s = math.inf
        self._reload_error = ""
        # Includes the files of a refused configuration, because they may be corrected.
        self._named_files = named(config)
        self._planned_for: object = None
        self._files = FileWatch(lambda: context.files(self._named_files))
        self._guard = make_guard(web_file(config))
        self._wired = Wiring(context, config, store, state=self._state)
        self._started, self._recent = time.time(), RecentCounters()
        self._housekeeping = Scheduler()
        site = Site(
            self._wired.exposition,
            status=Shared(self._status_page),
            why=partial(self._why, Shared(self._model)),
            ready=self._not_ready_because,
            scraped=lambda snapshot: self._wired.leases.scraped(snapshot.readings.or_empty(Leases)),
        )
        host, port = split_address(config.web.listen_address)
        self._server = Server(
            host, port, site.respond, logger=log, guard=self._guard, max_requests=config.web.max_requests
        )

    def run(self) -> int:
        self._began_s = time.monotonic()
        self._signals.install()
        keep_memory_private()
        given_up = self._wired.give_up_capabilities()  # before a second thread: capabilities belong to threads
        self._server.start()  # first: a port in use must be detected before a probe touches the disk
        if given_up:
            log.info("%s", given_up)
        self._warn_of_exposure()
        url = f"{'https' if self._guard.encrypts else 'http'}://{self._server.address}"
        file = self._context.config_file
        here = Installation(file and file.absolute(), self._store.directory, url, os.getpid())
        withdraw = announce(here, self._context.environment)
        kick = self._housekeeping.kick
        events: list[LinkEvents | BlockHotplug] = [
            LinkEvents(lambda: self._kick(LINKS_CHANGED), settings_group=settings_group),
            BlockHotplug(self._context.roots, lambda: self._kick(DISKS_CHANGED)),
        ]
        try:
            findings = Job(FINDINGS, JUDGE_EVERY_S, JUDGE_EVERY_S, self._look)
            state = Job(STATE, LOOK_AT_STATE_EVERY_S, 0.0, lambda _: self._store.look())
            self._housekeeping.replace([*self._wired.jobs(), state, findings])
            for source in events:
                try:
                    source.start()
                except (PlumblineError, OSError) as error:
                    log.info("%s; changes are found by the periodic check only", error)
            self._await_facts()
            self._apply(self._wired.running)
            kick(CEPH)  # only now is it known whether a probe needs it
            kick(DISK_PRESENCE)  # only now are serial numbers known
            self._page_from_s = self._began_s + FIRST_PAGE_WITHIN_S
            kick(FINDINGS)  # last: its first run waits for all other due jobs
            print(f"plumbline {__version__}: status page {url}/  metrics {url}/metrics", flush=True)
            self._loop()
        finally:
            withdraw()
            self._end(events)
            self._wired.watch.latency.close()
        return 0

    def _look(self, cancel: threading.Event) -> None:
        """Judge the host. The first run waits until the slow tier has been read; after it, metrics are served."""
        first = self._not_ready_because() is not None
        if first:
            self._await_readings(cancel)
        try:
            snapshot = self._wired.exposition.scrape()
            self._wired.judge.look(snapshot.readings, time.monotonic())
            self._recent.remember(snapshot.readings, time.monotonic())
        finally:
            if first:
                give_back_memory()
                self._page_from_s = time.monotonic()
                log.info("the first page of metrics is available after %.1f s", self._page_from_s - self._began_s)

    def _await_readings(self, cancel: threading.Event) -> None:
        """Wait until every other job has run once. Jobs that hang are logged, and the first page omits them."""
        left = self._housekeeping.owing() - {FINDINGS}
        deadline = self._began_s + FIRST_READINGS_WITHIN_S
        while left and time.monotonic() < deadline and not cancel.wait(0.02):
            left &= self._housekeeping.owing()
        if left and not cancel.is_set():
            jobs, within_s = ", ".join(sorted(left)), FIRST_READINGS_WITHIN_S
            log.warning("the first page comes without: %s; no answer for %g s, see dmesg", jobs, within_s)

    def _kick(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self._housekeeping.kick(job)

    def _await_facts(self) -> None:
        """Wait for the facts, so that the first scrape is complete; a hung disk must not block the start or a stop."""
        deadline = time.monotonic() + FACTS_WITHIN_S
        while not (self._wired.watch.facts_read or self._signals.stop) and time.monotonic() < deadline:
            self._signals.wait(0.02)

    def _loop(self) -> None:
        next_check = time.monotonic() + RELOAD_CHECK_EVERY_S
        next_plan = 0.0
        signals = self._signals
        while not signals.stop:
            signals.wait(1.0)
            self._wired.probing.poll()
            if (then := self._call.fetch()) and not signals.stop:
                then()
            self._follow_disks()
            if self._wired.watch.network.wants_refresh:
                self._housekeeping.kick(NETWORK_FACTS)
            if self._call.idle and time.monotonic() >= next_plan and (because := self._wired.outdated):
                next_plan = time.monotonic() + PLAN_ANEW_EVERY_S
                self._plan_anew(because)
            if self._call.idle and (signals.reload or time.monotonic() >= next_check):
                next_check = time.monotonic() + RELOAD_CHECK_EVERY_S
                forced, signals.reload = signals.reload, False
                self._call.ask(partial(self._look_for_changes, forced=forced), name="reload")

    def _end(self, events: list[LinkEvents | BlockHotplug]) -> None:
        began = time.monotonic()
        closing = threads.start("end", partial(self._server.stop, timeout_s=1.0), of="http")
        for name in self._wired.probing.stop(STOP_WITHIN_S):
            log.warning("probe %s could not be ended: it is stuck in the kernel; left behind", name)
        self._wired.cluster.close(max(0.1, began + STOP_WITHIN_S - time.monotonic()))
        self._wired.watch.stop()
        self._wired.ceph_map.stop()
        self._housekeeping.stop(0.1)
        for source in events:
            source.stop()
        closing.join(max(0.0, began + STOP_WITHIN_S - time.monotonic()))
        log.info("stopped")

    def _look_for_changes(self, *, forced: bool) -> Callable[[], object]:
        """Read the files if they changed or if ``forced``; returns what to do next. May block."""
        return self._files.mark_read(self._read_anew) if forced or self._files.changed else lambda: None

    def _read_anew(self) -> Callable[[], object]:
        """Prepare the new configuration. An error in the files changes nothing."""
        try:
            config = self._reread()
            self._named_files = named(config)
            check_key_files(config, str(self._context.config_file or "configuration"))
            guard = make_guard(web_file(config), self._guard)
            running = self._prepare(config)
        except PlumblineError as error:
            return partial(self._refuse, error)
        return partial(self._accept, running, guard)

    def _prepare(self, config: Config) -> PreparedConfig:
        """Where baselines have to be signed, one that is refused replaces none: the figures in use stay."""
        before = self._wired.running.book
        running = self._context.prepare(config, self._wired.watch.disks, before)
        error = running.book.recorded_error
        if error is not None and config.baseline.allowed_signers is not None and before.recorded_error is None:
            raise error
        return running

    def _refuse(self, error: PlumblineError) -> None:
        self._reload_error = str(error)
        log.error("reload refused, the running configuration stays: %s", error)

    def _accept(self, running: PreparedConfig, guard: Guard) -> None:
        old = self._wired.running.config
        web = replace(running.config.web, config_file=old.web.config_file)
        if web != old.web or running.config.storage_path != old.storage_path:
            log.warning("web.* and storage_path take effect at the next restart; the rest does now")
        if guard is not self._guard:
            self._guard = guard
            self._server.use(guard)
            self._warn_of_exposure()
        self._apply(running)
        self._housekeeping.kick(LINK_FACTS)  # the new configuration may name other devices for Ceph
        self._kick((CEPH, CEPH_MAP, FINGERPRINT))
        added = {name for name in NAMES if running.config.collects(name) and not old.collects(name)}
        self._kick(job.name for job in self._wired.jobs() if not added.isdisjoint(job.serves))
        self._reload_error = ""
        log.info("configuration reloaded")

    def _follow_disks(self) -> None:
        """Plan again when disks or OSDs appear or disappear: some probes exist once for each of them."""
        if not (self._wired.watch.facts_read and self._call.idle):
            return
        named = frozenset((disk.name, disk.serial) for disk in self._wired.watch.disks)
        disks = (named, dict(self._wired.watch.storage.osds))
        if disks == self._planned_for:
            return
        first, self._planned_for = self._planned_for is None, disks
        self._housekeeping.kick(FINGERPRINT)  # so that another disk asks for a baseline at once
        self._plan_anew("disks changed", level=logging.DEBUG if first else logging.INFO)

    def _plan_anew(self, because: str, *, level: int = logging.INFO) -> None:
        """Plan the active configuration again, because it may apply to other devices by now. Does not read the file,
        which may be half edited."""
        config = self._wired.running.config

        def plan() -> Callable[[], object]:
            try:
                return partial(self._apply_plan, self._prepare(config), because, level)
            except PlumblineError as error:
                return partial(log.warning, "%s, the probes stay as they are: %s", because, error)

        self._call.ask(plan, name="plan")

    def _apply_plan(self, running: PreparedConfig, because: str, level: int) -> None:
        if running.plan != self._wired.running.plan:
            log.log(level, "%s: probes planned again", because)
            self._apply(replace(running, since=self._wired.running.since))

    def _apply(self, running: PreparedConfig) -> None:
        self._wired.apply(running)
        self._wired.collect()

    def _state(self) -> DaemonState:
        exposure = self._exposure()
        return DaemonState(
            reload_ok=not self._reload_error,
            since_ts=self._wired.running.since,
            state_saved=not self._store.save_failed,
            web=(exposure.reach, exposure.encryption, exposure.authentication),
            web_guards_lost=len(exposure.lost),
            thread_failures=threads.PROCESS.failures,
            web_refused={why.value: count for why, count in self._server.refused.items()},
        )

    def _exposure(self) -> Exposure:
        return Exposure.of(split_address(self._server.address)[0], self._guard)

    def _warn_of_exposure(self) -> None:
        if warning := self._exposure().warning:
            log.warning("%s: %s", self._server.address, warning)

    def _not_ready_because(self) -> str | None:
        return None if time.monotonic() >= self._page_from_s else "the host is being read for the first time"

    def _status_page(self) -> str:
        # 2 MiB, which a daemon that is only scraped does not need
        from plumbline.status.page import render_status  # noqa: PLC0415

        return render_status(self._model())

    def _why(self, model: Callable[[], "StatusModel"], what: str) -> bytes | None:
        from plumbline.status.why import answer  # noqa: PLC0415

        return answer(model(), what)

    def _model(self) -> "StatusModel":
        from plumbline.status.gather import Overview  # noqa: PLC0415

        model = Overview(host=self._context.host, started=self._started, recent=self._recent).model(
            self._wired.exposition.scrape(),
            probing=self._wired.probing,
            book=self._wired.running.book,
            recordable=recordable(self._wired.running.plan),
            fingerprint=self._wired.fingerprint(),
            reported=self._wired.reported(),
        )
        return replace(
            model,
            findings=self._wired.judge.findings,
            waiting_for=self._not_ready_because(),
            config_error=self._reload_error,
            exposure_warning=self._exposure().warning,
        )
