"""Files are made, written, renamed and removed in one place, :mod:`plumbline.core`: no other module does it by itself.

Read from the source, and watched in a running daemon.
"""

from __future__ import annotations

import ast
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import plumbline
from plumbline.core.files import OwnDirectory
from support.daemon import WITHIN_S
from support.disks import disk_folder
from support.offenders import for_every

PACKAGE = Path(plumbline.__file__).parent
ONE_WAY = ("core/files.py", "core/renaming.py", "core/directories.py")
_JOBS = "hands over jobs, no file"
_MEASURED = "the operations that are measured, and their directory, below a descriptor of a marked one"
ELSEWHERE = {
    "daemon/daemon.py:Daemon.run": _JOBS,
    "probes/run/schedule.py:Probing.apply": _JOBS,
    "sources/disk/slots.py:switch": "the light of a slot: an attribute of the kernel's, on the command of a person",
    "cli.py:main": "/dev/null in the place of an output that went away",
    "probes/run/guard.py:prepare_directory": "makes the directory that is marked next",
    "probes/run/guard.py:_remove_made": "removes it again, empty, where it is refused",
    "probes/filesystem/metadata_worker.py:run": _MEASURED,
    "probes/filesystem/metadata_worker.py:measure": _MEASURED,
    "probes/filesystem/metadata_worker.py:measure.create": _MEASURED,
    "probes/filesystem/metadata_worker.py:sweep": _MEASURED,
    "claims/first_write.py:main": "a container's last message, where Kubernetes wants it",
    "claims/first_write.py:write": "the file that is measured, on a new volume",
    "probes/run/storage.py:acquire": "makes the directories above the storage path",
    "probes/run/guard.py:fill": "cuts short a file that it opened by a proof, for writing",
    "probes/canary/snapshot.py:lay_down": "a file in memory",
    "core/answers.py:in_memory": "a file in memory",
    "core/launch.py:main": "lowers the priority of I/O of this process, then becomes the tool that it was started for",
    "commands/uninstall.py:_installed": "text of a plan, for a person to carry out",
    "commands/uninstall.py:_plan": "text of a plan; commands/uninstall_files.py carries it out, by proofs",
    "commands/ceph/setup.py:remove": "text of a plan; commands/ceph/keyring.py removes the key by a proof",
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
    | {"copy_file_range", "fchmod", "fchown", "ftruncate", "lchmod", "posix_fallocate", "removexattr", "sendfile"}
    | {"setxattr", "splice", "utime", "system", "popen"}
    | {f"{how}{kind}" for how in ("exec", "spawn") for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")}
    | {"posix_spawn", "posix_spawnp"}
)
_PATH = frozenset(
    {"chmod", "hardlink_to", "lchmod", "mkdir", "open", "rename", "replace", "rmdir", "symlink_to", "touch", "unlink"}
    | {"copy_into", "move_into", "write_bytes", "write_text"}
)
_LIBRARY = frozenset({"linkat", "openat", "openat2", "renameat", "renameat2", "symlinkat", "syscall", "unlinkat"})
"""Of the C library, or of any other by ``ctypes``."""
_PROGRAMS = frozenset(
    {"cp", "dd", "install", "ln", "mkdir", "mv", "rm", "rmdir", "rsync", "sed", "sh", "bash", "shred"}
)
_PROGRAMS |= {"tar", "tee", "touch", "truncate", "unlink"}
_MODULES = frozenset({"_io", "bz2", "codecs", "dbm", "fileinput", "lzma", "posix", "shelve", "sqlite3", "tarfile"})
_MODULES |= {"tempfile", "zipfile"}
"""Modules that write files themselves; imported at all, they are named."""
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
        if isinstance(node, ast.Tuple | ast.List) and (program := _program(node)):
            yield within, program
        if isinstance(node, ast.Call):
            called.add(node.func)
            if trick := _trick(node):
                yield within, trick
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
        return (function.id in {"open", "FileIO"} and _for_writing(call, 1)) or function.id in {"eval", "exec"}
    if not isinstance(function, ast.Attribute):
        return False
    name = function.attr
    if name == "fdopen":
        return _for_writing(call, 1)
    match function.value:
        case ast.Name(id="os"):
            return name in _OS and (name != "open" or _may_write(call, flags))
        case ast.Name(id="shutil"):
            return name in _SHUTIL
        case ast.Name(id="tempfile"):
            return True
        case ast.Name(id="io" | "builtins"):
            return name in {"open", "FileIO", "open_code"} and _for_writing(call, 1)
    if name == "open":  # a path's; a directory of ours has a method of that name, too, whose first word is no mode
        modes = [*call.args[:2], *(each.value for each in call.keywords if each.arg == "mode")]
        texts = [mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)]
        return any(set(text) <= set("rwxabt+") and set(text) & set("wxa+") for text in texts)
    if name == "replace":  # a text's has two arguments, a struct's or a date's has keywords
        return len(call.args) == 1 and not call.keywords
    return name in _PATH | _LIBRARY


def _program(words: ast.Tuple | ast.List) -> str:
    """A command line of a program that changes files."""
    first = words.elts[0] if words.elts else None
    is_program = isinstance(first, ast.Constant) and str(first.value).rpartition("/")[2] in _PROGRAMS
    return ast.unparse(words) if is_program and isinstance(words.ctx, ast.Load) else ""


