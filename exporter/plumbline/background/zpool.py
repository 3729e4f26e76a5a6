"""Runs ``zpool status`` for the pools that can answer, and leaves out suspended ones.

For a pool whose devices are gone the tool waits in the kernel, where no signal reaches it. So a suspended pool is not
queried, and no command is started while an earlier one hangs: one stuck process, not one a minute.
"""

from __future__ import annotations

from typing import Protocol

from plumbline.core.process import Completed, Runner
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.disk.zfs import SUSPENDED, read_zfs
from plumbline.sources.disk.zpool_status import PoolStatus, parse_json, parse_text

TIMEOUT_S = 10.0

# OpenZFS 2.3 prints JSON, 0.8 prints exact counts, older versions round them.
_FORMS: tuple[tuple[str, ...], ...] = (("-j", "--json-int"), ("-p",), ())
_USAGE = 2
_NOT_FOUND = 127


class ToolRunner(Runner, Protocol):
    """A runner that knows which processes it had to abandon."""

    def stuck(self) -> tuple[int, ...]:
        """Process ids of earlier commands that outlived SIGKILL and are still there."""
        ...

    def stop(self) -> None:
        """End running commands and start no more."""
        ...


class ZpoolStatus:
    """For one thread at a time. ``runner`` must run nothing else."""

    def __init__(self, roots: Roots, runner: ToolRunner) -> None:
        self._roots, self._runner = roots, runner
        self._forms = _FORMS

    def read(self) -> tuple[PoolStatus, ...]:
        """All pools except suspended ones; empty without ZFS. :class:`Unavailable`: no tool or no permission."""
        pools = [name for name, state in read_zfs(self._roots).pools.items() if state != SUSPENDED]
        if not pools:
            return ()
        if self._runner.stuck():
            raise PlumblineError("zpool status: the last one still hangs in the kernel; see dmesg and zpool events")
        form, done = self._ask(pools)
        if done.cancelled:
            raise Unavailable("zpool status: the daemon is ending")
        if done.timed_out or done.truncated or done.returncode is None:
            reason = "too much output" if done.truncated else f"no answer within {TIMEOUT_S:.0f} s, a pool hangs"
            raise PlumblineError(f"zpool status: {reason}; see dmesg and zpool events")
        if done.returncode != 0:
            says = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise Unavailable(f"zpool status: exit {done.returncode}: {says}")
        text = done.stdout.decode("utf-8", "replace")
        return parse_json(text) if "-j" in form else parse_text(text)

    def _ask(self, pools: list[str]) -> tuple[tuple[str, ...], Completed]:
        """Run the newest form of the command that this version accepts, and remember it."""
        while True:
            form = self._forms[0]
            done = self._runner.run(("zpool", "status", *form, *pools), timeout_s=TIMEOUT_S)
            if done.returncode == _NOT_FOUND:
                raise Unavailable("zpool is not installed: a pool's state is known, its devices' errors are not")
            if done.returncode != _USAGE or len(self._forms) == 1:
                return form, done
            self._forms = self._forms[1:]
