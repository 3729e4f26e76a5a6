"""Files of ours: opened, replaced and removed by descriptor; what is not ours is never touched."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from plumbline.core import files, renaming
from plumbline.core.files import OwnDirectory, is_temporary
from plumbline.core.proofs import Content, Kept, Marked, Opened, exactly, is_interrupted_write
from plumbline.errors import FileRefused

ODD = os.fsdecode(b"sd\xff")
LETTERS = Content(lambda fd: os.pread(fd, 64, 0).isalnum())
OURS = exactly(b"ours")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and other users' files need root")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "own").mkdir(mode=0o700)
    return tmp_path / "own"


@pytest.fixture
def own(path):
    with OwnDirectory.at(path) as directory:
        yield directory


@pytest.fixture(params=["exchange", "no-flags"])
def any_file_system(request, monkeypatch):
    """With renameat2's flags and without them (NFS, 9p, some FUSE)."""
    if request.param != "exchange":
        monkeypatch.setattr(renaming, "_renameat2", lambda *_: False)


@pytest.mark.usefixtures("any_file_system")
def test_a_file_is_made_read_replaced_renamed_and_removed(own, path):
    for name in ("state.json", ODD, "zwölf", "-", ".hidden", "a\nb"):
        own.replace(name, b"old", LETTERS, mode=0o640)
        own.replace(name, b"new", LETTERS)
        assert own.read(name, 10) == b"new"
        with pytest.raises(FileExistsError):
            own.create(name, b"other")
        assert own.set_aside(name) == f"{name}.damaged-1"
        own.create(name, b"third")
        assert own.set_aside(name) == f"{name}.damaged-2"
        own.create(name, b"fourth")
        assert own.names() == [name, f"{name}.damaged-1", f"{name}.damaged-2"]
        assert own.read(f"{name}.damaged-1", 10) == b"new"
        for each in own.names():
            own.remove(each, LETTERS)
        assert own.names() == []
        for missing in (
            own.set_aside,
            lambda name: own.remove(name, LETTERS),
            lambda name: own.read(name, 10),
            own.open,
        ):
            with pytest.raises(FileNotFoundError):
                missing(name)
    assert not any(path.iterdir())


@pytest.mark.usefixtures("any_file_system")
def test_the_old_file_is_kept_under_the_first_free_name(own, path):
    (path / "report.bak-1").mkdir()
    assert own.replace("report", b"0", Kept("report.bak")) == ""
    for number, kept in enumerate(["report.bak", "report.bak-2", "report.bak-3"]):
        inode = (path / "report").stat().st_ino
        assert own.replace("report", str(number + 1).encode(), Kept("report.bak")) == kept
        assert (path / kept).read_text() == str(number)
        assert (path / kept).stat().st_ino == inode
    assert own.names() == ["report", "report.bak", "report.bak-1", "report.bak-2", "report.bak-3"]


def test_so_many_copies_are_enough(own, path):
    own.create("report", b"0")
    for name in ("report.bak", *(f"report.bak-{number}" for number in range(1, 100))):
        (path / name).touch()
    with pytest.raises(FileRefused, match=r"report\.bak: exists 100 times, numbered; move some"):
        own.replace("report", b"1", Kept("report.bak"))
    assert own.read("report", 9) == b"0"
    assert len(own.names()) == 101


def symlink(path, outside):
    path.symlink_to(outside)


def dangling(path, outside):
    path.symlink_to(outside.with_name("not-there"))


def hard_link(path, outside):
    os.link(outside, path)


def fifo(path, _):
    os.mkfifo(path)


def folder(path, _):
    path.mkdir()
    (path / "inside").write_bytes(b"theirs")


def socket_file(path, _):
    os.mknod(path, 0o140600)


def device(path, _):
    os.mknod(path, 0o020600, os.makedev(1, 3))


def of_another(path, _):
    path.write_bytes(b"theirs")
    os.chown(path, 4711, 4711)


THINGS = [symlink, dangling, hard_link, fifo, folder, socket_file]
THINGS += [pytest.param(each, marks=root_only) for each in (device, of_another)]


def picture(*paths):
    """Of every path below these: kind, inode, owner, content."""
    found = {}
    for top in paths:
        for each in (top, *top.rglob("*")):
            facts = each.lstat()
            content = each.read_bytes() if each.is_file() and not each.is_symlink() else b""
            found[each] = (facts.st_mode, facts.st_ino, facts.st_uid, facts.st_nlink, content)
    return found


