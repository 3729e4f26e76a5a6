"""``plumbline ceph setup`` and ``remove``: create or remove what probes need in a cluster. ``top``: show its OSDs."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from plumbline.commands.shared import access, add_prometheus, add_world, complain, duration, print_json, roots
from plumbline.errors import ConfigError, PlumblineError

_NOT_LOOKED_GROUPS = 32
KEY_DIR = "/etc/ceph"


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the parser of ``plumbline ceph`` with its three actions."""
    ceph = commands.add_parser("ceph", help="prepare a Ceph cluster for probes, take that back, watch its OSDs")
    actions = ceph.add_subparsers(required=True, metavar="ACTION")
    setup = actions.add_parser(
        "setup",
        help="show the commands that make pools and a user; with --apply, run them",
        description="Look at the cluster as its administrator and show the commands that make what probes need: a pool "
        "for objects, one for images, and a user that reaches nothing else. What is there already is left as it is; "
        "what has our names but not our mark is never touched.",
    )
    removal = actions.add_parser(
        "remove",
        help="show the commands that remove them; with --apply, run them",
        description="The reverse: pools, rules and users that carry our mark, and nothing else.",
    )
    for parser, carry_out in ((setup, _setup), (removal, _remove)):
        parser.add_argument("--config.file", dest="config_file", type=Path, metavar="FILE", help="ours (YAML)")
        parser.add_argument("--conf", metavar="FILE", help="Ceph's configuration file (Ceph's default)")
        parser.add_argument("--name", metavar="CLIENT", help="the administrator (client.admin)")
        parser.add_argument("--keyring", metavar="FILE", help="the administrator's key (Ceph's default)")
        parser.add_argument("--key-dir", default=KEY_DIR, metavar="DIR", help=f"for the users' keys ({KEY_DIR})")
        parser.add_argument("--apply", action="store_true", help="run the commands")
        parser.set_defaults(run=carry_out)
    setup.add_argument(
        "--device-class", action="append", default=[], metavar="CLASS", help="a pool on this alone, too (repeatable)"
    )
    setup.add_argument("--osd-bench", action="store_true", help="a user for osd-bench probes, with all rights on OSDs")
    setup.add_argument("--crush-root", default="default", metavar="NAME", help="for device classes (default)")
    setup.add_argument("--failure-domain", default="host", metavar="TYPE", help="for device classes (host)")
    setup.add_argument("--pg-num", type=int, metavar="N", help="placement groups of a pool for objects (4 each OSD)")
    setup.add_argument(
        "--blind", action="store_true", help="show all commands without looking at a cluster, to be run elsewhere"
    )
    _add_top(actions)


def _add_top(actions: argparse._SubParsersAction[Any]) -> None:
    top = actions.add_parser(
        "top",
        help="the slowest OSDs, where their operations spend the time, and of what they are suspected",
        description="The OSDs of this host by their admin sockets, as they did in the last interval; with --prometheus "
        "all OSDs of the cluster, too, by the recording rules there, which look back five minutes. The slowest first. "
        "An operation's mean is queue, store (this OSD's own), peers (replicas and network) and the daemon's own work. "
        "Ctrl-C ends it; into a pipe or a file it prints once.",
        epilog="Admin sockets want the rights of the user ceph, or root: see docs/ceph.md.",
    )
    add_world(top)
    add_prometheus(top)
    top.add_argument("--cluster", metavar="NAME", help="the label cluster there, where it has several")
    top.add_argument("--interval", default="5s", metavar="TIME", help="between two looks (5s)")
    top.add_argument("--once", action="store_true", help="one interval, all OSDs, then end")
    top.add_argument("--json", action="store_true", help="machine-readable, once")
    top.set_defaults(run=_top)


def _top(options: argparse.Namespace) -> int:
    import socket  # noqa: PLC0415

    from plumbline.ceph_top import watch as cephlook  # noqa: PLC0415  (rich: only who needs it)
    from plumbline.commands import terminal_cephtop  # noqa: PLC0415
    from plumbline.commands.node import osd_classes  # noqa: PLC0415
    from plumbline.config.options import Overrides, read_config  # noqa: PLC0415
    from plumbline.config.workloads import load_catalogue  # noqa: PLC0415
    from plumbline.core.console import make_console  # noqa: PLC0415

    interval_s = duration(options.interval, "--interval") or 0.0
    if interval_s <= 0:
        raise ConfigError("--interval", "must be greater than 0", value=options.interval)
    if options.cluster is not None and not options.prometheus:
        raise ConfigError("--cluster", "chooses among what --prometheus tells; give that, too", value=options.cluster)
    tops = cephlook.tops(
        cephlook.Where(
            sockets=read_config(options.config_file, Overrides(), load_catalogue()).ceph.admin_sockets,
            host=socket.gethostname(),
            prometheus=options.prometheus,
            access=access(options),
            cluster=options.cluster,
            classes=osd_classes(config_file=options.config_file, roots=roots(options)),
        ),
        interval_s=interval_s,
    )
    console = make_console()
    if options.json:
        print_json(next(tops))
    elif options.once or not console.is_terminal:
        terminal_cephtop.print_top(console, next(tops))
    else:
        terminal_cephtop.watch(console, tops)
    return 0


