"""Health of SATA and SAS disks: ``smartctl --json``, called so that a sleeping disk stays asleep.

smartctl(8), ``-n``, ``-d``, ``-l``; ``smartctl_answer`` parses the output.

Not waking: ATA's CHECK POWER MODE is sent first and wakes nothing. On SAS disks, ``-n`` works since 7.2; before that
they are queried as if awake, with commands that do not touch the medium. ``-d`` is always given, because detecting the
type could wake the disk. For the same reason, smartctl opens the node read-only.

Not covered: disks behind a RAID controller that presents volumes instead (``-d megaraid,N``, ``cciss,N`` …): only the
controller's own tools list the valid N.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from plumbline.core.process import Completed
from plumbline.sources.disk.diskhealth import MALFORMED, NO_ANSWER, NO_PROGRAM, Answer, NoHealth
from plumbline.sources.disk.smartctl_answer import ASLEEP_STATUS, parse_answer

TIMEOUT_S = 10.0
"""For one disk. A healthy disk answers in a tenth of a second, one that is correcting errors in a few seconds."""
MAX_OUTPUT_BYTES = 1 << 19
"""A long answer, with full logs, is 60 KB."""
INSTALL = "apt-get install smartmontools"


class DiskRunner(Protocol):
    """Runs a command within limits, and knows which commands survived SIGKILL; see ``core/process.py``."""

    def run(self, argv: Sequence[str], *, timeout_s: float, max_output_bytes: int = ...) -> Completed:
        """As :meth:`plumbline.core.process.Runner.run`."""
        ...

    def holds(self, argv: Sequence[str]) -> bool:
        """Whether a command with these arguments still exists although it was killed."""
        ...


def command(program: str, node: Path, transport: str | None) -> tuple[str, ...]:
    """The command line. ``sat,auto`` distinguishes a SATA disk behind a SAS port from a SAS disk by INQUIRY alone."""
    kind = "sat" if transport == "sata" else "sat,auto"
    logs = (f"--log={name}" for name in ("error", "ssd", "devstat,1", "devstat,4", "devstat,5"))
    return (program, "--json=c", "-n", f"standby,{ASLEEP_STATUS}", "-d", kind, "-i", "-H", "-A", *logs, str(node))


def read_smartctl(
    node: Path,
    transport: str | None,
    *,
    runner: DiskRunner,
    find: Callable[[], str | None],
    timeout_s: float = TIMEOUT_S,
    pause: Callable[[float], None] = time.sleep,
) -> Answer:
    """Query one disk; ``find`` returns the program's path. :class:`NoHealth` or :class:`ParseError` without an answer.

    Returns within ``timeout_s`` plus some seconds to kill the program. If it survives that (the disk holds it in the
    kernel), this waits until it ends, so that no second command is started meanwhile.
    """
    program = find()
    if program is None:
        raise NoHealth(NO_PROGRAM, f"smartctl is not installed, so SATA and SAS disks can't be asked: {INSTALL}")
    argv = command(program, node, transport)
    done = runner.run(argv, timeout_s=timeout_s, max_output_bytes=MAX_OUTPUT_BYTES)
    while done.returncode is None and not done.cancelled and runner.holds(argv):
        pause(1.0)
    if done.timed_out or done.returncode is None:
        raise NoHealth(NO_ANSWER, f"{node}: smartctl had no answer within {timeout_s:g} s; see dmesg")
    if done.truncated:
        raise NoHealth(MALFORMED, f"{node}: smartctl wrote more than {MAX_OUTPUT_BYTES} octets")
    if not done.stdout:
        words = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
        reason = NO_PROGRAM if done.returncode == 127 else NO_ANSWER
        raise NoHealth(reason, f"{node}: smartctl said nothing and ended with {done.returncode}: {words or '-'}")
    return parse_answer(done.stdout, source=f"smartctl {node}")
