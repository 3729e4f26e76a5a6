"""A real Ceph cluster on loopback: one monitor, one or two managers, three BlueStore OSDs, an S3 gateway on request.

Plain processes of the Debian packages in ``requirements/debian-ceph.txt``, with a configuration, keys, ports and
sockets of their own in one temporary directory: nothing of a cluster this host may belong to is read or touched.
https://docs.ceph.com/en/pacific/install/manual-deployment/ (the same steps, by hand)

Every OSD stands on a "host" of its own in the CRUSH map, as in a small real cluster. The daemons die with the thread
that started them (parent-death signal), also where the tests are killed outright; the directory such a death leaves
behind is removed at the next start, as nobody holds its lock any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ceph_client import WITHIN_S, CephClient, CephError
from .ceph_files import OSDS, conf_text
from .daemon import freeze
from .ports import free_port, free_ports

PROGRAMS = ("ceph", "ceph-authtool", "ceph-mon", "ceph-mgr", "ceph-osd", "monmaptool", "rados", "rbd", "setpriv")
PORTS = 64
"""An OSD listens on eight, a manager on two; those of one that was restarted may still be taken."""
_PREFIX = "plumbline-ceph-"
_BASE = Path("/var/tmp")
"""On a disk everywhere; BlueStore needs O_DIRECT. Short, too: a socket's path has at most 107 bytes."""


@dataclass(frozen=True, slots=True)
class S3:
    """An S3 endpoint and a user of it."""

    endpoint: str
    access_key: str
    secret_key: str


