"""What the exit of one of Ceph's programs means for a probe's run."""

from plumbline.core.escape import excerpt
from plumbline.core.process import Completed
from plumbline.probes.run.result import Outcome


def judge(done: Completed, what: str, timeout_s: float) -> tuple[Outcome, str]:
    """Outcome and message from the exit of one of Ceph's programs; success has no message."""
    if done.timed_out:
        advice = "is the cluster slow, or the timeout too short?"
        return Outcome.TIMEOUT, f"{what}: not finished within {timeout_s:g} s; {advice}"
    if done.truncated:
        return Outcome.FAILURE, f"{what}: killed for writing too much output"
    if done.returncode != 0:
        status = done.returncode
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        return Outcome.FAILURE, f"{what}: {first_line(done) or 'no message'} ({how})"
    return Outcome.SUCCESS, ""


def first_line(done: Completed) -> str:
    """The first non-empty line of stderr, else the last line of stdout."""
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = lines or [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines()[-1:]]
    return excerpt(lines[0]) if lines else ""
