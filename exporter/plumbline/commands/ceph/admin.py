"""``plumbline ceph setup`` and ``remove``: show or run :mod:`.setup`'s steps as the cluster's administrator."""

import argparse
import errno
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from plumbline.commands.ceph.keyring import KEY, check_key, check_place, read_keyring, remove_key, user_in, write_key
from plumbline.commands.ceph.setup import (
    APPLICATION,
    BENCH_SUFFIX,
    IMAGE_GROUPS,
    IMAGES,
    OBJECTS,
    Facts,
    Plan,
    Pool,
    PoolFacts,
    Requirements,
    Step,
    first_foreign,
    groups_for,
    remove,
    setup,
)
from plumbline.commands.shared import CEPH_KEY_DIR, complain, say
from plumbline.config.model import CephConfig
from plumbline.config.options import is_handed, read_config
from plumbline.core.foreign import Limits, decode_json, one_line
from plumbline.core.keyfiles import CEPH, read_secret
from plumbline.core.memory import keep_memory_private
from plumbline.core.process import Completed, ProcessRunner
from plumbline.errors import ParseError, PlumblineError, Unavailable, UnknownName
from plumbline.sources.ceph.ceph_conf import MAX_BYTES
from plumbline.sources.ceph.keyring import AES256K, READ_AES256K
from plumbline.sources.distribution import advice

# Creating or deleting a pool takes seconds, listing its objects longer.
_COMMAND_S, _CONNECT_S = 120.0, 15
_DEADLINE = ("timeout", f"{_COMMAND_S:.0f}")  # Of a command that is shown: some wait for OSDs for ever
_MAX_LISTING = 64 << 20
_ANSWER = Limits(_MAX_LISTING, max_values=2_000_000)
# Placement groups of a pool for objects if the cluster isn't asked.
_BLIND_GROUPS = 32


T = TypeVar("T")


class _OsdStat(Struct, frozen=True):
    num_osds: Annotated[int, Meta(ge=0, le=1_000_000)]


class _Pool(Struct, frozen=True):
    pool_name: str
    crush_rule: int
    application_metadata: dict[str, dict[str, str]] = {}


class _Take(Struct, frozen=True):
    op: str
    item_name: str = ""


class _Rule(Struct, frozen=True):
    rule_id: int
    rule_name: str
    steps: tuple[_Take, ...]

    @property
    def root(self) -> str:
        return next((step.item_name for step in self.steps if step.op == "take"), "")


class _User(Struct, frozen=True):
    entity: str
    key: Annotated[str, Meta(pattern=f"^{KEY}$")]
    caps: dict[str, str]