def _setup(options: argparse.Namespace) -> int:
    from plumbline.commands import ceph_admin, ceph_setup  # noqa: PLC0415

    ceph, admin = _as_asked(options.config_file, options.conf, options.name, options.keyring)
    cluster = ceph_admin.Cluster(admin, os.environ)
    blind = options.blind and not options.apply
    want = ceph_admin.wanted(
        ceph,
        device_classes=dict.fromkeys((*options.device_class, *(() if blind else cluster.classes_of_ours(ceph.pool)))),
        osd_bench=options.osd_bench,
        groups=options.pg_num or (_NOT_LOOKED_GROUPS if blind else cluster.groups()),
        folder=options.key_dir,
        root=options.crush_root,
        failure_domain=options.failure_domain,
    )
    if options.device_class and not blind:
        _check_classes(options.device_class, cluster.classes())
    plan = ceph_setup.setup(want, ceph_setup.Facts() if blind else cluster.look(want))
    return _carry_out(plan, cluster, admin, apply=options.apply, setting_up=True)


def _remove(options: argparse.Namespace) -> int:
    return remove(
        options.config_file,
        conf=options.conf,
        name=options.name,
        keyring=options.keyring,
        key_dir=options.key_dir,
        apply=options.apply,
    )


def remove(
    config_file: Path | None,
    *,
    conf: str | None = None,
    name: str | None = None,
    keyring: str | None = None,
    key_dir: str = KEY_DIR,
    apply: bool,
) -> int:
    """``ceph remove``, also for ``plumbline uninstall``. ``conf`` to ``key_dir``: the command's options."""
    from plumbline.commands import ceph_admin, ceph_setup  # noqa: PLC0415

    ceph, admin = _as_asked(config_file, conf, name, keyring)
    cluster = ceph_admin.Cluster(admin, os.environ)
    want = ceph_admin.wanted(
        ceph, device_classes=cluster.classes_of_ours(ceph.pool), osd_bench=True, groups=0, folder=key_dir
    )
    return _carry_out(ceph_setup.remove(want, cluster.look(want)), cluster, admin, apply=apply, setting_up=False)


def _as_asked(config_file: Path | None, conf: str | None, name: str | None, keyring: str | None) -> tuple[Any, Any]:
    """Our configuration of Ceph, and its administrator."""
    from plumbline.commands import ceph_admin  # noqa: PLC0415
    from plumbline.config.options import Overrides, read_config  # noqa: PLC0415
    from plumbline.config.workloads import load_catalogue  # noqa: PLC0415

    ceph = read_config(config_file, Overrides(), load_catalogue()).ceph
    return ceph, ceph_admin.Admin(conf or (ceph.conf if config_file else None), name, keyring)


def _check_classes(asked: list[str], known: list[str]) -> None:
    for each in asked:
        if each not in known:
            raise PlumblineError(f"--device-class {each}: no OSD is of this class; there are: {', '.join(known)}")


def _carry_out(plan: Any, cluster: Any, admin: Any, *, apply: bool, setting_up: bool) -> int:
    for line in plan.foreign:
        complain(f"plumbline: left alone: {line}")
    if plan.foreign and setting_up:
        return 1
    for line in plan.there:
        print(f"# there already: {line}")
    if not plan.steps:
        print("# nothing to do")
        return 1 if plan.foreign else 0

    def show(step: Any) -> None:
        print(f"# {step.why}")
        command = shlex.join(admin.argv(step.argv))
        print(f"(umask 077; {command} > {shlex.quote(step.keyring)})" if step.keyring else command, flush=True)

    if apply:
        cluster.apply(plan, before=show)
        print("# done")
    else:
        for step in plan.steps:
            show(step)
        print("# nothing was changed; --apply runs these commands", flush=True)
    return 1 if plan.foreign else 0
