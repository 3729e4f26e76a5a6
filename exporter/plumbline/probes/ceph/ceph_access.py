"""From the configuration's ``ceph`` part to Ceph's programs with their arguments, librados, and an environment.

Arguments never contain a key, only the path of the file that holds it. Whether this node has a cluster is checked on
each call: `plumbline ceph setup` may have run meanwhile.

https://docs.ceph.com/en/latest/rados/configuration/auth-config-ref/#keys (where Ceph looks for keyrings)
"""

from __future__ import annotations

import math
import os
import re

from msgspec import Struct
from msgspec.structs import replace

from plumbline.config.model import CephConfig
from plumbline.core.answers import read_named
from plumbline.core.keyfiles import CEPH, read_secret
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.librados import Access
from plumbline.sources.ceph.ceph_conf import MAX_BYTES, options

NO_CLUSTER, NO_KEY, KEY_TYPE = "no-cluster", "no-key", "key-type"
"""Reasons of a refusal: this node belongs to no cluster; it does, but we have no key; librados can't read its type."""
NAMESPACE = "plumbline"
"""Namespace in our pool for objects: we write only there, and our user can reach nothing else."""
IMAGE_PREFIX = "plumbline-"
"""Prefix of all our images. Their pool is ours alone; it has no namespace, because fio's rbd engine supports none."""
SETUP = "run `plumbline ceph setup` on a node with the administrator's key"

_KEYRINGS = "/etc/ceph/$cluster.$name.keyring,/etc/ceph/$cluster.keyring,/etc/ceph/keyring,/etc/ceph/keyring.bin"
# the configured log and socket may be where only root writes; errors are reported anyway
_QUIET = ("--log-file=", "--admin-socket=", "--log-to-stderr=false", "--err-to-stderr=false")


class CephAccess(Struct, frozen=True):
    """Which cluster, which user, which timeouts: all access to Ceph is configured here."""

    conf: str
    user: str
    """Including its type: ``client.plumbline``."""
    keyring: str | None
    """``None``: where Ceph's configuration file says."""
    pool: str
    rbd_pool: str
    timeout_s: float
    bench: tuple[str, str | None] | None = None
    """User and keyring for benches of OSDs."""

    @classmethod
    def of(cls, config: CephConfig) -> CephAccess:
        return cls(
            conf=config.conf,
            user=f"client.{config.user}",
            keyring=config.keyring,
            pool=config.pool,
            rbd_pool=config.rbd_pool,
            timeout_s=float(config.timeout),
            bench=None
            if config.osd_bench_user is None
            else (f"client.{config.osd_bench_user}", config.osd_bench_keyring),
        )

    def for_osd_bench(self) -> CephAccess:
        """The same cluster as the user who may bench OSDs; raises :class:`ProbeRefused` (``no-bench-user``) if none."""
        if self.bench is None:
            needed = "Ceph benches OSDs only for a user with all rights on them"
            advice = "run `plumbline ceph setup --osd-bench` and set ceph.osd_bench_user"
            raise ProbeRefused("no-bench-user", f"{needed}; {advice}")
        user, keyring = self.bench
        return replace(self, user=user, keyring=keyring)

    @property
    def id(self) -> str:
        """The user without its type, as fio and ``--id`` expect it."""
        return self.user.partition(".")[2]

    # -- whether there is a cluster

    def check(self) -> None:
        """Raise :class:`ProbeRefused`: ``no-cluster``, ``no-key``. Reads two small local files."""
        self.key_file()

    @property
    def usable(self) -> bool:
        """Whether this node has a cluster and we have a key to it."""
        try:
            self.check()
        except ProbeRefused:
            return False
        return True

    def key_file(self) -> str:
        """The keyring that holds our key; raises :class:`ProbeRefused` as :meth:`check`."""
        try:
            text = read_named(self.conf, MAX_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            raise ProbeRefused(
                NO_CLUSTER, f"{self.conf}: not there, so this node has no Ceph cluster; set ceph.conf if it has one"
            ) from None
        except OSError as error:
            raise ProbeRefused(NO_CLUSTER, f"{self.conf}: {error.strerror}; let this user read it") from None
        tried = [self.keyring] if self.keyring is not None else _keyrings(text, self.user)
        problems = []
        for path in tried:
            problem = _key_problem(path, self.user)
            if not problem:
                return path
            problems.append(f"{path}: {problem}")
        raise ProbeRefused(NO_KEY, f"no key of {self.user}: {'; '.join(problems)}; {SETUP}, or set ceph.keyring")

    # -- what runs

    def ceph(self, *words: str) -> tuple[str, ...]:
        """``ceph …``; its own timeout covers only the connection, so set one for the run, too."""
        return ("ceph", *self.credentials, "--connect-timeout", str(self._whole_s), *words)

    def rados(self, *words: str) -> tuple[str, ...]:
        """``rados …``, with time limits for connection and operations."""
        return ("rados", *self.credentials, *self._limits(), *words)

    def rbd(self, *words: str) -> tuple[str, ...]:
        """``rbd …``, with time limits for connection and operations."""
        return ("rbd", *self.credentials, *self._limits(), *words)

    def librados(self) -> Access:
        return Access(
            user=self.user,
            conf=self.conf,
            keyring=self.keyring or "",
            connect_timeout_s=self._whole_s,
            operation_timeout_s=self._whole_s,
        )

    def in_environment(self, *argv: str) -> tuple[str, ...]:
        """A third-party command (fio) that finds the cluster and the key through its environment."""
        pairs = [f"CEPH_CONF={self.conf}"]
        if self.keyring is not None:
            pairs.append(f"CEPH_KEYRING={self.keyring}")
        return ("env", *pairs, *argv)

    @property
    def _whole_s(self) -> int:
        return max(1, math.ceil(self.timeout_s))

    @property
    def credentials(self) -> tuple[str, ...]:
        """The arguments of Ceph's programs that name cluster, user and key file."""
        keyring = () if self.keyring is None else ("--keyring", self.keyring)
        return ("--conf", self.conf, "--name", self.user, *keyring)

    def _limits(self) -> tuple[str, ...]:
        names = ("client-mount-timeout", "rados-mon-op-timeout", "rados-osd-op-timeout")
        return (*_QUIET, *(f"--{name}={self._whole_s}" for name in names))


def _keyrings(conf: str, user: str) -> list[str]:
    """Where Ceph looks, in its order; variables other than those of the user's name are left to Ceph."""
    kind, _, name = user.partition(".")
    by_section = {section: value for _, section, key, value in options(conf) if key == "keyring"}
    keyrings = next((by_section[section] for section in (user, kind, "global") if section in by_section), _KEYRINGS)
    values = {"cluster": "ceph", "name": user, "type": kind, "id": name}
    for variable, value in values.items():
        keyrings = re.sub(rf"\${variable}\b|\$\{{{variable}\}}", value, keyrings)
    return [path for path in re.split(r"[,; ]+", keyrings) if path]


def _key_problem(path: str, user: str) -> str:
    """Why a keyring is useless for ``user``; empty if it has the user's key. The key itself is not kept."""
    try:
        text = read_secret(path, MAX_BYTES, account=CEPH).decode("utf-8", "replace")
    except FileNotFoundError:
        return "not there"
    except OSError as error:
        return f"{error.strerror} (as user id {os.geteuid()})"
    return "" if re.search(rf"^\s*\[{re.escape(user)}\]", text, re.MULTILINE) else "holds only keys of other users"