@pytest.mark.usefixtures("any_file_system")
@pytest.mark.parametrize("thing", THINGS)
def test_what_is_not_a_plain_file_of_ours_is_never_touched(thing, own, path, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"theirs")
    thing(path / "name", outside)
    before = picture(path, outside)
    for attempt in (
        lambda: own.open("name"),
        lambda: own.edit("name", LETTERS, create=True),
        lambda: own.read("name", 100),
        lambda: own.edit("name", LETTERS),
        lambda: own.replace("name", b"ours", LETTERS),
        lambda: own.replace("name", b"ours", Kept("kept")),
        lambda: own.set_aside("name"),
        lambda: own.remove("name", LETTERS),
        lambda: own.lock("name"),
    ):
        with pytest.raises(FileRefused) as refusal:
            attempt()
        assert str(path / "name") in str(refusal.value)
        assert picture(path, outside) == before
    with pytest.raises(FileExistsError):
        own.create("name", b"ours")
    with pytest.raises(FileExistsError):
        own.create("name", b"ours", mode=0o644)
    assert picture(path, outside) == before


@pytest.mark.parametrize("thing", THINGS)
def test_what_is_put_there_after_the_look_is_put_back(thing, own, path, tmp_path, monkeypatch):
    """Between the look and the step itself."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"theirs")
    for step in (lambda: own.replace("name", b"ours", LETTERS), lambda: own.remove("name", LETTERS)):
        own.create("name", b"old")
        look, looks = own._look, []

        def put_there_after_the_first(self, name, proof, *, missing=True, look=look, looks=looks):
            look(name, proof, missing=missing)
            if not looks:
                looks.append(name)
                (path / "name").unlink()
                thing(path / "name", outside)
                looks.append(picture(path, outside))

        with monkeypatch.context() as patch:
            patch.setattr(OwnDirectory, "_look", put_there_after_the_first)
            with pytest.raises(FileRefused):
                step()
        assert picture(path, outside) == looks[1]
        subprocess.run(["rm", "-r", path / "name"], check=True)


def test_the_content_is_asked_before_and_after(own, path):
    (path / "name").write_bytes(b"theirs")
    for step in (
        lambda: own.replace("name", b"ours", OURS),
        lambda: own.remove("name", OURS),
    ):
        with pytest.raises(FileRefused, match="was not made by Plumbline; move it away") as refusal:
            step()
        assert refusal.value.reason == "not-ours"
        assert own.names() == ["name"]
        assert own.read("name", 10) == b"theirs"


def test_foreign_files_exchanged_all_the_time_are_never_lost(own, path):
    """Somebody moves a foreign file in over ours, in a loop; whatever we say, none of theirs goes away."""
    theirs, stop = [], threading.Event()

    def exchange_in_a_loop():
        for number in range(100_000):
            if stop.is_set():
                return
            foreign = path / f"foreign-{number}"
            foreign.write_bytes(b"theirs %d" % number)
            try:
                renaming.exchange(foreign.name, "name", own.fd)
            except FileNotFoundError:
                foreign.rename(path / "name")
            theirs.append(b"theirs %d" % number)
            moved_out = foreign.read_bytes() if foreign.exists() else b"ours"
            if moved_out == b"ours":
                foreign.unlink(missing_ok=True)

    other = threading.Thread(target=exchange_in_a_loop)
    other.start()
    refusals = 0
    try:
        for _ in range(300):
            for step in (
                lambda: own.replace("name", b"ours", OURS),
                lambda: own.remove("name", OURS),
            ):
                try:
                    step()
                except (FileRefused, FileNotFoundError, FileExistsError):
                    refusals += 1
    finally:
        stop.set()
        other.join()
    kept = {each.read_bytes() for each in path.iterdir()}
    assert refusals
    assert theirs
    assert set(theirs) <= kept


def test_too_much_is_not_read(own):
    own.replace("name", b"x" * 1000, LETTERS)
    assert len(own.read("name", 1000)) == 1000
    with pytest.raises(FileRefused, match="is larger than 999 bytes") as refusal:
        own.read("name", 999)
    assert refusal.value.reason == "too-large"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "nul\0"])
def test_a_name_is_one_name(name, own):
    for step in (
        own.open,
        lambda name: own.remove(name, LETTERS),
        lambda name: own.replace(name, b"", LETTERS),
        lambda name: own.edit(name, LETTERS),
        lambda name: own.create(name, b""),
    ):
        with pytest.raises(ValueError, match="not a plain file name"):
            step(name)


def test_nothing_is_cut_short_by_opening(own):
    for flags in (os.O_TRUNC, os.O_RDWR | os.O_TRUNC, os.O_CREAT, os.O_APPEND):
        with pytest.raises(ValueError, match="nothing is cut short by opening"):
            own.edit("name", LETTERS, flags)
    for flags in (os.O_RDWR, os.O_WRONLY, os.O_TRUNC, os.O_CREAT):
        with pytest.raises(ValueError, match=r"edit\(\) takes a proof"):
            own.open("name", flags)


@pytest.mark.parametrize("anything", [lambda _: True, lambda fd: os.fstat(fd).st_size > 0, lambda fd: fd >= 0])
def test_what_accepts_any_content_is_no_proof(anything):
    with pytest.raises(ValueError, match="this proves nothing"):
        Content(anything)


def test_only_a_proof_is_one(own, path):
    class Anything:
        def holds(self, _directory, _fd):
            return True

    class Wider(Kept):
        pass

    (path / "name").write_bytes(b"theirs")
    for naive in (Anything(), None, True, lambda _: True, Wider("kept")):
        for step in (
            lambda naive=naive: own.replace("name", b"ours", naive),
            lambda naive=naive: own.remove("name", naive),
            lambda naive=naive: own.edit("name", naive),
            lambda naive=naive: own.check("missing", naive),
        ):
            with pytest.raises(TypeError, match="is no proof"):
                step()
    with pytest.raises(TypeError, match="has no copy"):
        own.remove("name", Kept("kept"))
    with pytest.raises(ValueError, match="a copy needs a name"):
        Kept("")
    assert own.names() == ["name"]
    assert own.read("name", 10) == b"theirs"


def test_a_mark_is_read_each_time(own, path):
    (path / "inner").mkdir(mode=0o700)
    (path / "file").write_bytes(b"anything")
    (path / "inner" / "file").write_bytes(b"anything")
    mark, above = Marked("mark", b"we made this\n"), Marked("mark", b"we made this\n", above=True)
    with pytest.raises(ValueError, match="marks nothing"):
        Marked("mark", b"")
    with OwnDirectory.at(path / "inner") as inner:
        for text in (None, b"", b"we made this", b"we made this\n\n", b"theirs"):
            if text is not None:
                (path / "mark").write_bytes(text)
            for directory, proof in ((own, mark), (own, above), (inner, above), (inner, mark)):
                with pytest.raises(FileRefused, match="was not made by Plumbline"):
                    directory.remove("file", proof)
        (path / "mark").write_bytes(b"we made this\n")
        for directory, proof in ((own, above), (inner, mark)):
            with pytest.raises(FileRefused, match="was not made by Plumbline"):
                directory.remove("file", proof)
        (path / "mark").rename(path / "real")
        (path / "mark").symlink_to("real")
        with pytest.raises(FileRefused, match="was not made by Plumbline"):
            own.remove("file", mark)
        (path / "real").rename(path / "mark")
        inner.remove("file", above)
        own.remove("file", mark)
    assert own.names() == ["inner", "mark"]


def test_an_empty_file_is_ours_by_a_mark_only(own, path):
    begun = (b"ours",)
    (path / "file").touch()
    alone = Content(lambda fd: is_interrupted_write(fd, begun))
    marked = Content(lambda fd: is_interrupted_write(fd, begun), empty=Marked("mark", b"we made this"))
    for proof in (alone, marked):
        with pytest.raises(FileRefused, match="was not made by Plumbline"):
            own.remove("file", proof)
    (path / "mark").write_bytes(b"we made this")
    own.remove("file", marked)
    assert own.names() == ["mark"]


def test_only_what_is_open_for_writing_is_known_by_its_descriptor(own, path):
    for name in ("ours", "theirs"):
        (path / name).write_bytes(name.encode())
    reading, writing = own.open("theirs"), own.edit("ours", OURS)
    try:
        with pytest.raises(ValueError, match="this proves nothing"):
            Opened(reading)
        with pytest.raises(FileRefused, match="was not made by Plumbline"):
            own.remove("theirs", Opened(writing))
        with pytest.raises(FileRefused, match="was not made by Plumbline"):
            own.edit("theirs", OURS)
        own.remove("ours", Opened(writing))
    finally:
        os.close(reading)
        os.close(writing)
    assert own.names() == ["theirs"]


def test_a_kept_copy_may_be_narrowed_to_what_is_recognised(own):
    own.create("name", b"theirs")
    with pytest.raises(FileRefused, match="was not made by Plumbline"):
        own.replace("name", b"new", Kept("name.bak", of=OURS))
    assert own.names() == ["name"]


def test_a_lock_is_held_by_one(own, path):
    first = own.lock("lock")
    with OwnDirectory.at(path) as other:
        with pytest.raises(BlockingIOError):
            other.lock("lock")
        os.close(first)
        os.close(other.lock("lock"))
    assert (path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_directory_of_others_or_that_others_may_write_in_is_refused(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "file").write_bytes(b"")
    for mode in (0o770, 0o702, 0o777, 0o1777):
        path.chmod(mode)
        with pytest.raises(FileRefused, match="may be written by other users; chmod go-w"):
            OwnDirectory.at(path)
    path.chmod(0o755)
    with pytest.raises(FileRefused, match="is a symbolic link"):
        OwnDirectory.at(f"{tmp_path}/link/")
    with OwnDirectory.at(tmp_path / "link", follow=True) as directory:
        assert directory.same()
    with pytest.raises(NotADirectoryError):
        OwnDirectory.at(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        OwnDirectory.at(tmp_path / "nothing")


@root_only
def test_the_owner_of_directory_and_link_counts(path, tmp_path):
    (path / "file").write_bytes(b"ours")
    for each in (path, path / "file"):
        os.chown(each, 4711, 4711)
    with pytest.raises(FileRefused, match="belongs to user 4711") as refusal:
        OwnDirectory.at(path)
    assert refusal.value.reason == "owner"
    with OwnDirectory.at(path, owner=4711) as directory:
        directory.remove("file", OURS)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    os.chown(link, 4711, 4711, follow_symlinks=False)
    with pytest.raises(FileRefused, match="is a symbolic link"):
        OwnDirectory.at(link, follow=True)


def test_it_is_made_where_it_is_missing(tmp_path):
    for _ in range(2):
        with OwnDirectory.make(tmp_path / "new") as directory:
            assert directory.names() == []
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileNotFoundError):
        OwnDirectory.make(tmp_path / "a" / "b")


def test_a_directory_put_in_its_place_changes_nothing(own, path, tmp_path):
    assert own.same()
    path.rename(tmp_path / "away")
    path.mkdir()
    (path / "name").write_bytes(b"theirs")
    assert not own.same()
    own.replace("name", b"ours", OURS)
    own.replace("other", b"ours", OURS)
    own.remove("other", OURS)
    assert (path / "name").read_bytes() == b"theirs"
    assert (tmp_path / "away" / "name").read_bytes() == b"ours"
    (path / "name").unlink()
    path.rmdir()
    assert not own.same()


@pytest.fixture
def mounted(tmp_path):
    """A file system of 128 KiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "small", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


