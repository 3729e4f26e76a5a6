"""An RBD image of our own: created and marked, or refused if anything indicates that it is someone else's.

The mark is image metadata (``plumbline.owner`` = host/probe), so it stays with the image when it is renamed. An image
without a mark is taken only if nothing was ever written to it and nobody has it open: that is the state after a crash
between creating and marking.

How our images are created, and why:

- In the default namespace of a pool that is ours alone: fio's rbd engine has no namespace option (up to 3.42).
- Without exclusive-lock and the features that build on it. Several jobs with the image open would pass the lock around
  (4 jobs: up to 3.9 s for a write of 4 KiB), and after a killed run the next one would have to blocklist the dead
  client. Once every object exists, neither feature is involved in reads and writes.
- For fio, with librbd's cache off (``rbd_cache``, set on the image): with Ceph's defaults a write is acknowledged from
  this node's memory (measured: 0.03 ms with, 4 ms without), so the run would not measure the cluster. ``rbd bench``
  uses the cache as configured, as its documented runs did.
- Filled before the first run: a read of an object that does not exist never reaches a disk. This is done in pieces, and
  the progress is stored in the metadata, so that a slow cluster completes it over several runs.

https://docs.ceph.com/en/latest/rbd/rbd-config-ref/ · https://docs.ceph.com/en/latest/man/8/rbd/
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from plumbline.core.process import Completed
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.ceph.ceph_access import IMAGE_PREFIX, CephAccess
from plumbline.probes.guard import FILL_BYTES_PER_SECOND
from plumbline.probes.model import Progress
from plumbline.probes.rbd.rbd_answers import (
    ImageInfo,
    Watcher,
    parse_extents,
    parse_info,
    parse_metadata,
    parse_watchers,
)
from plumbline.probes.rbd.rbd_commands import FAILED, Commands, is_missing_image, words

OWNER, LAID_OUT = "plumbline.owner", "plumbline.laid-out"
NOT_OURS, IN_USE, OTHER_SIZE = "not-ours", "in-use", "other-size"
FEATURES = ("layering",)
WATCH_ENDS_S = 40.0
"""An OSD drops a client that died after 30 s (``osd_client_watch_timeout``)."""
_PIECE_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20
# the metadata key of ``rbd config image set … rbd_cache``
_CACHE = "conf_rbd_cache"
_LOOK_AGAIN_S = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """The image that a probe works in."""

    access: CephAccess
    pool: str
    probe: str
    host: str
    size_bytes: int
    cache: bool | None
    """``None``: as the cluster's configuration says."""
    watch_ends_s: float = WATCH_ENDS_S
    """How long to wait for the end of an earlier run of ours that was killed."""

    @property
    def name(self) -> str:
        """The image's name; characters that separate names (``/ @``) are replaced."""
        return re.sub(r"[^A-Za-z0-9._-]", "-", f"{IMAGE_PREFIX}{self.host}-{self.probe}")

    @property
    def spec(self) -> str:
        """``pool/image``."""
        return f"{self.pool}/{self.name}"

    @property
    def owner(self) -> str:
        """The content of its mark."""
        return f"{self.host}/{self.probe}"

    @property
    def removal(self) -> str:
        """The command that removes it, for messages."""
        keyring = () if self.access.keyring is None else ("--keyring", self.access.keyring)
        return " ".join(("rbd", "--conf", self.access.conf, "--name", self.access.user, *keyring, "rm", self.spec))


def fio_argv(image: ImagePlan, job: str, *options: str) -> tuple[str, ...]:
    """fio's command on the image. The environment names the cluster: fio's rbd engine accepts no configuration path.

    ``thread``: fio's job *processes* call ``setsid`` and would escape the kill of the process group.
    """
    return image.access.in_environment(
        "fio",
        f"--name={job}",
        "--ioengine=rbd",
        f"--clientname={image.access.id}",
        f"--pool={image.pool}",
        f"--rbdname={image.name}",
        "--thread=1",
        "--refill_buffers=1",
        "--exitall_on_error=1",
        "--eta=never",
        *options,
    )


def layout_argv(image: ImagePlan, at: int, length: int, *, bytes_per_s: float) -> tuple[str, ...]:
    """fio's command line to write one piece of the image once, at a limited rate."""
    block = min(_BLOCK_BYTES, length)
    return fio_argv(
        image,
        "layout",
        "--rw=write",
        f"--bs={block}",
        f"--offset={at}",
        f"--size={length}",
        f"--rate={max(block, int(bytes_per_s))}",
    )


