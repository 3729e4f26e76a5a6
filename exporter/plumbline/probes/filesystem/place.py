"""The mount of a probe's directory by the kernel's list of mounts alone: querying the mount itself could hang."""

from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.probes.filesystem.mount_place import wrong_place
from plumbline.probes.run.model import Host
from plumbline.sources.kernel.mounts import Mount, mount_named, own_mounts, shows_root


def place_of(directory: Path, expected: str | None, host: Host) -> tuple[str, str, bool]:
    """The type of the file system, the disk below, and whether the right one is mounted; if it is not, the expected
    type or an empty one, and no disk."""
    mounts = _own(host.roots)
    mount = mount_named(str(directory), mounts)
    if mount is None or wrong_place(mount.filesystem, mount.mount_point, expected, root=shows_root(mount, mounts)):
        return expected or "", "", False
    below = host.disk_below(directory)
    return mount.filesystem, below.name if below else "", True


def mount_by_name(directory: str, roots: Roots) -> Mount | None:
    return mount_named(directory, _own(roots))


def _own(roots: Roots) -> tuple[Mount, ...]:
    try:
        return own_mounts(roots)
    except PlumblineError:
        return ()
