"""``plumbline uninstall``: show what this node keeps of Plumbline; with ``--apply``, remove it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.commands.shared import add_world, roots
from plumbline.core.escape import visible
from plumbline.core.units import si

if TYPE_CHECKING:
    from plumbline.commands.uninstall_files import Folder
    from plumbline.config.model import Config

_SHOWN = 3


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the parser of ``plumbline uninstall``."""
    uninstall = commands.add_parser(
        "uninstall",
        help="show what Plumbline has left on this node; with --apply, remove it",
        description="State, results, the recorded baseline, the canary's and fio's files: on this node, in the storage "
        "path and wherever the configuration sends a probe. What Plumbline did not make is left alone: marks and "
        "content count, not names. Programs, units and configuration are the package's: the last lines say what "
        "removes them.",
        epilog="Exit code: 0 shown or removed, 1 something is in the way or was left alone.",
    )
    add_world(uninstall)
    uninstall.add_argument(
        "--ceph",
        action="store_true",
        help="the pools and users in the Ceph cluster, too: they serve all its nodes, so do this on the last one",
    )
    uninstall.add_argument("--apply", action="store_true", help="remove it")
    uninstall.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    import os  # noqa: PLC0415

    from plumbline.commands import uninstall_files as leftovers  # noqa: PLC0415
    from plumbline.config.options import Overrides, read_config, storage_path  # noqa: PLC0415
    from plumbline.config.workloads import load_catalogue  # noqa: PLC0415
    from plumbline.core.directories import remove_link  # noqa: PLC0415

    where = roots(options)
    packaged = where.etc / "plumbline" / "plumbline.yaml"
    file = options.config_file or (packaged if packaged.exists() else None)
    config = read_config(file, Overrides(), load_catalogue())
    storages = [storage_path(options.storage_path, config, os.environ)]
    if options.storage_path is None and config.storage_path is None:
        storages.append(where.var / "lib" / "plumbline")  # the service's own
    folders: dict[Path, Folder] = {}
    for storage in storages:
        folders |= {each.path: each for each in leftovers.find(storage, _directories(config))}

    in_cluster = _cluster(file, apply=options.apply) if options.ceph else 0
    if options.apply:
        for path in leftovers.remove(folders.values()):
            print(f"removed {visible(str(path))}", flush=True)
        for storage in storages:
            if storage.is_symlink() and not storage.exists():
                remove_link(storage)  # DynamicUser= made it
                print(f"removed {visible(str(storage))}")
    else:
        for line in _plan(folders.values()):
            print(visible(line))
    left = [line for each in folders.values() for line in _left_alone(each)]
    for line in (*left, *_others(config, where.etc, ceph=options.ceph), *_installed(where.etc, where.var)):
        print(visible(line))
    if not folders:
        print("# nothing of Plumbline is here" + visible(f" ({', '.join(map(str, storages))})" if storages else ""))
    elif not options.apply:
        print("# nothing was changed; --apply removes it")
    return 1 if left or in_cluster else 0


def _directories(config: Config) -> list[Path]:
    """Where the configuration sends probes that write, including disabled ones."""
    named = (getattr(probe, "directory", None) for probe in config.probes)
    return [Path(each) for each in named if each]


def _cluster(file: Path | None, *, apply: bool) -> int:
    from plumbline.commands import ceph  # noqa: PLC0415

    return ceph.remove(file, apply=apply)


def _plan(folders: Iterable[Folder]) -> Iterator[str]:
    for each in folders:
        if each.files:
            yield f"# {si(each.size_bytes, 'B')}"
        for name in each.files:
            yield shlex.join(["rm", str(each.path / name)])
        if each.whole:
            yield shlex.join(["rmdir", str(each.path)])


def _left_alone(folder: Folder) -> Iterator[str]:
    if folder.strange:
        names = ", ".join(folder.strange[:_SHOWN]) + (" …" if len(folder.strange) > _SHOWN else "")
        yield f"# left alone: {folder.path} holds what Plumbline did not make: {names}"


def _others(config: Config, etc: Path, *, ceph: bool) -> Iterator[str]:
    """What is on other machines."""
    if not ceph and (etc / "ceph" / "ceph.conf").exists():
        yield "# pools and users in the Ceph cluster, if it has them: plumbline uninstall --ceph, on its last node"
    for probe in config.probes:
        bucket = getattr(probe, "bucket", None)
        if bucket is not None:
            yield f"# bucket {bucket}: the probe empties it after each run; remove it with your S3 client"


def _installed(etc: Path, var: Path) -> Iterator[str]:
    """How to remove the programs and the configuration."""
    if (var / "lib" / "dpkg" / "info" / "plumbline.list").exists():
        yield "# then, programs, unit and configuration: apt-get purge plumbline"
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
        yield f"# then what the installation by hand made: {shlex.join(['rm', '-r', *there])}; systemctl daemon-reload"