def prepare(image: ImagePlan, commands: Commands, progress: Callable[[Progress], None]) -> int:
    """Find the image, or create and mark it. Returns how many bytes are laid out; raises :class:`ProbeRefused`."""
    image.access.check()
    info = _info(image, commands)
    if info is None:
        progress(Progress(f"making {image.spec}"))
        features = [word for feature in FEATURES for word in ("--image-feature", feature)]
        commands.rbd("create", "--size", f"{image.size_bytes}B", *features, image.spec)
        info = _info(image, commands)
        if info is None:
            raise ProbeRefused(IN_USE, f"{image.spec}: was removed as soon as it was made; who else works on it?")
    said = _checked(parse_metadata, commands.rbd("image-meta", "list", image.spec, "--format", "json"))
    owner = said.get(OWNER)
    if owner is not None and owner != image.owner:
        raise ProbeRefused(NOT_OURS, f"{image.spec}: belongs to {owner!r}; rename this probe, or remove the image")
    _not_watched(image, commands, progress)
    if owner is None:
        if not _is_blank(info, image, commands):
            raise ProbeRefused(
                NOT_OURS, f"{image.spec}: holds data and no mark of ours; rename this probe, or move the image away"
            )
        commands.rbd("image-meta", "set", image.spec, OWNER, image.owner)
    if info.size_bytes != image.size_bytes:
        raise ProbeRefused(
            OTHER_SIZE,
            f"{image.spec}: has {info.size_bytes} bytes, image_size says {image.size_bytes}; set image_size back,"
            f" or remove the image ({image.removal}): the next run makes it anew",
        )
    wanted = None if image.cache is None else str(image.cache).lower()
    if wanted is not None and said.get(_CACHE) != wanted:
        commands.rbd("config", "image", "set", image.spec, "rbd_cache", wanted)
    done = said.get(LAID_OUT, "0")
    return min(int(done), image.size_bytes) if done.isascii() and done.isdigit() and len(done) < 20 else 0


def lay_out(
    image: ImagePlan, commands: Commands, progress: Callable[[Progress], None], *, done: int, reserve_s: float
) -> tuple[bool, str]:
    """Write what is missing, keeping ``reserve_s`` of the time. Returns False if fio failed, and why the layout is
    incomplete (empty: complete)."""
    while done < image.size_bytes:
        left = commands.left_s - reserve_s
        if left <= 0:
            return True, _came_to(image, done)
        progress(Progress("laying out the image", done / image.size_bytes, f"{done >> 20} MiB"))
        length = min(_PIECE_BYTES, image.size_bytes - done)
        pace = max(FILL_BYTES_PER_SECOND, 2 * (image.size_bytes - done) / left)
        completed = commands.run(layout_argv(image, done, length, bytes_per_s=pace), limit_s=left)
        if completed.timed_out:
            return True, _came_to(image, done)
        if completed.returncode != 0:
            return False, f"laying out {image.spec}: {words(completed) or f'exit status {completed.returncode}'}"
        done += length
        commands.rbd("image-meta", "set", image.spec, LAID_OUT, str(done))
    return True, ""


def _came_to(image: ImagePlan, done: int) -> str:
    return f"laying out {image.spec}: came to {done >> 20} of {image.size_bytes >> 20} MiB; the next run goes on"


def _info(image: ImagePlan, commands: Commands) -> ImageInfo | None:
    done = commands.rbd("info", image.spec, "--format", "json")
    return None if is_missing_image(done) else _checked(parse_info, done)


def _is_blank(info: ImageInfo, image: ImagePlan, commands: Commands) -> bool:
    if info.snapshots or info.parent or info.size_bytes != image.size_bytes:
        return False
    return _checked(parse_extents, commands.rbd("diff", image.spec, "--whole-object", "--format", "json")) == 0


def _not_watched(image: ImagePlan, commands: Commands, progress: Callable[[Progress], None]) -> None:
    """Refuse while another client has the image open. A client on this host may be our own killed run: wait until the
    OSD drops it."""
    waited = 0.0
    while watchers := _checked(parse_watchers, commands.rbd("status", image.spec, "--format", "json")):
        foreign = [each for each in watchers if not _of_this_host(each)]
        if foreign or waited >= image.watch_ends_s or commands.left_s < _LOOK_AGAIN_S:
            who = ", ".join(str(each) for each in foreign or watchers)
            raise ProbeRefused(IN_USE, f"{image.spec}: {who} has it open; end that, the image is for this probe alone")
        progress(Progress(f"waiting for the end of an earlier run: {watchers[0]}"))
        commands.wait(_LOOK_AGAIN_S)
        waited += _LOOK_AGAIN_S


def _of_this_host(watcher: Watcher) -> bool:
    """Whether the address belongs to this host: only then can it be bound."""
    family = socket.AF_INET6 if ":" in watcher.ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((watcher.ip, 0))
    except OSError:
        return False
    return True


def _checked(parse: Callable[[bytes], T], done: Completed) -> T:
    try:
        return parse(done.stdout)
    except ParseError as error:
        raise ProbeRefused(FAILED, str(error)) from error
