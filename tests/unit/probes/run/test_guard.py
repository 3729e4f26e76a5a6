"""The guard's refusals, each on a real file system."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plumbline.core import files, refusals
from plumbline.errors import ProbeRefused
from plumbline.probes.run import guard
from plumbline.sources.kernel import filesystem_type
from support.descriptors import open_descriptors
from support.filesystems import Mounts, run, skip_without_root

MIB = 2**20
needs_root = pytest.mark.needs_root
SIZE = 4 * MIB


def no_pause(_seconds: float) -> None:
    return


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def refusal(path: Path, size_bytes: int = SIZE) -> ProbeRefused:
    with pytest.raises(ProbeRefused) as caught:
        guard.prepare_directory(path, size_bytes=size_bytes)
    message = str(caught.value)
    assert message.endswith((guard.ADVICE[caught.value.reason], *(advice for _, advice in refusals._WHAT.values())))
    assert str(path if caught.value.reason != "missing" else path.parent) in message
    return caught.value


class TestTakesADirectory:
    def test_that_does_not_exist_yet(self, tmp_path: Path) -> None:
        with guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE) as directory:
            assert Path(directory.files.name) == tmp_path / "probe"
            assert (tmp_path / "probe").stat().st_mode & 0o777 == 0o700
            assert (tmp_path / "probe" / guard.MARKER).read_bytes() == guard.MARKER_TEXT

    def test_that_is_empty(self, tmp_path: Path) -> None:
        (tmp_path / "probe").mkdir(mode=0o755)
        guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE).close()
        assert (tmp_path / "probe" / guard.MARKER).is_file()

    def test_again_once_marked(self, tmp_path: Path) -> None:
        guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE).close()
        (tmp_path / "probe" / "canary.dat").write_bytes(b"from the last run")
        guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE).close()
        assert (tmp_path / "probe" / "canary.dat").read_bytes() == b"from the last run"

    def test_with_a_trailing_slash_and_through_a_linked_parent(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        guard.prepare_directory(f"{tmp_path}/link/probe/", size_bytes=SIZE).close()
        assert (tmp_path / "real" / "probe" / guard.MARKER).is_file()


class TestRefuses:
    def test_a_directory_with_foreign_files(self, tmp_path: Path) -> None:
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
        assert refusal(tmp_path / "photos").reason == "not-ours"
        assert [entry.name for entry in (tmp_path / "photos").iterdir()] == ["cat.jpg"]

    def test_a_symbolic_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "probe").symlink_to("real")
        assert refusal(tmp_path / "probe").reason == "symlink"
        assert list((tmp_path / "real").iterdir()) == []

    def test_a_dangling_symbolic_link(self, tmp_path: Path) -> None:
        (tmp_path / "probe").symlink_to("nowhere")
        assert refusal(tmp_path / "probe").reason == "symlink"
        assert not (tmp_path / "nowhere").exists()

    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "probe").write_bytes(b"")
        assert refusal(tmp_path / "probe").reason == "not-a-directory"

    @pytest.mark.parametrize("path", ["/", "//", "..", "."])
    def test_what_has_no_name_of_its_own(self, path: str) -> None:
        with pytest.raises(ProbeRefused) as caught:
            guard.prepare_directory(path, size_bytes=SIZE)
        assert caught.value.reason == "not-ours"

    def test_a_missing_parent(self, tmp_path: Path) -> None:
        assert refusal(tmp_path / "not" / "there").reason == "missing"
        assert not (tmp_path / "not").exists()

    def test_a_directory_that_others_may_write(self, tmp_path: Path) -> None:
        (tmp_path / "probe").mkdir()
        (tmp_path / "probe").chmod(0o777)
        refused = refusal(tmp_path / "probe")
        assert refused.reason == "not-ours"
        assert "chmod go-w" in str(refused)

    def test_a_marker_that_is_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "probe").mkdir(mode=0o755)
        (tmp_path / "victim").write_bytes(b"mine")
        (tmp_path / "probe" / guard.MARKER).symlink_to(tmp_path / "victim")
        assert refusal(tmp_path / "probe").reason == "symlink"
        assert (tmp_path / "victim").read_bytes() == b"mine"

    @pytest.mark.parametrize("content", [b"", guard.MARKER_TEXT[:-1], guard.MARKER_TEXT + b"x", b"somebody's own"])
    def test_a_marker_that_does_not_hold_our_text(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "probe").mkdir(mode=0o755)
        (tmp_path / "probe" / guard.MARKER).write_bytes(content)
        (tmp_path / "probe" / "canary.dat").write_bytes(b"somebody's")
        assert refusal(tmp_path / "probe").reason == "not-ours"
        assert (tmp_path / "probe" / guard.MARKER).read_bytes() == content
        assert (tmp_path / "probe" / "canary.dat").read_bytes() == b"somebody's"

    def test_a_second_probe_at_the_same_time(self, tmp_path: Path) -> None:
        with guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE):
            assert refusal(tmp_path / "probe").reason == "locked"
        guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE).close()

    def test_many_at_once_and_one_at_a_time_gets_in(self, tmp_path: Path) -> None:
        """The loser of a race for the lock once took the winner's mark away, and a third got in beside the winner."""
        for number in range(12):
            inside = self._all_at_once(tmp_path / f"probe-{number}")
            assert len(inside) == 1
            directory = inside.pop()
            assert (Path(directory.files.name) / guard.MARKER).read_bytes() == guard.MARKER_TEXT
            assert refusal(Path(directory.files.name)).reason == "locked"
            directory.close()

    def _all_at_once(self, path: Path) -> list[guard.ProbeDirectory]:
        barrier = threading.Barrier(6)
        inside: list[guard.ProbeDirectory] = []
        reasons: set[str] = set()

        def enter() -> None:
            barrier.wait()
            for _ in range(2):
                try:
                    inside.append(guard.prepare_directory(path, size_bytes=SIZE))
                except ProbeRefused as refused:
                    reasons.add(refused.reason)

        path.mkdir(mode=0o700)
        threads = [threading.Thread(target=enter) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert reasons == {"locked"}
        return inside

    def test_a_mark_that_can_not_be_written_whole_is_none(self, tmp_path: Path) -> None:
        """A real limit on file size stands in for a full disk; half a mark would be refused for ever."""
        with file_size_limit(10):
            assert refusal(tmp_path / "probe").reason == "io-error"
        assert not (tmp_path / "probe").exists()

    def test_what_a_crash_left_while_the_mark_was_made_is_no_obstacle(self, tmp_path: Path) -> None:
        (tmp_path / "probe").mkdir(mode=0o700)
        (tmp_path / "probe" / ".plumbline-0123456789abcdef.new").write_bytes(guard.MARKER_TEXT[:10])
        guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE).close()
        assert (tmp_path / "probe" / guard.MARKER).read_bytes() == guard.MARKER_TEXT

    def test_a_mark_that_was_just_made_goes_with_the_refusal(self, tmp_path: Path, monkeypatch) -> None:
        """One that was there before stays."""

        def no_direct_io(*_: object) -> int:
            raise guard.refused("no-direct-io", "here", "refused")

        monkeypatch.setattr(guard, "_open_direct", no_direct_io)
        (tmp_path / "probe").mkdir(mode=0o700)
        for marked in (False, True):
            if marked:
                guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE, direct=False).close()
            with pytest.raises(ProbeRefused):
                guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE)
            assert [each.name for each in (tmp_path / "probe").iterdir()] == ([guard.MARKER] if marked else [])

    def test_more_than_the_disk_can_hold(self, tmp_path: Path) -> None:
        assert refusal(tmp_path / "probe", 2**60).reason == "no-space"
        assert not (tmp_path / "probe").exists()

    def test_leaks_no_descriptor(self, tmp_path: Path) -> None:
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
        before = open_descriptors()
        refusal(tmp_path / "photos")
        guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE).close()
        assert open_descriptors() <= before

    @needs_root
    def test_another_users_directory(self, tmp_path: Path) -> None:
        skip_without_root("gives a directory away")
        (tmp_path / "probe").mkdir()
        os.chown(tmp_path / "probe", 12345, 12345)
        assert refusal(tmp_path / "probe").reason == "not-ours"

    @needs_root
    @pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
    def test_memory(self, mounts: Mounts, tmp_path: Path, kind: str) -> None:
        point = mounts.mount("memory", "-t", kind, "none")
        assert refusal(point / "probe").reason == "memory-filesystem"
        assert list(point.iterdir()) == []

    @needs_root
    def test_an_overlay_over_memory(self, mounts: Mounts, tmp_path: Path) -> None:
        memory = mounts.mount("memory", "-t", "tmpfs", "none")
        for name in ("lower", "upper", "work"):
            (memory / name).mkdir()
        layers = f"lowerdir={memory}/lower,upperdir={memory}/upper,workdir={memory}/work"
        point = mounts.mount("both", "-t", "overlay", "overlay", "-o", layers)
        assert refusal(point / "probe").reason == "memory-filesystem"

    @needs_root
    def test_an_overlay_over_its_own_upper_layer_is_no_endless_question(self, mounts: Mounts, tmp_path: Path) -> None:
        for name in ("lower/upper", "both/upper", "both/work"):
            (tmp_path / name).mkdir(parents=True)
        layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/both/upper"
        point = mounts.mount("both", "-t", "overlay", "overlay", "-o", f"{layers},workdir={tmp_path}/both/work")
        assert (point / "upper").is_dir(), "its upper layer is found on itself"
        guard.prepare_directory(point / "probe", size_bytes=SIZE, direct=False).close()

    @needs_root
    def test_a_read_only_bind_mount(self, mounts: Mounts, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        point = mounts.mount("bound", "--bind", tmp_path / "real")
        run("mount", "-o", "remount,bind,ro", point)
        assert refusal(point / "probe").reason == "read-only"

    @needs_root
    def test_a_read_only_file_system_with_our_marker_on_it(self, mounts: Mounts, tmp_path: Path) -> None:
        point = mounts.ext4(128)
        guard.prepare_directory(point / "probe", size_bytes=SIZE).close()
        run("mount", "-o", "remount,ro", point)
        assert refusal(point / "probe").reason == "read-only"

    @needs_root
    def test_a_small_disk_but_not_for_what_it_already_holds(self, mounts: Mounts, tmp_path: Path) -> None:
        point = mounts.ext4(100)
        with guard.prepare_directory(point / "probe", size_bytes=SIZE) as directory:
            os.close(directory.open_file("x", SIZE, direct=True, dsync=False, pause=no_pause))
        free = shutil.disk_usage(point).free
        with (point / "production").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free - 66 * MIB)
        assert refusal(point / "other").reason == "no-space"
        assert not (point / "other").exists()
        assert refusal(point / "probe").reason == "no-space", "only what will be overwritten counts as held"
        guard.prepare_directory(point / "probe", size_bytes=SIZE, files=("x",)).close()
        with (point / "production").open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, free - 40 * MIB)
        with pytest.raises(ProbeRefused, match=r"(39|40) MiB free, 64 MiB needed"):
            guard.prepare_directory(point / "probe", size_bytes=SIZE, files=("x",))
        guard.prepare_directory(point / "probe", size_bytes=0).close()  # to remove what is there

    def test_a_file_system_without_direct_io(self) -> None:
        """No file system without O_DIRECT can be mounted everywhere: /proc, where nothing can be made, has to do."""
        with files.OwnDirectory.at("/proc", owner=0) as directory, pytest.raises(ProbeRefused) as caught:
            guard._open_direct(directory, "version", os.O_RDONLY | os.O_DIRECT)
        assert caught.value.reason == "no-direct-io"


