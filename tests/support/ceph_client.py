"""Commands, users and pools of a Ceph cluster that a test has made: what is the same wherever its daemons run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plumbline.errors import Unavailable
from plumbline.probes.ceph.librados import Access, Cluster, connect

from .daemon import eventually

WITHIN_S = 240.0
"""For every step of the cluster's own, on a busy machine too: they take seconds on a quiet one."""
_ASKED_OFTEN = {"status", "health", "osd dump", "osd df", "mgr dump"}


class CephError(AssertionError):
    """A command failed or the cluster did not get where it should; the message holds what was said."""


class CephClient:
    """The administrator of a cluster whose ``ceph.conf`` and keyrings are in ``folder``."""

    def __init__(self, folder: Path, *, osds: int) -> None:
        self.folder = folder
        self.conf = folder / "ceph.conf"
        self.environment = {
            # nor the tests' Python path: a manager would load their bcrypt, which Ceph 18's can't (docs/ceph.md)
            **{name: value for name, value in os.environ.items() if not name.startswith(("CEPH_", "PYTHON"))},
            "CEPH_CONF": str(self.conf),
            "LC_ALL": "C.UTF-8",
        }
        """For every program that shall find this cluster, fio's engines too."""
        self._osds = osds
        self._session: Cluster | None = None

    # -- commands

    def run(self, *argv: str | Path, stdin: str = "", timeout_s: float = WITHIN_S) -> str:
        """Standard output of a program that talks to this cluster; :class:`CephError` with its errors when it fails."""
        done = self.try_run(*argv, stdin=stdin, timeout_s=timeout_s)
        if done.returncode:
            raise CephError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def try_run(
        self, *argv: str | Path, stdin: str = "", timeout_s: float = WITHIN_S
    ) -> subprocess.CompletedProcess[str]:
        """The same for a program that may fail."""
        return subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, env=self.environment, check=False
        )

    def ceph(self, *arguments: str, stdin: str = "") -> str:
        """``ceph …`` as the administrator: its text."""
        return self.run("ceph", *arguments, stdin=stdin)

    def ceph_all(self, *commands: str) -> None:
        """Several in order as the administrator, by one client: each start of it costs most of a second.

        One that fails does not end it, so that :class:`CephError` may come after the others were done.
        """
        said = self.try_run("ceph", "--connect-timeout", f"{WITHIN_S:.0f}", stdin="\n".join(commands))
        if said.returncode or "Error" in said.stderr:
            raise CephError(f"one of these failed: {'; '.join(commands)}\n{said.stderr}")

    def ceph_json(self, *arguments: str) -> Any:
        """``ceph … -f json`` as the administrator, decoded; what is asked often, over a connection that is kept."""
        asked = " ".join(arguments)
        if asked in _ASKED_OFTEN:
            try:
                self._session = self._session or connect(Access("client.admin", str(self.conf)))
                return self._session.mon_command(asked)
            except (
                OSError,
                Unavailable,
            ):  # the monitor was away; a new client is sooner there than librados comes back
                self.hang_up()
        return json.loads(self.ceph(*arguments, "-f", "json"))

    def hang_up(self) -> None:
        """Give the kept connection up."""
        session, self._session = self._session, None
        if session:
            session.close()

    @property
    def release(self) -> str:
        """Of the monitor: ``18.2.7``."""
        return str(self.ceph_json("version")["version"].split()[2])

    def keyring(self, name: str) -> Path:
        """The key file of a user, ``client.admin`` among them; the configuration finds it there, too."""
        return self.folder / f"ceph.{name}.keyring"

    # -- users and pools

    def add_user(self, name: str, caps: Mapping[str, str]) -> Path:
        """Create ``client.…`` with these capabilities (``{"mon": "allow r"}``); the path of its keyring."""
        words = [word for pair in caps.items() for word in pair]
        path = self.keyring(name)
        path.write_text(self.ceph("auth", "get-or-create", name, *words))
        path.chmod(0o600)
        return path

    def remove_user(self, name: str) -> None:
        """Forget a user and its keyring."""
        self.ceph("auth", "del", name)
        self.keyring(name).unlink(missing_ok=True)

    def add_pool(self, name: str, *, size: int = 2, pg_num: int = 64, application: str = "plumbline") -> None:
        """A replicated pool whose placement groups are all active, and so many that every OSD is first in some."""
        confirm = " --yes-i-really-mean-it" if size == 1 else ""
        self.ceph_all(
            f"osd pool create {name} {pg_num} {pg_num} replicated",
            f"osd pool set {name} size {size}{confirm}",
            f"osd pool application enable {name} {application}",
        )
        self.wait_clean()

    def remove_pool(self, name: str) -> None:
        """Delete a pool with all it holds."""
        self.ceph("osd", "pool", "delete", name, name, "--yes-i-really-really-mean-it")

    def heal(self) -> None:
        """Undo the faults that were not undone; here nobody makes any."""

    # -- waiting

    def health(self) -> str:
        """``HEALTH_OK``, ``HEALTH_WARN`` or ``HEALTH_ERR``."""
        return str(self.ceph_json("health")["status"])

    def wait_healthy(self, within_s: float = WITHIN_S) -> None:
        """All OSDs up, a manager active, all placement groups clean, no warning."""

        def healthy() -> bool:
            status = self.ceph_json("status")
            osds = status["osdmap"]
            up = osds["num_up_osds"] == osds["num_in_osds"] == self._osds
            return up and status["mgrmap"]["available"] and status["health"]["status"] == "HEALTH_OK" and clean(status)

        self.eventually(healthy, "the cluster is not healthy", within_s)

    def wait_clean(self, within_s: float = WITHIN_S) -> None:
        """All placement groups active and clean."""
        self.eventually(self.is_clean, "placement groups are not clean", within_s)

    def is_clean(self) -> bool:
        """Whether they are at the moment."""
        return clean(self.ceph_json("status"))

    def eventually(self, look: Callable[[], Any], otherwise: str, within_s: float = WITHIN_S) -> Any:
        """The first truthy value of ``look()``; :class:`CephError` with ``otherwise`` and the cluster's health."""

        def alive_and_done() -> Any:
            self.check()
            return look()

        try:
            return eventually(alive_and_done, within_s=within_s, every_s=0.2)
        except CephError:
            raise
        except AssertionError as late:
            said = self.try_run("ceph", "--connect-timeout", "10", "health", "detail")
            raise CephError(f"{otherwise}: {late}\n{said.stdout}{said.stderr}") from late

    def check(self) -> None:
        """Raise :class:`CephError` where waiting is of no use, because a daemon has ended."""


def clean(status: Mapping[str, Any]) -> bool:
    """Whether all placement groups are active and clean."""
    pgs = status["pgmap"]
    found = sum(state["count"] for state in pgs["pgs_by_state"] if state["state_name"] == "active+clean")
    return bool(found == pgs["num_pgs"])
