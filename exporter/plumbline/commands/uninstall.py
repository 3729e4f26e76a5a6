"""``plumbline uninstall``: show what this node keeps of Plumbline; with ``--apply``, remove it."""

import argparse
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from plumbline.commands import uninstall_files
from plumbline.commands.ceph import admin as ceph_admin
from plumbline.commands.shared import roots, say
from plumbline.commands.uninstall_files import Folder
from plumbline.config.model import Config
from plumbline.config.options import read_config, storage_path
from plumbline.core.directories import remove_link
from plumbline.core.units import size_text
from plumbline.sources.distribution import Distribution, read_distribution

_SHOWN = 3


def run(options: argparse.Namespace) -> int:
    """Exit code 0: shown or removed, 1: something is in the way or was left alone."""
    trees = roots(options)
    packaged = trees.etc / "plumbline" / "plumbline.yaml"
    file = options.config_file or (packaged if packaged.exists() else None)
    config = read_config(file)
    storages = [storage_path(options.storage_path, config, os.environ)]
    if options.storage_path is None and config.storage_path is None:
        storages.append(trees.var / "lib" / "plumbline")  # the service's own
    folders: dict[Path, Folder] = {}
    for storage in storages:
        folders |= {folder.path: folder for folder in uninstall_files.find(storage, _directories(config, storage))}

    in_cluster = ceph_admin.remove_ours(file, ceph_admin.Admin(), apply=options.apply) if options.ceph else 0
    if options.apply:
        for path in uninstall_files.remove(folders.values()):
            say(f"removed {path}")
        for storage in storages:
            if storage.is_symlink() and not storage.exists():
                remove_link(storage)  # DynamicUser= made it
                say(f"removed {storage}")
    else:
        for line in _plan(folders.values()):
            say(line)
    left = [line for folder in folders.values() for line in _left_alone(folder)]
    for line in (*left, *_elsewhere(config, trees.etc, ceph=options.ceph), *_installed(trees.etc, trees.var)):
        say(line)
    if not folders:
        say(f"# nothing of Plumbline is here ({', '.join(map(str, storages))})")
    elif not options.apply:
        say("# nothing was changed; --apply removes it")
    return 1 if left or in_cluster else 0


def _directories(config: Config, storage: Path) -> list[Path]:
    """Where the configuration sends probes that write, including disabled ones."""
    named = (probe.directory_in(storage) for probe in config.probes if getattr(probe, "directory", None))
    return [directory for directory in named if directory is not None]


def _plan(folders: Iterable[Folder]) -> Iterator[str]:
    for folder in folders:
        if folder.files:
            yield f"# {size_text(folder.size_bytes)}"
        for name in folder.files:
            yield shlex.join(["rm", str(folder.path / name)])
        if folder.whole:
            yield shlex.join(["rmdir", str(folder.path)])


def _left_alone(folder: Folder) -> Iterator[str]:
    if folder.strange:
        names = ", ".join(folder.strange[:_SHOWN]) + (" …" if len(folder.strange) > _SHOWN else "")
        yield f"# left alone: {folder.path} holds what Plumbline did not make: {names}"


def _elsewhere(config: Config, etc: Path, *, ceph: bool) -> Iterator[str]:
    """What is on other machines."""
    if not ceph and (etc / "ceph" / "ceph.conf").exists():
        yield "# pools and users in the Ceph cluster, if it has them: plumbline uninstall --ceph, on its last node"
    for probe in config.probes:
        bucket = getattr(probe, "bucket", None)
        if bucket is not None:
            yield f"# bucket {bucket}: the probe empties it after each run; remove it with your S3 client"


def _installed(etc: Path, var: Path) -> Iterator[str]:
    """How to remove the programs and the configuration."""
    by_dpkg = (var / "lib" / "dpkg" / "info" / "plumbline.list").exists()
    if by_dpkg or (etc.parent / "usr" / "lib" / "systemd" / "system" / "plumbline.service").exists():
        distribution = Distribution() if by_dpkg else read_distribution(etc)
        yield f"# to remove programs, unit and configuration: {distribution.remove('plumbline')}"
        return
    units = etc / "systemd" / "system"
    made = [
        units / "plumbline.service",
        units / "plumbline.service.d",
        etc / "plumbline",
        etc / "default" / "plumbline",
        Path("/opt/plumbline"),
    ]
    there = [str(path) for path in made if path.exists()]
    if there:
        yield f"# to remove the installation by hand: {shlex.join(['rm', '-r', *there])}; systemctl daemon-reload"