class Admin(Struct, frozen=True):
    """Who the commands run as; ``None``: Ceph's default (client.admin, /etc/ceph/ceph.conf)."""

    conf: str | None = None
    name: str | None = None
    keyring: str | None = None

    def flags(self) -> tuple[str, ...]:
        pairs = (("--conf", self.conf), ("--name", self.name), ("--keyring", self.keyring))
        return tuple(word for flag, value in pairs if value is not None for word in (flag, value))

    def argv(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A step's command with the flags; ``rm`` gets none."""
        return command if command[0] == "rm" else (command[0], *self.flags(), *command[1:])


def administrator(options: argparse.Namespace) -> Admin:
    """Of :func:`.flags.add_administrator`."""
    return Admin(options.conf, options.name, options.keyring)


def requirements(
    ceph: CephConfig,
    *,
    device_classes: Iterable[str] = (),
    osd_bench: bool = False,
    groups: int,
    folder: str = "/etc/ceph",
    root: str = "default",
    failure_domain: str = "host",
) -> Requirements:
    """What the configuration ``ceph`` asks for, and an object pool for each device class."""
    user = f"client.{ceph.user}"
    bench = f"client.{ceph.osd_bench_user or ceph.user + BENCH_SUFFIX}"
    classes = [
        Pool(
            f"{ceph.pool}-{device_class}", OBJECTS, groups, rule=f"plumbline-{device_class}", device_class=device_class
        )
        for device_class in device_classes
    ]
    return Requirements(
        pools=(Pool(ceph.pool, OBJECTS, groups), *classes, Pool(ceph.rbd_pool, IMAGES, IMAGE_GROUPS)),
        user=user,
        keyring=_kept_in(ceph.keyring, f"{folder}/ceph.{user}.keyring"),
        bench_user=bench if osd_bench else "",
        bench_keyring=_kept_in(ceph.osd_bench_keyring, f"{folder}/ceph.{bench}.keyring"),
        root=root,
        failure_domain=failure_domain,
    )


def _kept_in(configured: str | None, default: str) -> str:
    """The keyring to write: what systemd gives the service is a copy of the default one (drop-in ceph.conf)."""
    return default if configured is None or is_handed(configured) else configured


class Cluster:
    def __init__(self, admin: Admin, environment: Mapping[str, str]) -> None:
        self.admin, self._runner = admin, ProcessRunner(environment)
        self._pools: tuple[_Pool, ...] | None = None

    def groups(self) -> int:
        """Placement groups that an object pool needs here."""
        return groups_for(self.ask(_OsdStat, "ceph", "osd", "stat").num_osds)

    def classes_of_ours(self, pool: str) -> list[str]:
        """Device classes that already have a pool of ours."""
        ours = [
            pool_entry.pool_name for pool_entry in self._all_pools() if APPLICATION in pool_entry.application_metadata
        ]
        return sorted(name.removeprefix(f"{pool}-") for name in ours if name.startswith(f"{pool}-"))

    def refuses(self, *words: str) -> str:
        """Why Ceph says no to a question that has an answer in its exit code; empty: it says yes."""
        done = self._try(("ceph", *words))
        if done.returncode not in (errno.EBUSY, errno.EAGAIN):
            _check(done)
            return ""
        return one_line(_last(done)).partition(": ")[2] or f"exit {done.returncode}"

    def classes(self) -> list[str]:
        return list(self.ask(tuple[str, ...], "ceph", "osd", "crush", "class", "ls"))

    def look(self, required: Requirements) -> Facts:
        """Everything that has one of our names. Only reads."""
        kinds = {pool.name: pool.kind for pool in required.pools}
        rules = {rule.rule_id: rule for rule in self.ask(tuple[_Rule, ...], "ceph", "osd", "crush", "rule", "dump")}
        pools = {}
        for pool_entry in self._all_pools():
            name = pool_entry.pool_name
            if pool_entry.crush_rule not in rules:
                raise ParseError("ceph osd pool ls detail", f"pool {name} has a CRUSH rule that does not exist")
            facts = PoolFacts(pool_entry.application_metadata, rules[pool_entry.crush_rule].rule_name)
            if name in kinds and facts.is_ours(kinds[name]):
                facts = PoolFacts(facts.applications, facts.rule, first_foreign(kinds[name], self._objects(name)))
            pools[name] = facts
        users = {name: user for name in required.users if (user := self._user(name)) is not None}
        keyrings = {path: text for path, _ in required.users.values() if (text := read_keyring(path)) is not None}
        return Facts(
            pools=pools,
            rules={rule.rule_name: rule.root for rule in rules.values()},
            users={name: caps for name, (caps, _) in users.items()},
            keyrings={path: user_in(text) for path, text in keyrings.items()},
            outdated=frozenset(
                name
                for name, (_, key) in users.items()
                if (text := keyrings.get(required.users[name][0])) is not None and key not in text
            ),
        )

    def apply(self, plan: Plan, *, before: Callable[[Step], None]) -> None:
        """Check every keyring, then run every step; raises :class:`PlumblineError` at the first that fails, with Ceph's
        message, and for an answer that is not the key that was asked for."""
        for step in plan.steps:
            if path := step.argv[1] if step.argv[0] == "rm" else step.keyring:
                check_place(path, step.user)
        for step in plan.steps:
            before(step)
            if step.argv[0] == "rm":
                remove_key(step.argv[1], step.user)
                continue
            output = self._run(step.argv)
            if step.keyring:
                check_key(output.stdout, step.user)
                write_key(step.keyring, output.stdout, step.user)

    def _all_pools(self) -> tuple[_Pool, ...]:
        """Asked once, because each start of ``ceph`` takes time."""
        if self._pools is None:
            self._pools = self.ask(tuple[_Pool, ...], "ceph", "osd", "pool", "ls", "detail")
        return self._pools

    def ask(self, kind: type[T], program: str, *words: str) -> T:
        """The answer of ``ceph`` or ``rbd``, decoded."""
        done = self._run((program, *words, "--format", "json"))
        return decode_json(done.stdout, kind, source=f"{program} {' '.join(words)}", limits=_ANSWER)

    def _objects(self, pool: str) -> list[str]:
        done = self._run(("rados", "-p", pool, "--all", "ls"))
        return done.stdout.decode("utf-8", "surrogateescape").splitlines()

    def _user(self, user: str) -> tuple[dict[str, str], bytes] | None:
        """Capabilities and key."""
        done = self._try(("ceph", "auth", "get", user, "--format", "json"))
        if done.returncode == 2:  # ENOENT
            return None
        _check(done)
        source = f"ceph auth get {user}"
        (user_entry,) = decode_json(done.stdout, tuple[_User], source=source)
        if user_entry.entity != user:
            raise ParseError(source, "the answer is about another user")
        return user_entry.caps, user_entry.key.encode()

    def _run(self, command: tuple[str, ...]) -> Completed:
        done = self._try(command)
        _check(done)
        return done

    def _try(self, command: tuple[str, ...]) -> Completed:
        argv = self.admin.argv(command)
        if command[0] == "ceph":
            argv = (argv[0], "--connect-timeout", str(_CONNECT_S), *argv[1:])
        return self._runner.run(argv, timeout_s=_COMMAND_S, max_output_bytes=_MAX_LISTING)


def _last(done: Completed) -> str:
    """The line of standard error that says what is wrong."""
    return (done.stderr.decode("utf-8", "replace").strip().splitlines() or [""])[-1]


def _check(done: Completed) -> None:
    if done.returncode == 0 and not done.truncated:
        return
    last = _last(done)
    command = " ".join(done.argv)
    if done.returncode == 127:
        raise Unavailable(f"{done.argv[0]} is not installed: {advice('ceph')}, or run this where it is")
    if done.truncated:
        raise PlumblineError(f"{command}: too much output; is the pool really ours?")
    if done.timed_out or done.returncode is None:
        raise PlumblineError(f"{command}: no answer within {_COMMAND_S:.0f} s; is the cluster up, with OSDs?")
    last = one_line(last)
    if b"type=key" in done.stderr and b"Malformed input" in done.stderr:
        last += (
            f"; {done.argv[0]} on this node can't read a key in the keyring: if it is of type {AES256K}, {READ_AES256K}"
        )
    if "mon_allow_pool_delete" in last:
        last += (
            "; run `ceph config set mon mon_allow_pool_delete true`, this again,"
            " and then `ceph config rm mon mon_allow_pool_delete`"
        )
    raise PlumblineError(f"{command}: {last or f'exit {done.returncode}'}")


def run_setup(options: argparse.Namespace) -> int:
    blind = options.blind and not options.apply
    ceph, cluster = _cluster(options.config_file, administrator(options), elsewhere=blind)
    required = requirements(
        ceph,
        device_classes=dict.fromkeys((*options.device_class, *(() if blind else cluster.classes_of_ours(ceph.pool)))),
        osd_bench=options.osd_bench,
        groups=options.pg_num or (_BLIND_GROUPS if blind else cluster.groups()),
        folder=options.key_dir,
        root=options.crush_root,
        failure_domain=options.failure_domain,
    )
    known = cluster.classes() if options.device_class and not blind else options.device_class
    for name in options.device_class:
        if name not in known:
            raise UnknownName(f"--device-class {name}: no OSD has this class; there are: {', '.join(known)}")
    plan = setup(required, Facts() if blind else cluster.look(required))
    return _carry_out(plan, cluster, apply=options.apply, setting_up=True)


def run_remove(options: argparse.Namespace) -> int:
    return remove_ours(options.config_file, administrator(options), key_dir=options.key_dir, apply=options.apply)


def remove_ours(config_file: Path | None, admin: Admin, *, key_dir: str = CEPH_KEY_DIR, apply: bool) -> int:
    """Show or remove what has our mark in the cluster; returns the exit code."""
    ceph, cluster = _cluster(config_file, admin)
    classes = cluster.classes_of_ours(ceph.pool)
    required = requirements(ceph, device_classes=classes, osd_bench=True, groups=0, folder=key_dir)
    return _carry_out(remove(required, cluster.look(required)), cluster, apply=apply, setting_up=False)


def _cluster(config_file: Path | None, admin: Admin, *, elsewhere: bool = False) -> tuple[CephConfig, Cluster]:
    ceph = read_config(config_file).ceph
    keep_memory_private()  # Ceph's answers will hold keys
    if admin.keyring is not None:
        try:
            read_secret(admin.keyring, MAX_BYTES, account=CEPH)
        except OSError as error:
            raise Unavailable(f"--keyring {admin.keyring}: can't be used: {error.strerror}") from None
    conf = admin.conf or (ceph.conf if config_file and not elsewhere else None)  # a pod's is not in the toolbox
    return ceph, Cluster(replace(admin, conf=conf), os.environ)


def _carry_out(plan: Plan, cluster: Cluster, *, apply: bool, setting_up: bool) -> int:
    for line in plan.foreign:
        complain(f"plumbline: left alone: {line}")
    if plan.foreign and setting_up:
        return 1
    for line in plan.there:
        say(f"# exists already: {line}")
    if not plan.steps:
        say("# nothing to do")
        return 1 if plan.foreign else 0

    def show(step: Step) -> None:
        say(f"# {step.why}")
        command = shlex.join((*_DEADLINE, *cluster.admin.argv(step.argv)))
        say(f"(umask 077; {command} > {shlex.quote(step.keyring)})" if step.keyring else command)

    if apply:
        cluster.apply(plan, before=show)
        say("# done")
    else:
        for step in plan.steps:
            show(step)
        say("# nothing was changed; --apply runs these commands")
    return 1 if plan.foreign else 0
