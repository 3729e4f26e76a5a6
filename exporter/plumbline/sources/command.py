"""What a command of another program printed, or one clear error."""

from plumbline.core.process import Completed
from plumbline.errors import PlumblineError, Unavailable

_NOT_FOUND = 127


def printed(done: Completed, what: str, within_s: float, *, needs: str = "", hint: str = "") -> bytes:
    """Standard output. :class:`Unavailable` if the program is missing, the daemon stops, or the program fails for lack
    of a right, ``needs``; :class:`PlumblineError` for other failures. ``hint``: what to do where it does not end."""
    if done.returncode == _NOT_FOUND:
        raise Unavailable(f"{what}: {done.argv[0]} is not installed")
    if done.cancelled:
        raise Unavailable(f"{what}: the daemon is stopping")
    if done.timed_out or done.truncated or done.returncode is None:
        reason = "too much output" if done.truncated else f"no answer within {within_s:.0f} s"
        raise PlumblineError(f"{what}: {reason}{hint}")
    if done.returncode != 0:
        line = (done.stderr or done.stdout).decode("utf-8", "replace").strip().partition("\n")[0]
        reason = f"{what}: exit {done.returncode}: {line}"
        raise Unavailable(f"{reason}; the daemon needs {needs}") if needs else PlumblineError(reason)
    return done.stdout
