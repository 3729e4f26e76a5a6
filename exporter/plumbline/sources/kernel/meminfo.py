"""The host's memory: ``MemTotal`` of ``/proc/meminfo``, proc(5), in KiB. ::

MemTotal:       263833164 kB
"""

import re

from plumbline.core.roots import Roots
from plumbline.sources.kernel import sysfs


def parse_total(text: str) -> int | None:
    """Bytes; ``None`` without such a line."""
    match = re.search(r"^MemTotal: +([0-9]{1,15}) kB$", text, re.M)
    return int(match[1]) * 1024 if match else None


def read_total(roots: Roots) -> int | None:
    return parse_total((sysfs.read_bytes(roots.proc / "meminfo") or b"").decode("utf-8", "replace"))
