"""Mounts: ``/proc/self/mountinfo`` (https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html).

    36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    (1)(2)(3)   (4)   (5)      (6)      (7)   (8) (9)   (10)         (11)

(1) mount id, (2) parent, (3) st_dev, (4) root within the filesystem, (5) mount point, (6) per-mount options,
(7) optional fields up to (8) the separator, (9) filesystem type, (10) source, (11) super block options.

And swap areas: ``/proc/swaps`` (https://man7.org/linux/man-pages/man5/proc_swaps.5.html)::

    Filename                                Type            Size            Used            Priority
    /swap\\040file                          file            2097148         0               -3
"""

import os
import re
from pathlib import Path

from msgspec import Struct

from plumbline.core.kernel import TABLE, read_kernel
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.sysfs import read_bytes

_ESCAPE = re.compile(r"\\([0-7]{3})")
_BEFORE_SEPARATOR = 6
_AFTER_SEPARATOR = 3


class Mount(Struct, frozen=True):
    """One mount in this process's namespace; strings have the kernel's escapes undone."""

    mount_id: int
    major: int
    minor: int
    root: str  # within the filesystem: "/", a subvolume, or the directory of a bind mount
    mount_point: str
    filesystem: str
    source: str
    options: tuple[str, ...]  # of the super block: "rw", "upperdir=/a,b"

    def option(self, name: str) -> str | None:
        """The value of ``name=value`` among the super block options."""
        prefix = f"{name}="
        return next((text[len(prefix) :] for text in self.options if text.startswith(prefix)), None)


def parse_mountinfo(text: str, *, source: str = "mountinfo") -> tuple[Mount, ...]:
    """Parse all lines of a mountinfo file; :class:`ParseError` on a line that breaks the format above."""
    mounts = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        fields = line.split(" ")
        try:
            separator = fields.index("-", _BEFORE_SEPARATOR)
            filesystem, device, options = fields[separator + 1 : separator + 1 + _AFTER_SEPARATOR]
            major, minor = fields[2].split(":")
            mounts.append(
                Mount(
                    mount_id=int(fields[0]),
                    major=int(major),
                    minor=int(minor),
                    root=unescape(fields[3]),
                    mount_point=unescape(fields[4]),
                    filesystem=unescape(filesystem),
                    source=unescape(device),
                    options=tuple(unescape(option) for option in options.split(",")),
                )
            )
        except ValueError as error:
            raise ParseError(source, f"not a mountinfo line: {line[:80]!r}", line=number) from error
    return tuple(mounts)


def parse_mount_id(text: str, *, source: str = "fdinfo") -> int:
    """Parse ``mnt_id`` of a ``/proc/<pid>/fdinfo/<fd>`` file (Linux 3.15 and newer); :class:`ParseError` without it."""
    for number, line in enumerate(text.split("\n"), 1):
        key, _, value = line.partition(":")
        if key == "mnt_id":
            try:
                return int(value)
            except ValueError as error:
                raise ParseError(source, f"mnt_id is not a number: {value[:40]!r}", line=number) from error
    raise ParseError(source, "no mnt_id line")


REMOTE = frozenset((
    "9p", "afs", "beegfs", "ceph", "cifs", "fhgfs", "fuse", "gfs2", "gpfs", "lustre", "nfs", "nfs4", "ocfs2",
    "orangefs", "pvfs2", "smb3",
))  # fmt: skip
"""Filesystem types with their data behind a network, besides the ``fuse.`` types."""
_FUSE = "fuse."  # followed by the server's name: fuse.glusterfs, fuse.sshfs, fuse.mfs (LizardFS)
# used by desktops and container hosts themselves, not storage
_FUSE_LOCAL = frozenset({"fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.portal", "fuse.snapfuse"})


class MountState(Struct, frozen=True):
    """Whether a mount that depends on a server responds."""

    mount_point: str
    filesystem: str
    up: bool | None  # None: unknown, or querying it is not permitted
    in_flight_s: float  # Duration of the running query; 0 when there is none


