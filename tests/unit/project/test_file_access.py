"""Files are made, written, renamed and removed in one place, :mod:`plumbline.core`: no other module does it by itself.

Read from the source, and watched in a running daemon.
"""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import plumbline
from support.daemon import WITHIN_S
from support.disks import disk_folder

PACKAGE = Path(plumbline.__file__).parent
ONE_WAY = ("core/files.py", "core/renaming.py", "core/directories.py")
_JOBS = "hands over jobs, no file"
_MEASURED = "the operations that are measured, and their directory, below a descriptor of a marked one"
ELSEWHERE = {
    "daemon/daemon.py:Daemon.run": _JOBS,
    "probes/run/schedule.py:Probing.apply": _JOBS,
    "cli.py:main": "/dev/null in the place of an output that went away",
    "probes/run/guard.py:prepare_directory": "makes the directory that is marked next",
    "probes/run/guard.py:_remove_made": "removes it again, empty, where it is refused",
    "probes/filesystem/metadata_worker.py:run": _MEASURED,
    "probes/filesystem/metadata_worker.py:measure": _MEASURED,
    "probes/filesystem/metadata_worker.py:measure.create": _MEASURED,
    "probes/filesystem/metadata_worker.py:sweep": _MEASURED,
    "claims/first_write.py:main": "a container's last message, where Kubernetes wants it",
    "claims/first_write.py:write": "the file that is measured, on a new volume",
    "probes/run/storage.py:take": "makes the directories above the storage path",
}
"""Function → why it does so by itself."""

_OS = frozenset(
    {
        "chmod",
        "chown",
        "lchown",
        "link",
        "makedirs",
        "mkdir",
        "mkfifo",
        "mknod",
        "open",
        "removedirs",
        "remove",
        "rename",
    }
    | {"renames", "replace", "rmdir", "symlink", "truncate", "unlink"}
)
_PATH = frozenset(
    {"chmod", "hardlink_to", "lchmod", "mkdir", "open", "rename", "replace", "rmdir", "symlink_to", "touch", "unlink"}
    | {"write_bytes", "write_text"}
)
_SHUTIL = frozenset({"chown", "copy", "copy2", "copyfile", "copytree", "move", "rmtree"})
_WRITES = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"})


def changes(source: str) -> Iterator[tuple[str, str]]:
    """(function, call) for each call that may open for writing, make, rename or remove a file."""
    tree = ast.parse(source)
    functions: dict[ast.AST, str] = {}
    called: set[ast.AST] = set()
    flags = _constants(tree)
    for node in ast.walk(tree):
        within = functions.get(node, "")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            within = f"{within}.{node.name}".lstrip(".")
        for child in ast.iter_child_nodes(node):
            functions[child] = within
        if isinstance(node, ast.Call):
            called.add(node.func)
            if _changes(node, flags):
                yield within, ast.unparse(node.func)
        elif isinstance(node, ast.Attribute) and node not in called and _is_function(node):
            yield within, ast.unparse(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((within, f"{name} imported") for name in _hidden(node))


def _constants(tree: ast.AST) -> dict[str, ast.expr]:
    """Values that names are given: flags are often put together first."""
    return {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _changes(call: ast.Call, flags: dict[str, ast.expr]) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and _for_writing(call, 1)
    if not isinstance(function, ast.Attribute):
        return False
    name = function.attr
    match function.value:
        case ast.Name(id="os"):
            return name in _OS and (name != "open" or _may_write(call, flags))
        case ast.Name(id="shutil"):
            return name in _SHUTIL
        case ast.Name(id="tempfile"):
            return True
        case ast.Name(id="io"):
            return name == "open" and _for_writing(call, 1)
    if name == "open":  # a path's; a directory of ours has a method of that name, too, whose first word is no mode
        modes = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "mode")]
        texts = [mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)]
        return any(set(text) <= set("rwxabt+") and set(text) & set("wxa+") for text in texts)
    if name == "replace":  # a text's has two arguments, a struct's or a date's has keywords
        return len(call.args) == 1 and not call.keywords
    return name in _PATH or name == "renameat2"