def _trick(call: ast.Call) -> str:
    """A call of something by a text that names it."""
    function = ast.unparse(call.func)
    words = {node.value for word in call.args for node in ast.walk(word) if isinstance(node, ast.Constant)}
    if function in {"getattr", "vars", "operator.attrgetter", "attrgetter", "methodcaller"}:
        first = ast.unparse(call.args[0]) if call.args else ""
        return function if first in {"os", "shutil", "posix"} or words & (_OS | _PATH | _LIBRARY) else ""
    if function.endswith(("import_module", "__import__")):
        return function if words & (_MODULES | {"os", "shutil"}) else ""
    shell = any(each.arg == "shell" for each in call.keywords)
    return f"{function}(shell=)" if shell and function.startswith("subprocess.") else ""


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
    modules = {"os": _OS, "shutil": _SHUTIL, "io": frozenset({"open", "FileIO"}), **dict.fromkeys(_MODULES)}
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names if each.name in _MODULES - {"tempfile"})
        yield from (each.name for each in node.names if each.name in {"os", "shutil", "io", "tempfile"} and each.asname)
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


@for_every(
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
        "import posix",
        "import sqlite3",
        "from zipfile import ZipFile",
        "os.ftruncate(fd, 0)",
        "os.posix_fallocate(fd, 0, 9)",
        "os.link(name, other)",
        "os.system('rm ' + name)",
        "getattr(os, 'un' + 'link')(name)",
        "getattr(path, 'unlink')()",
        "vars(os)['unlink'](name)",
        "__import__('os').unlink",
        "import_module('shutil').rmtree",
        "eval('os')",
        "subprocess.run(['rm', name])",
        "subprocess.run(('/bin/mv', name, other))",
        "run([*flags]) or run(['sh', '-c', text])",
        "subprocess.run(text, shell=True)",
        "gzip.open(name, 'wb')",
        "os.fdopen(fd, 'w')",
        "libc.unlinkat(fd, name, 0)",
        "os.execv('/bin/rm', words)",
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
        "getattr(probe, 'directory', None)",
        "command[0] == 'rm'",
        "run(['rbd', 'rm', image])",
        "os.fdopen(fd, 'rb')",
        "import_module('plumbline.probes')",
        "subprocess.run(['fio', name])",
    ],
)
def test_reading_is_not(harmless: str) -> None:
    assert list(changes(harmless)) == []


# --- a proof is required, and none accepts everything ---


def test_no_proof_has_a_default() -> None:
    """Of whatever replaces, removes or opens for writing."""
    takes = {
        name: parameters["proof"].default
        for name, method in vars(OwnDirectory).items()
        if inspect.isfunction(method)
        and not name.startswith("_")
        and "proof" in (parameters := inspect.signature(method).parameters)
    }
    assert takes == dict.fromkeys(("edit", "check", "replace", "remove"), inspect.Parameter.empty)


LOSE_NOTHING = {"at", "close", "create", "holds", "lock", "make", "named", "names", "open", "parent", "read", "same"}
LOSE_NOTHING |= {"set_aside", "where"}


def test_every_other_method_loses_nothing() -> None:
    """They read, or create under a new name."""
    public = {name for name in vars(OwnDirectory) if not name.startswith("_")} - {"fd", "name"}
    assert public == {"edit", "check", "replace", "remove"} | LOSE_NOTHING


def vacuous(source: str) -> list[str]:
    """Tests of content that ignore the file: a ``lambda`` or a function without a use of its parameter; and calls of
    what only :class:`OwnDirectory` itself may call."""
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name.rpartition(".")[2] == "Content":
            test = node.args[0]
            if isinstance(test, ast.Call):  # partial(…)
                test = test.args[0]
            test = functions.get(ast.unparse(test).rpartition(".")[2], test)
            if isinstance(test, ast.FunctionDef | ast.Lambda):
                body = test.body if isinstance(test.body, list) else [test.body]
                used = {each.id for step in body for each in ast.walk(step) if isinstance(each, ast.Name)}
                if not test.args.args or test.args.args[-1].arg not in used:
                    found.append(ast.unparse(node))
        private = name.rpartition(".")[2] in {
            "_open",
            "_write",
            "_look",
            "_let_go",
            "_keep",
            "_remove_exactly",
            "_prove",
        }
        if private and "." in name and name.rpartition(".")[0] not in {"self", "cls"}:
            found.append(ast.unparse(node))
    return found


def test_no_test_of_content_ignores_the_content() -> None:
    found = {
        str(path.relative_to(PACKAGE)): wrong
        for path in sorted(PACKAGE.rglob("*.py"))
        if (wrong := vacuous(path.read_text("utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "naive",
    [
        "directory.remove(name, Content(lambda _: True))",
        "Content(lambda fd: kind == 'x')",
        "def anything(fd):\n    return True\nproofs.Content(anything)",
        "def anything(kind, fd):\n    return kind\nContent(partial(anything, 'x'))",
        "directory._open(name, 2, create=True)",
        "own._remove_exactly(name, fd)",
    ],
)
def test_naive_proofs_are_found(naive: str) -> None:
    assert len(vacuous(naive)) == 1


def test_a_proof_of_content_is_not_naive() -> None:
    assert (
        vacuous("def is_state(fd):\n    return os.read(fd, 9) == X\nContent(is_state)\nContent(lambda fd: f(fd))") == []
    )


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
