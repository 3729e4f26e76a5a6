"""An acceptance is all there or not at all: killed at each step that changes a file, and begun three times at once."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from plumbline.fleet.store import ACCEPTED, CLASSES, RECORDED, Store, sha256
from support.daemon import COMMAND
from support.fleet_files import node_text

NAMES = ("a", "b", "c")
# A process that has imported everything forks for each command it reads: step, file for standard error, arguments. The
# child ends itself at the `step`th call that changes a name in a directory; 0: it goes on to its end.
FORKING = """
import json, os, signal, sys
import plumbline.commands.fleet
import plumbline.core.files as files
from plumbline.cli import main
def run(left, errors, arguments):
    def counted(call):
        def run(*args, **more):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **more)
        return run
    for name in ("exchange", "rename_new"):
        setattr(files, name, counted(getattr(files, name)))
    os.rename, os.unlink = counted(os.rename), counted(os.unlink)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code = main(arguments)
    sys.stderr.flush()
    os._exit(code)
for line in sys.stdin:
    command = json.loads(line)
    child = os.fork()
    if not child:
        try:
            run(*command)
        finally:
            os._exit(99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def recorded(folder: Path, seed: int) -> Store:
    store = Store(folder / "fleet")
    for name in NAMES:
        store.write(RECORDED, f"{name}.yaml", node_text(name, fleet_class="box", seed=seed))
    return store


def accepting(store: Store, key: Path) -> list[str]:
    although = [word for name in NAMES for word in ("--although", name)]
    return ["fleet", "accept", "--dir", str(store.path), "--key", str(key), "--by", "Ada", *although]


def check_whole(store: Store, expected: dict[str, str]) -> None:
    """Every file of the last acceptance is there as it was accepted, and it is of ``expected``: node → text."""
    acceptance = store.last_acceptance()
    assert acceptance is not None
    assert {name: file.sha256 for name, file in acceptance.nodes.items()} == {
        name: sha256(text) for name, text in expected.items()
    }
    for folder, files in ((ACCEPTED, acceptance.nodes), (CLASSES, acceptance.classes)):
        for name in files:
            assert store.accepted(folder, files, name) is not None
    assert not (store.path / "acceptance.pending").exists()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    """A fleet with one acceptance, and newer recordings."""
    folder = tmp_path_factory.mktemp("first")
    done = subprocess.run([*COMMAND, *accepting(recorded(folder, 0), key)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    recorded(folder, 1)
    return folder / "fleet"


def test_killed_at_each_step_it_counts_whole_or_not_at_all(first: Path, tmp_path: Path, key: Path) -> None:
    old, new = ({name: node_text(name, fleet_class="box", seed=seed) for name in NAMES} for seed in (0, 1))
    counted, step = [], 0
    with subprocess.Popen([sys.executable, "-c", FORKING], stdin=PIPE, stdout=PIPE, text=True) as forking:

        def run(at: int, store: Store) -> tuple[int, str]:
            assert forking.stdin is not None
            assert forking.stdout is not None
            errors = tmp_path / "stderr"
            errors.unlink(missing_ok=True)
            forking.stdin.write(json.dumps([at, str(errors), accepting(store, key)]) + "\n")
            forking.stdin.flush()
            return int(forking.stdout.readline()), errors.read_text()

        while True:
            step += 1
            folder = tmp_path / str(step)
            shutil.copytree(first, folder)
            store = Store(folder)
            code, said = run(step, store)
            if code != -signal.SIGKILL:
                assert code == 0, said
                break
            acceptance = store.last_acceptance()
            assert acceptance is not None
            whole = len(store.names("acceptances", ".json")) == 2
            counted.append(whole)
            check_whole(store, new if whole else old)
            code, said = run(0, store)
            assert code == (1 if whole else 0), said
            assert ("nothing new is recorded" in said) is whole
            check_whole(store, new)
            assert not store.names(RECORDED, ".yaml")
    assert step > 20
    assert counted == sorted(counted)  # from one step on it counts
    assert True in counted
    assert False in counted


def test_of_three_at_once_one_accepts(tmp_path: Path, key: Path) -> None:
    store = recorded(tmp_path, 0)
    started = [
        subprocess.Popen(
            [*COMMAND, *accepting(store, key)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=120)[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 1, 1], said
    assert len(store.names("acceptances", ".json")) == 1
    for text in filter(None, said):
        assert text.count("\n") == 1
        assert "goes on" in text or "nothing" in text
    check_whole(store, {name: node_text(name, fleet_class="box", seed=0) for name in NAMES})


def test_what_is_recorded_meanwhile_is_kept(tmp_path: Path, key: Path) -> None:
    """A recording that ends between the review and the acceptance is not the one that was accepted."""
    store = recorded(tmp_path, 0)
    newer = node_text("a", fleet_class="box", seed=2)
    script = f"""
import sys
from plumbline.fleet import acceptance
from plumbline.fleet.store import RECORDED
review = acceptance.review
def reviewed(store, *args, **more):
    found = review(store, *args, **more)
    store.write(RECORDED, "a.yaml", {newer!r})
    return found
acceptance.review = reviewed
from plumbline.cli import main
sys.exit(main(sys.argv[1:]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *accepting(store, key)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert store.text(RECORDED, "a.yaml") == newer
    assert store.names(RECORDED, ".yaml") == ["a"]
    assert list(store.loaded(ACCEPTED)) == list(NAMES)
