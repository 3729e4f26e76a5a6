"""The step between the daemon and a command: sets up the process, then executes the command in it.

Run as a script in an isolated interpreter, never imported::

    python -I -S launch.py <parent pid> <keep|drop> <command> [argument …]

The daemon has threads, so ``preexec_fn`` would run Python between fork and exec in a copy of a threaded process, where
any lock may be held for ever (a deadlock that the subprocess documentation warns of).

Before ``exec`` it sets, in this order:

- ``PR_SET_PDEATHSIG`` SIGKILL: the command dies with the daemon, even if the daemon is killed by SIGKILL
  (prctl(2); tied to the *thread* that started it, which is the one that waits for it in ``process.py``);
- with ``drop``, no ambient capabilities (PR_CAP_AMBIENT): a probe must not get what the daemon holds to query disks;
- nice 10 and I/O priority best-effort 7 (ioprio_set(2)): below everything else, but not the idle class, which
  would measure starvation instead of the service;
- signal dispositions and mask as a shell would set them (an interpreter ignores SIGPIPE, and that is inherited).

Exit status 127 with a line on stderr: the command could not be executed.
"""

import ctypes
import os
import platform
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_IOPRIO_WHO_PROCESS = 1
_IOPRIO_BEST_EFFORT_7 = (2 << 13) | 7
# ioprio_set has no libc wrapper; on an architecture not listed here the I/O priority follows nice
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "loongarch64": 30, "ppc64le": 273, "s390x": 282}


def main() -> int:
    """Set the process up and execute ``sys.argv[3:]``; returns only if that fails."""
    parent, capabilities, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return 127  # the daemon died before prctl: no signal will come, so don't start
    if capabilities != "keep":
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    os.nice(10)
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        libc.syscall(number, _IOPRIO_WHO_PROCESS, 0, _IOPRIO_BEST_EFFORT_7)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execvp(command[0], command)  # noqa: S606  (no shell is the point)
    except OSError as error:
        print(f"{command[0]}: can't be executed: {error.strerror}", file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main())
