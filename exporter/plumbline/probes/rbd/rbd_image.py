"""An RBD image of our own, created and marked, or refused if anything indicates that it is someone else's; and the run
of a probe on it.

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

import re
import socket
from collections.abc import Callable
from typing import ClassVar, TypeVar

from msgspec import Struct

from plumbline.config.probes.ceph import OnImage
from plumbline.config.workloads import Workload
from plumbline.core.process import Completed
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.ceph.ceph_access import IMAGE_PREFIX, CephAccess
from plumbline.probes.rbd.rbd_commands import FAILED, Commands, first_words, is_missing_image
from plumbline.probes.rbd.rbd_output import (
    ImageInfo,
    Watcher,
    parse_extents,
    parse_info,
    parse_metadata,
    parse_watchers,
)
from plumbline.probes.run.guard import FILL_BYTES_PER_SECOND
from plumbline.probes.run.model import Host, Identity, Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.tool import FIO, RBD, Tool

OWNER, LAID_OUT = "plumbline.owner", "plumbline.laid-out"
NOT_OURS, IN_USE, OTHER_SIZE = "not-ours", "in-use", "other-size"
FEATURES = ("layering",)
_PIECE_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20
# the metadata key of ``rbd config image set … rbd_cache``
_CACHE = "conf_rbd_cache"
# an OSD drops a client that died after 30 s (``osd_client_watch_timeout``)
_WATCH_ENDS_S = 40.0
_LOOK_AGAIN_S = 2.0

T = TypeVar("T")
Measured = tuple[Outcome, str, tuple[OperationResult, ...]]  # How a run ended, why if it failed, and its figures


class ImagePlan(Struct, frozen=True):
    access: CephAccess
    pool: str
    probe: str
    host: str
    size_bytes: int
    cache: bool | None  # None: as the cluster's configuration says

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


def image_of(config: OnImage, host: Host, *, cache: bool | None) -> ImagePlan:
    return ImagePlan(
        access=CephAccess.of(host.ceph),
        pool=config.pool or host.ceph.rbd_pool,
        probe=config.name,
        host=socket.gethostname(),
        size_bytes=int(config.image_size),
        cache=cache,
    )


class RbdPlan(Struct, frozen=True, kw_only=True):
    """The final parameters of one probe's run. Times in seconds."""

    workload: Workload
    image: ImagePlan
    device_class: str
    timeout_s: float
    rate_iops: int | None = None  # Limit on each job's operations per second


class RbdProbe(Struct, frozen=True):
    """What the periodic probes of an image share."""

    program: ClassVar[str]  # The program that measures
    heavy = True

    config: OnImage
    plan: RbdPlan
    tool: Tool = FIO
    """fio lays the image out, because rbd itself can only write at full speed."""
    rbd: Tool = RBD

    @property
    def reserve_s(self) -> float:
        """Seconds that the measurement needs."""
        raise NotImplementedError

    def measure(self, commands: Commands) -> Measured:
        """Measure on the prepared image; may raise :class:`ParseError`."""
        raise NotImplementedError

    @property
    def identity(self) -> Identity:
        plan = self.plan
        return Identity.of(
            self.config,
            plan.workload,
            device_class=plan.device_class,
            tool=self.program,
            rate_iops=plan.rate_iops,
            cluster=True,
        )

    def run(self, run: Run) -> ProbeResult:
        plan, started = self.plan, run.clock()
        commands = Commands(plan.image.access, run, timeout_s=plan.timeout_s)
        fio = self.tool.version(run.runner) if self.program == "fio" else ""
        rbd = self.rbd.version(run.runner, limit_s=commands.left_s)
        done = prepare(plan.image, commands, run.progress)
        if done < plan.image.size_bytes and not fio:
            self.tool.version(run.runner)
        outcome, message = lay_out(plan.image, commands, run.progress, done=done, reserve_s=self.reserve_s)
        operations: tuple[OperationResult, ...] = ()
        if outcome is Outcome.SUCCESS:
            run.progress(Progress("measuring"))
            try:
                outcome, message, operations = self.measure(commands)
            except ParseError as error:
                outcome, message = Outcome.FAILURE, str(error)
        return self.identity.result(
            tool_version=fio or rbd,
            started=started,
            duration=plan.timeout_s - commands.left_s,
            outcome=outcome,
            operations=operations,
            message=message,
        )

    def clean_up(self, run: Run) -> None:
        """Only the image outlives a run, and the next run uses it; `plumbline ceph remove` removes it."""


def fio_argv(image: ImagePlan, job: str, *options: str) -> tuple[str, ...]:
    """fio's command on the image. The environment names the cluster: fio's rbd engine accepts no configuration path.
    ``thread``: fio's job *processes* call ``setsid`` and would escape the kill of the process group."""
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
    rate = max(block, int(bytes_per_s))
    options = ("--rw=write", f"--bs={block}", f"--offset={at}", f"--size={length}", f"--rate={rate}")
    return fio_argv(image, "layout", *options)


