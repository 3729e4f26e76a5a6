"""``python -m newcomer SUITE COMMAND``: a shell command in a clone of what is committed, on a Debian of that suite.

The tree is kept in ``.debian/`` with what the command installed there; the next command begins with it and the
commit of today. The exit code is the command's; 77 where there can be no such machine.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys

from support.newcomer import missing, newcomer

NOT_HERE = 77
"""As automake's tests say that they were left out."""


def main(suite: str, command: str) -> int:
    """Run it; what it says goes to this process' output."""
    if reason := missing():
        return _not_here(reason)
    with contextlib.ExitStack() as stack:
        try:
            machine = stack.enter_context(newcomer(suite, kept=True))
        except RuntimeError as error:  # no mirror, no room
            return _not_here(str(error))
        return subprocess.run(machine.argv(command), stdin=subprocess.DEVNULL, check=False).returncode


def _not_here(reason: str) -> int:
    print(f"no Debian of its own here: {reason}", file=sys.stderr)
    return NOT_HERE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