@root_only
def test_on_a_full_disk_the_old_file_stays(mounted):
    with OwnDirectory.at(mounted) as own:
        own.replace("name", b"old", LETTERS)
        for step in (lambda name, data: own.replace(name, data, LETTERS), lambda _, data: own.create("new", data)):
            with pytest.raises(OSError, match="No space left") as error:
                step("name", b"x" * 2**18)
            assert error.value.errno == errno.ENOSPC
            assert own.names() == ["name"]
            assert own.read("name", 10) == b"old"


@root_only
def test_on_a_read_only_disk_nothing_happens(mounted):
    with OwnDirectory.at(mounted) as own:
        own.create("name", b"old")
        subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
        for step in (
            lambda: own.replace("name", b"new", LETTERS),
            lambda: own.create("other", b"new"),
            lambda: own.remove("name", LETTERS),
            lambda: own.set_aside("name"),
            lambda: own.lock("lock"),
        ):
            with pytest.raises(OSError, match="Read-only") as error:
                step()
            assert error.value.errno == errno.EROFS
        assert own.names() == ["name"]
        assert own.read("name", 10) == b"old"


def test_what_a_killed_process_left_is_known_by_its_name():
    for kind in ("new", "old"):
        assert is_temporary(files.temporary_name(kind))
    for name in (".plumbline-new", ".plumbline-0123456789abcdef.neu", ".plumbline-0123456789abcdeg.new",
                 ".plumbline-.new", ".plumbline-storage", "x.plumbline-0123456789abcdef.new",
                 ".plumbline-٠123456789abcdef.new"):  # fmt: skip
        assert not is_temporary(name)


def test_the_module_is_light():
    """A canary's worker imports it."""
    heavy = "{'dataclasses', 'pathlib', 'typing', 'contextlib', 'ctypes', 're'}"
    code = f"import sys; import plumbline.core.files; print(sorted({heavy} & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                         capture_output=True, text=True, check=True)  # fmt: skip
    assert run.stdout == "[]\n"
