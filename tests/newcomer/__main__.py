"""``python -m newcomer SUITE COMMAND``: a shell command in a clone of what is committed, on a Debian of that suite.

The tree is kept in ``.debian/`` with what the command installed there; the next command begins with it and the
commit of today. The exit code is the command's; 1 where there can be no such machine.
"""

from __future__ import annotations

import subprocess
import sys

from support.newcomer import missing, newcomer


def main(suite: str, command: str) -> int:
    """Run it; what it says goes to this process' output."""
    if reason := missing():
        print(f"no Debian of its own here: {reason}", file=sys.stderr)
        return 1
    with newcomer(suite, kept=True) as machine:
        return subprocess.run(machine.argv(command), stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
