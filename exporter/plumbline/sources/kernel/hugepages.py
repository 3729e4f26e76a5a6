"""When the kernel gives memory in transparent huge pages: ``/sys/kernel/mm/transparent_hugepage``.

https://docs.kernel.org/admin-guide/mm/transhuge.html; the choice in force stands in brackets::

    enabled   always [madvise] never
    defrag    always defer defer+madvise [madvise] never
"""

import re

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.sources.kernel import sysfs

_CHOSEN = re.compile(r"(?:[a-z+]+ )*\[([a-z+]+)\](?: [a-z+]+)*")


class HugePages(Struct, frozen=True):
    """The kernel's words: who gets huge pages, and who waits for memory to be moved together for them."""

    enabled: str
    defrag: str = ""  # empty: not known


def parse_choice(text: str, *, source: str) -> str:
    """The word in brackets; :class:`ParseError` for a text without exactly one."""
    return sysfs.matched(_CHOSEN, text, "a choice in brackets", source)[1]


def read_hugepages(roots: Roots) -> HugePages:
    """:class:`Unavailable` where the kernel has none (``CONFIG_TRANSPARENT_HUGEPAGE``)."""
    base = roots.sys / "kernel" / "mm" / "transparent_hugepage"
    enabled = sysfs.read_parsed(base / "enabled", parse_choice)
    if enabled is None:
        raise Unavailable(f"{base}: this kernel has no transparent huge pages")
    return HugePages(enabled, sysfs.read_parsed(base / "defrag", parse_choice) or "")
