"""This host as commands see it, beside a daemon or without one: nothing is started, locked or written."""

import argparse
import functools
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from plumbline.baseline.book import Book, load_book, read_own
from plumbline.baseline.profiles import LoadedProfile, load_profiles
from plumbline.baseline.site import LoadedSite, read_site
from plumbline.commands import shared
from plumbline.config.model import Config
from plumbline.config.options import read_config, storage_path
from plumbline.core.roots import Roots
from plumbline.core.storage_names import CLASS_FILE, RECORDED
from plumbline.errors import BaselineError, ParseError, Unavailable
from plumbline.probes.run.model import ClusterGuard
from plumbline.probes.run.plan import ProbingPlan, make_plan
from plumbline.probes.run.single_run import RunOnce
from plumbline.sources.disk.block import BlockDevice, read_block_devices
from plumbline.sources.disk.diskusers import DiskUsers, read_disk_users
from plumbline.sources.net.drivers import load_table
from plumbline.sources.net.genetlink import resolve_family
from plumbline.sources.net.network import NetworkReader, PortReading
from plumbline.sources.net.portfacts import Transports


class Node(Struct, frozen=True):
    config_file: Path | None
    config: Config
    roots: Roots
    storage: Path
    host: str
    plan: ProbingPlan
    sites: tuple[LoadedSite, ...]

    @property
    def profiles(self) -> Mapping[str, LoadedProfile]:
        """The documented ones. Read when a command asks for them: most do not, and it takes a tenth of a second."""
        return _profiles()

    def book(self) -> Book:
        return load_book(
            self.config.baseline,
            where=str(self.config_file or "configuration"),
            storage=self.storage,
            host=self.host,
            targets=self.plan.targets(),
            environment=os.environ,
        )

    def run_once(self, cluster: ClusterGuard | None, stopping: threading.Event) -> RunOnce:
        """Runs this node's probes one at a time, until ``stopping`` is set."""
        return RunOnce(
            storage=self.storage,
            roots=self.roots,
            environment=os.environ,
            rules=self.config.gates,
            cluster=cluster,
            stopping=stopping,
        )


@functools.cache  # part of the package, and commands end: a daemon would keep them for ever
def _profiles() -> dict[str, LoadedProfile]:
    return load_profiles()


def this_node(options: argparse.Namespace, adjust: Callable[[Config], Config] = lambda config: config) -> Node:
    """Read configuration and baselines of this host, by the flags that every command has, without starting, locking or
    writing anything. ``adjust`` changes the configuration before it is planned."""
    config = adjust(read_config(options.config_file))
    roots, host = shared.roots(options), socket.gethostname()
    storage = storage_path(options.storage_path, config, os.environ)
    # access, not exists(): this user may not see into the daemon's directory, which is no error here
    own = [storage / name for name in (CLASS_FILE, RECORDED) if os.access(storage / name, os.R_OK)]
    return Node(
        config_file=options.config_file,
        config=config,
        roots=roots,
        storage=storage,
        host=host,
        plan=make_plan(config, storage=storage, roots=roots, environment=os.environ),
        sites=(
            *(read_site(Path(file), host=host) for file in config.baseline.files),
            *(site for file in own if (site := _own_site(file, config, host)) is not None),
        ),
    )


def _own_site(file: Path, config: Config, host: str) -> LoadedSite | None:
    """``None``, and a line says why, for figures of the class that are refused, as in the daemon (:func:`load_book`).
    Raises :class:`BaselineError` for the node's own."""
    try:
        return read_own(file, config.baseline, host=host, environment=os.environ)
    except BaselineError as error:
        if file.name != CLASS_FILE:
            raise
        shared.complain(f"left out: {error}")
        return None


def read_disks(
    *, config_file: Path | None, roots: Roots, only: str | None = None
) -> tuple[tuple[BlockDevice, ...], DiskUsers, list[tuple[str, str]]]:
    """The disks that the daemon would report and who uses them, read once; and those that could not be read, with the
    reason. ``only``: a disk to include even if it is excluded."""
    exclude = re.compile(read_config(config_file).devices.disk_exclude)
    skipped: list[tuple[str, str]] = []
    devices = read_block_devices(
        roots,
        on_skip=lambda name, reason: skipped.append((name, reason)),
        keep=lambda name: name == only or not exclude.fullmatch(name),
    )
    return devices, read_disk_users(roots), skipped


def read_ports(*, config_file: Path | None) -> tuple[tuple[PortReading, ...], list[tuple[str, str]]]:
    """The network devices that the daemon would report, read once; and unreadable ones, with the reason."""
    exclude = re.compile(read_config(config_file).devices.nic_exclude)
    transports = Transports.to_kernel()
    skipped: list[tuple[str, str]] = []
    try:
        reader = NetworkReader(
            table=load_table(),
            resolve_family=resolve_family,
            scrape=transports,
            slow=transports,
            clock=time.monotonic,
            keep=lambda device: not exclude.fullmatch(device),
        )
        reader.refresh()
        return reader.read_ports(lambda device, reason: skipped.append((device, reason))), skipped
    finally:
        transports.close()


def osd_classes(*, config_file: Path | None, roots: Roots) -> dict[str, str]:
    """OSD → class of the disk that holds its data, as far as this user may see it."""
    try:
        devices, users, _ = read_disks(config_file=config_file, roots=roots)
    except (Unavailable, ParseError):
        return {}
    classes = {device.name: device.device_class for device in devices}
    # the disk itself last, so that it wins: a volume on an NVMe disk does not have its class
    below = sorted(users.osds().items(), key=lambda item: not item[0].startswith(("dm-", "md", "bcache")))
    return {
        osd: device_class for device, osds in below for osd in osds.split(",") if (device_class := classes.get(device))
    }