def _is_function(node: ast.Attribute) -> bool:
    """One that is handed on, to be called elsewhere."""
    match node.value:
        case ast.Name(id="os"):
            return node.attr in _OS
        case ast.Name(id="shutil"):
            return node.attr in _SHUTIL
    return False


def _for_writing(call: ast.Call, place: int) -> bool:
    """By its mode."""
    modes = [*call.args[place : place + 1], *(each.value for each in call.keywords if each.arg == "mode")]
    return any(not (isinstance(mode, ast.Constant) and not set(str(mode.value)) & set("wax+")) for mode in modes)


def _may_write(call: ast.Call, flags: dict[str, ast.expr]) -> bool:
    """By its flags; those that are not to be read from the source may be any."""
    todo, seen = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "flags")], set[str]()
    while todo:
        for node in ast.walk(todo.pop()):
            match node:
                case ast.Attribute(value=ast.Name(id="os"), attr=attr) if attr in _WRITES:
                    return True
                case ast.Name(id=name) if name != "os" and name not in seen:
                    if name not in flags:
                        return True
                    seen.add(name)
                    todo.append(flags[name])
    return False


def _hidden(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What would be called by a name of its own."""
    modules = {"os": _OS, "shutil": _SHUTIL, "tempfile": None}
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names if each.name in modules and each.asname)
    elif node.module in modules:
        names = modules[node.module]
        yield from (f"{node.module}.{each.name}" for each in node.names if names is None or each.name in names)


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """Function → its calls, over the whole package."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for within, call in changes(path.read_text("utf-8")):
            found.setdefault(f"{path.relative_to(PACKAGE)}:{within}", []).append(call)
    return found


def test_no_other_module_changes_files(found: dict[str, list[str]]) -> None:
    elsewhere = {name: calls for name, calls in found.items() if not name.startswith(ONE_WAY)}
    assert {name: calls for name, calls in elsewhere.items() if name not in ELSEWHERE} == {}


def test_every_exception_is_one(found: dict[str, list[str]]) -> None:
    assert sorted(ELSEWHERE) == sorted(name for name in found if not name.startswith(ONE_WAY))
    assert {name.partition(":")[0] for name in found} > set(ONE_WAY)


@pytest.mark.parametrize(
    "naive",
    [
        "open(name, 'w')",
        "open(name, mode='ab')",
        "open(name, how)",
        "io.open(name, 'x')",
        "Path(name).open('r+b')",
        "path.open(mode='wb')",
        "path.write_text('')",
        "path.replace(other)",
        "path.rename(other)",
        "path.unlink(missing_ok=True)",
        "path.mkdir(parents=True)",
        "path.hardlink_to(other)",
        "os.open(name, os.O_RDWR | os.O_NOFOLLOW)",
        "flags = os.O_CREAT | SAFE\nos.open(name, flags)",
        "os.open(name, flags_of_somebody)",
        "os.replace(name, other)",
        "os.unlink(name, dir_fd=fd)",
        "act = lambda: os.rmdir(name)",
        "shutil.rmtree(name)",
        "tempfile.mkstemp()",
        "library.renameat2(1, name, 1, other, 0)",
        "walk(names, os.unlink)",
        "from os import unlink",
        "import os as system",
        "from tempfile import NamedTemporaryFile",
    ],
)
def test_naive_code_is_found(naive: str) -> None:
    lines = "\n    ".join(naive.split("\n"))
    assert [within for within, _ in changes(f"def save(path):\n    {lines}\n")] == ["save"]


@pytest.mark.parametrize(
    "harmless",
    [
        "open(name)",
        "open(name, 'rb', encoding=None)",
        "path.open('rb')",
        "directory.open(name, os.O_RDWR)",
        "directory.replace(name, data)",
        "text.replace('a', 'b')",
        "msgspec.structs.replace(record, last=1)",
        "os.open(name, os.O_RDONLY | os.O_CLOEXEC)",
        "READ = os.O_RDONLY | os.O_NOFOLLOW\nos.open(name, READ)",
        "shutil.which('fio')",
    ],
)
def test_reading_is_not(harmless: str) -> None:
    assert list(changes(harmless)) == []


# --- the same, watched in processes that run ---

_HOOK = """
import os, sys
sys.dont_write_bytecode = True

def watch(log, package):
    busy = []
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    events = {"os." + name for name in "chmod chown link mkdir remove rename rmdir symlink truncate".split()}
    def hook(event, arguments):
        if event == "open":
            if not (arguments[2] or 0) & writes:
                return
        elif event not in events:
            return
        if busy or isinstance(arguments[0], int):  # an int is an open file: no name leads elsewhere
            return
        frame, name = sys._getframe(), "-"
        while frame is not None:
            if frame.f_code.co_filename.startswith(package + "/"):
                name = frame.f_code.co_filename[len(package) + 1:] + ":" + frame.f_code.co_qualname
                break
            frame = frame.f_back
        busy.append(1)
        try:
            fd = os.open(log, os.O_WRONLY | os.O_APPEND)
            os.write(fd, ascii((name, event, os.fsdecode(arguments[0]))).encode() + b"\\n")
            os.close(fd)
        finally:
            busy.pop()
    sys.addaudithook(hook)
"""
_PROGRAM = """#!{python} -IS
import sys
sys.path[:] = {path!r}
exec({hook!r})
watch({log!r}, {package!r})
sys.executable = {itself!r}
arguments = sys.argv[1:]
while arguments[0] in ("-I", "-S"):
    del arguments[0]
code, sys.argv = arguments[1], ["-c", *arguments[2:]]
exec(code)
"""


class Watched:
    """A Python that writes down which function of ``package`` changes which file; so do those that it starts."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.program, self.log = folder / "python", folder / "log"
        self.log.touch()
        self.program.write_text(
            _PROGRAM.format(
                python=sys.executable,
                path=sys.path,
                hook=_HOOK,
                log=str(self.log),
                package=str(package),
                itself=str(self.program),
            )
        )
        self.program.chmod(0o755)

    def seen(self) -> set[tuple[str, str, str]]:
        """(module:function, event, name) so far."""
        return {ast.literal_eval(line) for line in self.log.read_text().splitlines()}


def test_naive_code_is_seen(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    naive = tmp_path / "package" / "naive.py"
    naive.write_text("import os\ndef save(name):\n    open(name, 'w').close()\n    os.rename(name, name + '.new')\n")
    watched = Watched(tmp_path, tmp_path / "package")
    code = (
        f"import sys; sys.path.insert(0, {str(naive.parent)!r}); from naive import save; save({str(tmp_path / 'x')!r})"
    )
    subprocess.run([watched.program, "-c", code], check=True, timeout=60)
    name = str(tmp_path / "x")
    assert watched.seen() == {("naive.py:save", "open", name), ("naive.py:save", "os.rename", name)}


def test_a_running_daemon_changes_files_in_one_place(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A daemon with a canary, until both have written; and stopped."""
    with disk_folder(tmp_path_factory) as folder:
        watched = Watched(tmp_path_factory.mktemp("watched"), PACKAGE)
        config = folder / "plumbline.yaml"
        config.write_text(f"probes: [{{type: canary, name: canary, directory: {folder}/probe}}]\n")
        argv = ["serve", "--config.file", str(config), "--storage.path", f"{folder}/storage"]
        argv += ["--web.listen-address", "127.0.0.1:0"]
        code = "from plumbline.cli import main; sys.exit(main(sys.argv[1:]))"
        process = subprocess.Popen([watched.program, "-c", code, *argv], stderr=subprocess.DEVNULL)
        try:
            wanted = {".plumbline-storage", "lock", ".plumbline-probe", "canary.dat"}
            deadline = time.monotonic() + WITHIN_S
            while wanted - {path.name for path in folder.rglob("*")} and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN_S) == 0
        finally:
            process.kill()
            process.wait()
    seen = watched.seen()
    assert wanted - {path for _, _, path in seen} - {".plumbline-storage"} == set()
    allowed = {f"{path}:" for path in ONE_WAY} | set(ELSEWHERE)
    assert {each for each in seen if not each[0].startswith(tuple(allowed)) and each[2] != os.devnull} == set()
