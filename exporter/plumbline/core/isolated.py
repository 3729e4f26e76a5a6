"""The command line of a process that runs one module of ours, apart from the daemon and from the environment.

``-I``: no environment, no current directory; ``-S``: no site packages either, so that only the standard library and
light modules of ours are there: 15 ms instead of 100, and a tenth of the memory. Light itself: workers import it.
"""

from __future__ import annotations

import sys
from pathlib import Path

# before everything else in the path: the code that started it, not another version that is installed, too
_BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv[1]); from importlib import import_module; "
    "sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))"
)
_CODE = str(Path(__file__).resolve().parents[2])


def argv_of(
    module: str, *arguments: str, site_packages: bool = False, interpreter: str = sys.executable
) -> tuple[str, ...]:
    """What calls ``main(arguments)`` of ``module``, by its full name. Arguments can be read by everybody on the
    host: no secret among them."""
    switches = ("-I",) if site_packages else ("-I", "-S")
    return (interpreter, *switches, "-c", _BOOTSTRAP, _CODE, module, *arguments)