class TestFile:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> Iterator[guard.ProbeDirectory]:
        with guard.prepare_directory(tmp_path / "probe", size_bytes=SIZE) as directory:
            yield directory

    def opened(self, directory: guard.ProbeDirectory, size_bytes: int = SIZE, *, dsync: bool = False) -> os.stat_result:
        fd = directory.open_file("canary.dat", size_bytes, direct=True, dsync=dsync, pause=no_pause)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def refusal(self, directory: guard.ProbeDirectory) -> str:
        before = open_descriptors()
        with pytest.raises(ProbeRefused) as caught:
            self.opened(directory)
        assert open_descriptors() <= before
        return caught.value.reason

    def test_is_allocated_and_not_of_zeros(self, directory: guard.ProbeDirectory) -> None:
        found = self.opened(directory)
        assert (found.st_size, found.st_mode & 0o777) == (SIZE, 0o600)
        assert found.st_blocks * 512 >= SIZE
        blocks = (Path(directory.files.name) / "canary.dat").read_bytes()
        assert len({blocks[at : at + 4096] for at in range(0, SIZE, 4096)}) == SIZE // 4096

    def test_is_written_once_only(self, directory: guard.ProbeDirectory) -> None:
        self.opened(directory)
        before = (Path(directory.files.name) / "canary.dat").read_bytes()
        self.opened(directory)
        assert (Path(directory.files.name) / "canary.dat").read_bytes() == before

    @pytest.mark.parametrize("size_bytes", [SIZE // 2, SIZE + 12345])
    def test_takes_its_new_size(self, directory: guard.ProbeDirectory, size_bytes: int) -> None:
        self.opened(directory)
        found = self.opened(directory, size_bytes)
        assert found.st_size == size_bytes
        assert found.st_blocks * 512 >= size_bytes

    def test_with_holes_is_filled(self, directory: guard.ProbeDirectory) -> None:
        with (Path(directory.files.name) / "canary.dat").open("wb") as file:
            file.truncate(SIZE)
        assert self.opened(directory).st_blocks * 512 >= SIZE

    def test_has_the_flags_that_were_asked_for(self, directory: guard.ProbeDirectory) -> None:
        import fcntl

        for direct, dsync in [(True, True), (True, False), (False, True), (False, False)]:
            fd = directory.open_file("canary.dat", SIZE, direct=direct, dsync=dsync, pause=no_pause)
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            os.close(fd)
            assert bool(flags & os.O_DIRECT) is direct
            assert bool(flags & os.O_DSYNC) is dsync
            assert not flags & os.O_NONBLOCK

    def test_is_filled_at_32_mib_a_second(self, directory: guard.ProbeDirectory) -> None:
        pauses: list[float] = []
        os.close(directory.open_file("x", SIZE, direct=True, dsync=False, pause=pauses.append))
        assert sum(pauses) == SIZE / (32 * MIB)
        assert max(pauses) == min(pauses) == 1 / 512

    def test_with_a_second_name_is_refused(self, directory: guard.ProbeDirectory, tmp_path: Path) -> None:
        (tmp_path / "precious").write_bytes(b"mine")
        os.link(tmp_path / "precious", Path(directory.files.name) / "canary.dat")
        assert self.refusal(directory) == "not-ours"
        assert (tmp_path / "precious").read_bytes() == b"mine"

    def test_that_is_a_link_is_refused(self, directory: guard.ProbeDirectory, tmp_path: Path) -> None:
        (tmp_path / "precious").write_bytes(b"mine")
        (Path(directory.files.name) / "canary.dat").symlink_to(tmp_path / "precious")
        assert self.refusal(directory) == "symlink"
        assert (tmp_path / "precious").read_bytes() == b"mine"

    def test_that_is_a_pipe_is_refused_without_waiting(self, directory: guard.ProbeDirectory) -> None:
        os.mkfifo(Path(directory.files.name) / "canary.dat")
        assert self.refusal(directory) == "not-ours"

    @needs_root
    def test_of_another_user_is_refused(self, directory: guard.ProbeDirectory) -> None:
        skip_without_root("gives a file away")
        (Path(directory.files.name) / "canary.dat").write_bytes(b"theirs")
        os.chown(Path(directory.files.name) / "canary.dat", 12345, 12345)
        assert self.refusal(directory) == "not-ours"
        assert (Path(directory.files.name) / "canary.dat").read_bytes() == b"theirs"

    def test_stays_in_the_opened_directory(self, directory: guard.ProbeDirectory, tmp_path: Path) -> None:
        """Another directory put in its place after the check gets nothing."""
        (tmp_path / "precious").mkdir()
        (tmp_path / "probe").rename(tmp_path / "moved")
        (tmp_path / "probe").symlink_to("precious")
        self.opened(directory)
        assert list((tmp_path / "precious").iterdir()) == []
        assert (tmp_path / "moved" / "canary.dat").stat().st_size == SIZE

    def test_gives_its_blocks_back_when_it_can_not_be_filled(self, directory: guard.ProbeDirectory) -> None:
        """A real limit of the kernel on file size (EFBIG) stands in for any write that fails half-way."""
        with file_size_limit(2 * MIB):
            assert self.refusal(directory) == "io-error"
        assert (Path(directory.files.name) / "canary.dat").stat().st_blocks == 0

    @needs_root
    def test_stops_and_gives_its_blocks_back_when_others_fill_the_disk(self, mounts: Mounts, tmp_path: Path) -> None:
        point = mounts.ext4(130)

        def others(_seconds: float) -> None:
            with (point / "production").open("ab") as file:
                free = os.fstatvfs(file.fileno())
                os.posix_fallocate(file.fileno(), 0, max(MIB, free.f_bavail * free.f_frsize - 60 * MIB))

        with guard.prepare_directory(point / "probe", size_bytes=4 * SIZE) as directory:
            with pytest.raises(ProbeRefused, match="MiB free, 64 MiB needed") as caught:
                directory.open_file("canary.dat", 4 * SIZE, direct=True, dsync=False, pause=others)
            assert caught.value.reason == "no-space"
            assert (Path(directory.files.name) / "canary.dat").stat().st_blocks == 0
        assert shutil.disk_usage(point).free > 50 * MIB

    @needs_root
    def test_on_a_full_disk_is_refused_and_leaves_no_blocks(self, mounts: Mounts, tmp_path: Path) -> None:
        point = mounts.ext4(100)
        with guard.prepare_directory(point / "probe", size_bytes=SIZE) as directory:
            with pytest.raises(OSError, match="No space left"):
                (point / "production").write_bytes(bytes(200 * MIB))
            assert self.refusal(directory) == "no-space"
            assert (Path(directory.files.name) / "canary.dat").stat().st_blocks == 0

    @pytest.mark.parametrize("name", ["a/b", "..", "", guard.MARKER])
    def test_has_a_plain_name(self, directory: guard.ProbeDirectory, name: str) -> None:
        with pytest.raises(ValueError, match="plain file name"):
            directory.open_file(name, SIZE, direct=True, dsync=False)


MOUNTINFO = """\
22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
35 28 0:30 / /mnt/a\\040b rw,relatime - tmpfs tmpfs rw,size=4k
36 28 0:31 / /merged rw shared:5 master:1 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
"""


@pytest.mark.parametrize(
    ("mount_id", "found"),
    [
        (28, ("ext4", "rw,errors=remount-ro")),
        (35, ("tmpfs", "rw,size=4k")),
        (36, ("overlay", "rw,lowerdir=/l,upperdir=/u,workdir=/w")),
        (2, None),
    ],
)
def test_the_file_system_of_a_mount(mount_id: int, found: tuple[str, str] | None) -> None:
    assert filesystem_type.filesystem_of(MOUNTINFO, mount_id) == found