def prepare(image: ImagePlan, commands: Commands, progress: Callable[[Progress], None]) -> int:
    """Find the image, or create and mark it. Returns how many bytes are laid out; raises :class:`ProbeRefused`."""
    image.access.check()
    info = _info(image, commands)
    if info is None:
        progress(Progress(f"creating {image.spec}"))
        features = [word for feature in FEATURES for word in ("--image-feature", feature)]
        commands.rbd("create", "--size", f"{image.size_bytes}B", *features, image.spec)
        info = _info(image, commands)
        if info is None:
            raise ProbeRefused(IN_USE, f"{image.spec}: removed right after it was created; who else uses this image?")
    metadata = _query(parse_metadata, commands, "image-meta", "list", image.spec)
    owner = metadata.get(OWNER)
    if owner is not None and owner != image.owner:
        raise ProbeRefused(NOT_OURS, f"{image.spec}: belongs to {owner!r}; rename this probe, or remove the image")
    _check_unwatched(image, commands, progress)
    if owner is None:
        if not _is_blank(info, image, commands):
            advice = "rename this probe, or rename the image"
            raise ProbeRefused(NOT_OURS, f"{image.spec}: holds data and lacks our mark; {advice}")
        commands.rbd("image-meta", "set", image.spec, OWNER, image.owner)
    if info.size_bytes != image.size_bytes:
        removal = " ".join(("rbd", *image.access.credentials, "rm", image.spec))
        raise ProbeRefused(
            OTHER_SIZE,
            f"{image.spec}: has {info.size_bytes} bytes, but image_size is {image.size_bytes}; set image_size back,"
            f" or remove the image ({removal}): the next run creates it again",
        )
    cache = None if image.cache is None else str(image.cache).lower()
    if cache is not None and metadata.get(_CACHE) != cache:
        commands.rbd("config", "image", "set", image.spec, "rbd_cache", cache)
    done = metadata.get(LAID_OUT, "0")
    return min(int(done), image.size_bytes) if done.isascii() and done.isdigit() and len(done) < 20 else 0


def lay_out(
    image: ImagePlan, commands: Commands, progress: Callable[[Progress], None], *, done: int, reserve_s: float
) -> tuple[Outcome, str]:
    """Write what is missing. Success if ``reserve_s`` of the time is left after that; the message says why not."""
    while done < image.size_bytes:
        left_s = commands.left_s - reserve_s
        incomplete = f"laying out {image.spec}: wrote {done >> 20} of {image.size_bytes >> 20} MiB"
        if left_s <= 0:
            return Outcome.TIMEOUT, f"{incomplete}; the next run continues"
        progress(Progress("laying out the image", done / image.size_bytes, f"{done >> 20} MiB"))
        length = min(_PIECE_BYTES, image.size_bytes - done)
        pace = max(FILL_BYTES_PER_SECOND, 2 * (image.size_bytes - done) / left_s)
        completed = commands.run(layout_argv(image, done, length, bytes_per_s=pace), limit_s=left_s)
        if completed.timed_out:
            return Outcome.TIMEOUT, f"{incomplete}; the next run continues"
        if completed.returncode != 0:
            words = first_words(completed) or f"exit status {completed.returncode}"
            return Outcome.FAILURE, f"laying out {image.spec}: {words}"
        done += length
        commands.rbd("image-meta", "set", image.spec, LAID_OUT, str(done))
    if commands.left_s <= reserve_s:
        return Outcome.TIMEOUT, "preparing the image took all the time; the next run measures"
    return Outcome.SUCCESS, ""


def _info(image: ImagePlan, commands: Commands) -> ImageInfo | None:
    done = commands.rbd("info", image.spec, "--format", "json")
    return None if is_missing_image(done) else _parsed(parse_info, done)


def _is_blank(info: ImageInfo, image: ImagePlan, commands: Commands) -> bool:
    if info.snapshot_count or info.parent is not None or info.size_bytes != image.size_bytes:
        return False
    return _query(parse_extents, commands, "diff", image.spec, "--whole-object") == 0


def _check_unwatched(image: ImagePlan, commands: Commands, progress: Callable[[Progress], None]) -> None:
    """Refuse while another client has the image open. One on this host may be our own killed run: wait for its end."""
    waited_s = 0.0
    while watchers := _query(parse_watchers, commands, "status", image.spec):
        foreign = [watcher for watcher in watchers if not _is_of_this_host(watcher)]
        if foreign or waited_s >= _WATCH_ENDS_S or commands.left_s < _LOOK_AGAIN_S:
            clients = ", ".join(map(str, foreign or watchers))
            raise ProbeRefused(IN_USE, f"{image.spec}: {clients} has it open; only this probe may use the image")
        progress(Progress(f"waiting for the end of an earlier run: {watchers[0]}"))
        commands.wait(_LOOK_AGAIN_S)
        waited_s += _LOOK_AGAIN_S


def _is_of_this_host(watcher: Watcher) -> bool:
    """Whether the address belongs to this host: only then can it be bound."""
    family = socket.AF_INET6 if ":" in watcher.ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((watcher.ip, 0))
    except OSError:
        return False
    return True


def _query(parse: Callable[[bytes], T], commands: Commands, *arguments: str) -> T:
    return _parsed(parse, commands.rbd(*arguments, "--format", "json"))


def _parsed(parse: Callable[[bytes], T], done: Completed) -> T:
    try:
        return parse(done.stdout)
    except ParseError as error:
        raise ProbeRefused(FAILED, str(error)) from error
