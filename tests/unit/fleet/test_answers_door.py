"""What a node answers is bounded in one place, and nothing else reads a raw answer: read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

import plumbline
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.errors import StateError, Unavailable
from plumbline.fleet.answers import NodeFault, Refused, from_node, is_file_name
from plumbline.fleet.inventory import Host
from plumbline.fleet.node import FileState, NodeState, checked_state
from plumbline.fleet.recording import class_of

SOURCE = Path(plumbline.__file__).parent
FILES = [*sorted((SOURCE / "fleet").glob("*.py")), *sorted((SOURCE / "commands").glob("fleet*.py"))]
STATE = NodeState(host="a", version="1")
NAMES = frozenset({"a", "b", "c.example"})


def test_only_ssh_and_node_read_what_a_process_printed() -> None:
    reading = {
        file.name
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"stdout", "stderr"} and ast.unparse(node.value) != "sys"
    }
    assert reading == {"ssh.py", "node.py"}


def test_every_command_on_a_node_runs_inside_the_door() -> None:
    """``nodes.state(…)`` and the like stand in a call of ``from_node``, or in a function that one calls."""
    outside = []
    for file in FILES:
        tree = ast.parse(file.read_text("utf-8"))
        guarded = [
            node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "from_node"
        ]
        inside = {id(node) for call in guarded for node in ast.walk(call)}
        called = {ast.unparse(node.func) for call in guarded for node in ast.walk(call) if isinstance(node, ast.Call)}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and f"self.{function.name}" in called:
                inside |= {id(node) for node in ast.walk(function)}
        outside += [
            f"{file.name}: {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func)
            in {f"{of}nodes.{name}" for of in ("", "self.") for name in ("state", "record", "install")}
            and id(node) not in inside
        ]
    assert outside == []


@pytest.mark.parametrize(
    "more",
    [
        {"model": "M" * 200_000},
        {"model": "M" * 101},
        {"model": "é" * 51},
        {"model": "a\nb"},
        {"model": "\x1b[2J"},
        {"host": "b"},
        {"host": "c.example"},
        {"host": "h" * 1001},
        {"version": "v" * 1001},
        {"unreachable": "u" * 1001},
        {"closed": {"health": "x" * 1001}},
        {"closed": {str(number): "" for number in range(10_001)}},
        {"fingerprint": Fingerprint(disks={"S": "x" * 1001})},
        {"measured": FileState(sha256="0" * 1001)},
    ],
)
def test_what_no_node_is_like_is_its_fault(more: dict[str, object]) -> None:
    state = msgspec.structs.replace(STATE, **more)
    fault = from_node(lambda: checked_state(state, Host("a"), NAMES))
    assert isinstance(fault, NodeFault)
    assert fault.refused
    assert len(fault.reason) <= 300
    assert fault.reason.isprintable()


@pytest.mark.parametrize(
    ("name", "address", "host"),
    [("a", "", "a"), ("a.x", "", "a"), ("a", "", "a.x"), ("n", "a", "a"), ("n", "", "other")],
)
def test_a_node_may_call_itself_by_its_own_names(name: str, address: str, host: str) -> None:
    state = msgspec.structs.replace(STATE, host=host)
    assert checked_state(state, Host(name, address=address), NAMES | {name}) is state


@pytest.mark.parametrize("model", ["M" * 100, "é" * 50, "../..", "a/b", ".", "...", "", "-", "CON", "a b"])
def test_a_class_is_always_a_files_name(model: str) -> None:
    state = msgspec.structs.replace(STATE, model=model)
    name = class_of(Host("a", role="r" * 99), checked_state(state, Host("a"), NAMES))
    assert is_file_name(name)
    assert len(f"{name}.yaml.sig.bak-99".encode()) < 255


@pytest.mark.parametrize("error", [ValueError("x" * 1000), RecursionError(), KeyError("\x1b"), ZeroDivisionError()])
def test_a_defect_that_an_answer_meets_is_that_nodes_row(error: Exception) -> None:
    def call() -> None:
        raise error

    fault = from_node(call)
    assert isinstance(fault, NodeFault)
    assert type(error).__name__ in fault.reason
    assert fault.reason.isprintable()


@pytest.mark.parametrize("error", [StateError("disk"), OSError(28, "full"), KeyboardInterrupt()])
def test_an_error_of_this_host_is_not_the_nodes(error: BaseException) -> None:
    def call() -> None:
        raise error

    with pytest.raises(type(error)):
        from_node(call)
    assert isinstance(from_node(lambda: (_ for _ in ()).throw(Refused("no"))), NodeFault)
    assert issubclass(Refused, Unavailable)