def missing(*others: str) -> list[str]:
    """The programs a cluster (and what else is asked) needs and this machine lacks."""
    return [name for name in (*PROGRAMS, *others) if shutil.which(name) is None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an OSD runs. ``within`` are the first words of its command line."""

    address: str
    within: tuple[str, ...]


@contextlib.contextmanager
def ceph_cluster(
    *,
    managers: int = 1,
    osd_gib: int = 4,
    options: Mapping[str, str] | None = None,
    disks: Mapping[int, str] | None = None,
    address: str = "127.0.0.1",
    places: Mapping[int, Place] | None = None,
) -> Iterator[CephCluster]:
    """Start one and wait until it is healthy; ended and removed afterwards, whatever happens.

    ``options`` go to the configuration's ``[global]`` section. ``disks``: OSD number → the kernel's name of a block
    device that it shall live on, instead of in a file. ``address``: of everybody else than the OSDs in ``places``.
    """
    sweep()
    new = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=_BASE))
    lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = new.rename(_BASE / new.name[1:])  # only now may another start's sweep look at it
    try:
        cluster = CephCluster(
            folder,
            managers=managers,
            osd_gib=osd_gib,
            options=options or {},
            disks=disks or {},
            address=address,
            places=places or {},
        )
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder)
        os.close(lock)


class CephCluster(CephClient):
    """Daemons and faults of one cluster; made by :func:`ceph_cluster`."""

    def __init__(
        self,
        folder: Path,
        *,
        managers: int,
        osd_gib: int,
        options: Mapping[str, str],
        disks: Mapping[int, str],
        address: str,
        places: Mapping[int, Place],
    ) -> None:
        super().__init__(folder, osds=OSDS)
        self.admin_keyring = self.keyring("client.admin")
        self.fsid = str(uuid.uuid4())
        # one range: an OSD that starts later binds no port of a manager that is not up yet
        ports = free_ports(managers + 2 + PORTS)
        self.managers = {chr(ord("x") + index): ports[index] for index in range(managers)}
        """Name → port of its ``/metrics``."""
        self.start_s: dict[str, float] = {}
        """Step of the start → seconds since its beginning."""
        self._disks, self._address, self._places = disks, address, places
        self._beyond_help = ""
        self._frozen: set[str] = set()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._all: list[subprocess.Popen[bytes]] = []
        self._osd_uuids = [str(uuid.uuid4()) for _ in range(OSDS)]
        self._mon_ports = ports[managers], ports[managers + 1]
        self._s3: S3 | None = None
        for part in ("run", "log", "crash", "mon", "mgr"):
            (folder / part).mkdir()
        self.conf.write_text(
            conf_text(
                folder,
                self.fsid,
                self._mon_ports,
                ports=ports[managers + 2 :],
                osd_gib=osd_gib,
                options=options,
                address=address,
                osd_addresses={number: place.address for number, place in places.items()},
            )
        )

    def daemon(self, name: str, *command: str) -> Any:
        """A daemon's admin socket (``osd.0 perf dump``), decoded."""
        return json.loads(self.run("ceph", "daemon", self.socket(name), *command))

    def socket(self, name: str) -> Path:
        """The path of a daemon's admin socket."""
        return self.folder / "run" / f"ceph-{name}.asok"

    # -- daemons and faults

    def pid(self, name: str) -> int:
        """The process id of ``mon.a``, ``mgr.x``, ``osd.1`` …"""
        return self._running[name].pid

    @property
    def osd_pids(self) -> dict[int, int]:
        """OSD number → process id, of those that run."""
        found = {name: process.pid for name, process in self._running.items() if process.poll() is None}
        return {int(name[4:]): pid for name, pid in found.items() if name.startswith("osd.")}

    def kill(self, name: str) -> None:
        """SIGKILL to one daemon, as a crash."""
        self._frozen.discard(name)
        _end_groups([self._running.pop(name)])

    def stop_osd(self, number: int) -> None:
        """End an OSD in order and wait until the monitor has it down."""
        self._end_osd(number, signal.SIGTERM)

    def kill_osd(self, number: int) -> None:
        """Crash an OSD and wait until its peers have told the monitor."""
        self._end_osd(number, signal.SIGKILL)

    def start_osd(self, number: int) -> None:
        """Start a stopped OSD again and wait until it is up."""
        self.start_daemon(f"osd.{number}")
        self.eventually(lambda: self._is_up(number), f"osd.{number} is not up")

    def freeze_osd(self, number: int) -> None:
        """SIGSTOP: it answers nothing any more; the monitor marks it down after ``osd_heartbeat_grace`` (20 s)."""
        self.freeze(f"osd.{number}")

    def thaw_osd(self, number: int) -> None:
        """Let a frozen OSD go on."""
        self.thaw(f"osd.{number}")

    def freeze(self, name: str) -> None:
        """Stop any daemon as SIGSTOP does."""
        freeze(self.pid(name))
        self._frozen.add(name)

    def thaw(self, name: str) -> None:
        """SIGCONT to any daemon."""
        os.kill(self.pid(name), signal.SIGCONT)
        self._frozen.discard(name)

    def heal(self) -> None:
        """Undo every fault that was not undone: all daemons run again and the cluster is healthy."""
        wanted = {"mon.a", *(f"mgr.{name}" for name in self.managers), *(f"osd.{number}" for number in range(OSDS))}
        lost = wanted - {name for name, process in self._running.items() if process.poll() is None}
        if not lost and not self._frozen:
            return
        try:
            for name in tuple(self._frozen):
                self.thaw(name)
            for name in sorted(lost):  # the monitor before the OSDs
                self.start_daemon(name)
            self.wait_healthy()
        except CephError as error:
            self._beyond_help = str(error)
            raise

    def must_be_whole(self) -> None:
        """Fails at once where :meth:`heal` has failed: the tests that follow need not wait minutes each."""
        if self._beyond_help:
            raise CephError(f"after an earlier test this cluster could not be mended: {self._beyond_help}")

    def kill_mon(self) -> None:
        """Crash the one monitor."""
        self.kill("mon.a")

    def start_daemon(self, name: str) -> None:
        """Start ``mon.a``, ``mgr.x`` or ``osd.1`` (again)."""
        kind, _, identity = name.partition(".")
        place = self._places.get(int(identity)) if kind == "osd" else None
        self._spawn(name, *(place.within if place else ()), f"ceph-{kind}", "-i", identity, "-f")

    def metrics(self) -> str:
        """The active manager's Prometheus page, as soon as it has one."""
        name = self.ceph_json("mgr", "dump")["active_name"]
        return str(self.eventually(lambda: _page(f"http://127.0.0.1:{self.managers[name]}/metrics"), "no /metrics"))

    def start_rgw(self) -> S3:
        """The S3 gateway (Debian package ``radosgw``) with one user, started at the first call."""
        if self._s3 is None:
            self._s3 = self._start_rgw()
        return self._s3

    # -- start and stop

    def start(self) -> None:
        """Everything; the OSDs' file systems are made while the monitor starts."""
        began = time.monotonic()
        self._make_mon()
        made = self._begin_osds()
        self.start_daemon("mon.a")
        self._note("monitor", began)
        self.ceph_all(*self._first_commands())
        for name in self.managers:
            self.start_daemon(f"mgr.{name}")
        self._note("manager", began)
        for number, process in enumerate(made):
            if process.wait(WITHIN_S):
                raise CephError(f"mkfs of osd.{number} failed\n{self.last_words(f'mkfs.{number}')}")
            self.start_daemon(f"osd.{number}")
        self._note("mkfs", began)
        self.wait_healthy()
        self._note("healthy", began)

    def stop(self) -> None:
        """Kill every process group at once: the data is thrown away anyway."""
        self.hang_up()
        _end_groups(self._all)
        self._running.clear()
        self._all.clear()

    def last_words(self, name: str, lines: int = 15) -> str:
        """The end of what a daemon wrote to its standard error."""
        with contextlib.suppress(OSError):
            text = (self.folder / "log" / f"{name}.stderr").read_text(errors="replace")
            return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])
        return ""

    def _note(self, step: str, began: float) -> None:
        self.start_s[step] = round(time.monotonic() - began, 1)

    def _make_mon(self) -> None:
        """Its store already knows every daemon's key: no command is needed for that later."""
        seed, monmap = self.folder / "seed.keyring", self.folder / "monmap"
        self._add_key(seed, "mon.", {"mon": "allow *"})
        self._new_key(seed, "client.admin", dict.fromkeys(("mon", "osd", "mgr", "mds"), "allow *"))
        for name in self.managers:
            self._new_key(seed, f"mgr.{name}", {"mon": "allow profile mgr", "osd": "allow *"})
        for number in range(OSDS):
            caps = {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"}
            self._new_key(seed, f"osd.{number}", caps)
        address = "[v2:{0}:{1},v1:{0}:{2}]".format(self._address, *self._mon_ports)
        self.run("monmaptool", "--create", "--fsid", self.fsid, "--addv", "a", address, monmap)
        self.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", seed)

    def _new_key(self, seed: Path, name: str, caps: Mapping[str, str]) -> None:
        """A new key where its owner looks for it, and in the monitor's seed."""
        self._add_key(self.keyring(name), name, caps)
        self.run("ceph-authtool", seed, "--import-keyring", self.keyring(name))

    def _add_key(self, keyring: Path, name: str, caps: Mapping[str, str]) -> None:
        """Of the type that this release makes: ``aes``, from 19.2.6 and 20.2.4 on ``aes256k``."""
        words = [word for pair in caps.items() for word in ("--cap", *pair)]
        self.run("ceph-authtool", keyring, "--create-keyring", "--gen-key", "-n", name, *words)

    def _begin_osds(self) -> list[subprocess.Popen[bytes]]:
        """All at a time: a mkfs mostly waits for its disk."""
        made = []
        for number, osd_uuid in enumerate(self._osd_uuids):
            data = self.folder / "osd" / str(number)
            data.mkdir(parents=True)
            if number in self._disks:
                (data / "block").symlink_to(f"/dev/{self._disks[number]}")  # BlueStore takes what is there
            argv = ("ceph-osd", "-i", str(number), "--mkfs", "--no-mon-config", "--osd-uuid", osd_uuid)
            made.append(self._popen(f"mkfs.{number}", *argv))
        return made

    def _first_commands(self) -> Iterator[str]:
        for number, osd_uuid in enumerate(self._osd_uuids):
            yield f"osd new {osd_uuid} {number}"
        # forced, because no manager has told yet which options its modules have
        yield "config set mgr mgr/devicehealth/enable_monitoring false --force"  # it makes a pool
        yield "config set mgr mgr/prometheus/server_addr 127.0.0.1 --force"
        # figures of a second ago, not of fifteen; a busy machine may take longer than that to collect them
        yield "config set mgr mgr/prometheus/scrape_interval 1 --force"
        yield "config set mgr mgr/prometheus/stale_cache_strategy return --force"
        # from 18 on they are left to the ceph-exporter, which Debian does not have; 16 ignores the option
        yield "config set mgr mgr/prometheus/exclude_perf_counters false --force"
        for name, port in self.managers.items():
            yield f"config set mgr mgr/prometheus/{name}/server_port {port} --force"

    def _end_osd(self, number: int, how: signal.Signals) -> None:
        name = f"osd.{number}"
        process = self._running.pop(name)
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)
        self._frozen.discard(name)
        process.wait(WITHIN_S)
        self.eventually(lambda: not self._is_up(number), f"osd.{number} is not down")

    def _is_up(self, number: int) -> bool:
        (osd,) = [osd for osd in self.ceph_json("osd", "dump")["osds"] if osd["osd"] == number]
        return bool(osd["up"])

    def _start_rgw(self) -> S3:
        port = free_port()
        self.add_user("client.rgw.a", {"mon": "allow rw", "osd": "allow rwx"})
        self._spawn(
            "client.rgw.a", "radosgw", "-n", "client.rgw.a", "-f",
            f"--rgw-frontends=beast endpoint=127.0.0.1:{port}", "--rgw-thread-pool-size=16",
        )  # fmt: skip
        endpoint = f"http://127.0.0.1:{port}"
        self.eventually(lambda: _page(endpoint), "the S3 gateway does not answer")
        user = self.run("radosgw-admin", "user", "create", "--uid=plumbline", "--display-name=Plumbline")
        key = json.loads(user)["keys"][0]
        return S3(endpoint, key["access_key"], key["secret_key"])

    def _spawn(self, name: str, *argv: str) -> None:
        self._running[name] = self._popen(name, *argv)

    def _popen(self, name: str, *argv: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log" / f"{name}.stderr").open("ab") as output:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *argv],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.environment, process_group=0,
                cwd="/",  # as under systemd: Debian 13's OSDs look for their object classes in a relative directory
            )  # fmt: skip
        self._all.append(process)
        return process

    def check(self) -> None:
        """No daemon has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise CephError(f"{name} ended by itself ({process.returncode})\n{self.last_words(name)}")


def _page(url: str) -> str:
    """A page's body; empty while there is none."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def _end_groups(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    running = [process for process in processes if process.poll() is None]  # another's id may be somebody else's by now
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
    for process in running:
        process.wait(WITHIN_S)


def sweep() -> None:
    """Remove what clusters left whose tests were killed; their daemons died with them."""
    for folder in _BASE.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(fd)