class MountsReading(tuple[MountState, ...]):
    """Every remote mount."""


def is_remote(filesystem: str) -> bool:
    """Whether a filesystem type depends on a server or a daemon, so that a mount may exist without responding."""
    return filesystem in REMOTE or (filesystem.startswith(_FUSE) and filesystem not in _FUSE_LOCAL)


def mount_named(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """The mount of ``path`` by its name alone, without accessing the filesystem (:func:`mount_of` follows links);
    ``None`` when none matches. Of several mounts on one mount point, the last one is on top."""
    best: Mount | None = None
    for mount in mounts:
        point = mount.mount_point.rstrip("/")
        inside = path == point or path.startswith(f"{point}/")
        if inside and (best is None or len(mount.mount_point) >= len(best.mount_point)):
            best = mount
    return best


def shows_root(mount: Mount, mounts: tuple[Mount, ...]) -> bool:
    """Whether it is a mount of the root file system: that on ``/``, or a bind mount or subvolume of the same."""
    root = mount_named("/", mounts)
    return root is not None and (root.major, root.minor) == (mount.major, mount.minor)


def read_mounts(roots: Roots) -> tuple[Mount, ...]:
    """The host's mounts: those of process 1, which a service with its own namespace can read too, or else ours."""
    path = roots.proc / "1" / "mountinfo"
    data = read_bytes(path, TABLE)
    return own_mounts(roots) if data is None else parse_mountinfo(os.fsdecode(data), source=str(path))


def own_mounts(roots: Roots) -> tuple[Mount, ...]:
    """All mounts in this process's namespace; queries no filesystem. :class:`Unavailable` when proc can't be read."""
    path = roots.proc / "self" / "mountinfo"
    data = read_bytes(path, TABLE)
    if data is None:
        raise Unavailable(f"{path}: can't be read; is procfs mounted there?")
    return parse_mountinfo(os.fsdecode(data), source=str(path))


def mount_of(path: Path, roots: Roots) -> Mount | None:
    """The mount of ``path``, or ``None`` when the kernel doesn't list it (in another namespace); :class:`Unavailable`
    when path or proc can't be read. Uses the mount id of an O_PATH descriptor: exact under bind mounts, overmounts and
    btrfs subvolumes, where comparing ``st_dev`` or path prefixes is not."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            fdinfo = roots.proc / "self" / "fdinfo" / str(descriptor)
            mount_id = parse_mount_id(read_kernel(fdinfo).decode("utf-8"), source=str(fdinfo))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Unavailable(f"{error.filename or path}: {error.strerror}; can't tell which mount {path} is on") from error
    return next((mount for mount in own_mounts(roots) if mount.mount_id == mount_id), None)


def unescape(text: str) -> str:
    """Undo the kernel's octal escapes of blank, tab, newline, comma and backslash."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text) if "\\" in text else text


class Swap(Struct, frozen=True):
    """One swap area: a block device or a file."""

    path: str
    is_file: bool


def parse_swaps(text: str, *, source: str = "/proc/swaps") -> tuple[Swap, ...]:
    """Parse all lines but the heading; :class:`ParseError` for a line without a type."""
    swaps = []
    for number, line in enumerate(text.split("\n")[1:], start=2):
        fields = line.split()
        if not fields:
            continue
        if len(fields) < 2:
            raise ParseError(source, f"not a swap area: {line[:80]!r}", line=number)
        swaps.append(Swap(unescape(fields[0]), fields[1] == "file"))
    return tuple(swaps)


def read_swaps(roots: Roots) -> tuple[Swap, ...]:
    """All swap areas; empty when the kernel has no swap or the file can't be read."""
    path = roots.proc / "swaps"
    data = read_bytes(path)
    return () if data is None else parse_swaps(data.decode("utf-8", "surrogateescape"), source=str(path))
