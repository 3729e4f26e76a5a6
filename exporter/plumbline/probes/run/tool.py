"""The program that a probe runs: its version, and the refusal for a run that was ended from outside."""

import re
import shutil
from collections.abc import Callable

from msgspec import Struct

from plumbline.core.escape import excerpt
from plumbline.core.process import Completed, Runner
from plumbline.errors import ProbeRefused
from plumbline.sources.distribution import advice


class Tool(Struct, frozen=True):
    """A program, its name in :mod:`plumbline.sources.distribution`, which knows its package, and its answer to
    ``--version``: group 1 is the version."""

    program: str
    package: str
    answers: re.Pattern[str]
    which: Callable[[str], str | None] | None = None  # Finds the program; None: searches PATH

    def version(self, runner: Runner, *, limit_s: float = 20.0) -> str:
        """Such as ``3.33``, within milliseconds. Raises :class:`ProbeRefused` (``tool-missing``) if the program is
        missing or does not run."""
        path = (self.which or shutil.which)(self.program)
        if path is None:
            raise ProbeRefused("tool-missing", self.missing)
        done = runner.run((self.program, "--version"), timeout_s=limit_s)
        refuse_if_stopped(done.cancelled)
        match = self.answers.match(done.stdout.decode("utf-8", "replace"))
        if done.returncode != 0 or match is None:
            answer = "no answer" if done.timed_out else first_line(done) or f"exit status {done.returncode}"
            raise ProbeRefused("tool-missing", f"{path} --version failed: {answer}; {advice(self.package)} again")
        return match[1]

    @property
    def missing(self) -> str:
        return f"{self.program} is not installed: {advice(self.package)}; in a container: build the image with it"


_CEPH = re.compile(r"ceph version (\S+)")
FIO = Tool("fio", "fio", re.compile(r"fio-(\S+)"))
IPERF3 = Tool("iperf3", "iperf3", re.compile(r"iperf ([0-9]\S{0,20})"))
QPERF = Tool("qperf", "qperf", re.compile(r"qperf ([0-9]\S{0,20})"))
CEPH, RADOS, RBD = (Tool(program, "ceph", _CEPH) for program in ("ceph", "rados", "rbd"))


def refuse_if_stopped(stopped: bool) -> None:
    """A run that was ended from outside is a refusal, not a result."""
    if stopped:
        raise ProbeRefused("stopped", "ended from outside; the next start runs it again")


def first_line(done: Completed) -> str:
    """The first non-empty line of standard error, or else of standard output."""
    for output in (done.stderr, done.stdout):
        for line in output.decode("utf-8", "replace").splitlines():
            if text := line.strip():
                return excerpt(text)
    return ""
