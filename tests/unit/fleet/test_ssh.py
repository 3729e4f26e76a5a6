"""The command line of ssh, and what runs behind it: a shell, as on every node, here without the network between."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from plumbline.errors import ConfigError, Unavailable
from plumbline.fleet.inventory import Host
from plumbline.fleet.ssh import Ssh, words_of

NASTY = ["$(touch owned)", "a b", "'; touch owned; '", "`id`", "--", "\n"]


@pytest.fixture
def local(tmp_path: Path) -> Ssh:
    """An ``ssh`` that runs the remote command line in a shell here, as sshd does there."""
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nfor last; do :; done\ncd "$HOME" && exec sh -c "$last"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    return Ssh(command=("printf", "%s\\n"), environment=environment)


def run(ssh: Ssh, words: list[str], *, timeout_s: float = 20.0, sent: str = "") -> str:
    answer = ssh.run(Host("x"), words, timeout_s=timeout_s, stopping=threading.Event(), sent=sent)
    assert answer.returncode == 0, answer
    return answer.stdout


def test_no_word_reaches_the_shell_unquoted(local: Ssh, tmp_path: Path) -> None:
    assert run(local, NASTY) == "".join(f"{word}\n" for word in NASTY)
    assert not (tmp_path / "owned").exists()


def test_the_host_stands_behind_dashes_and_no_password_is_asked_for() -> None:
    ssh = Ssh(command=("sudo", "plumbline"), flags=("--storage.path", "/a b"), config=Path("/c"))
    argv = ssh.argv(Host("stor01", address="192.0.2.1", port=2222, user="ops"), ["baseline", "state"])
    assert argv[argv.index("--") + 1 :] == ["192.0.2.1", "sudo plumbline baseline state --storage.path '/a b'"]
    assert "BatchMode=yes" in argv
    assert argv[argv.index("-p") : argv.index("--")] == ["-p", "2222", "-l", "ops"]


def test_lines_come_while_it_runs_and_standard_input_arrives(local: Ssh) -> None:
    cat = Ssh(command=("cat",), environment=local.environment)
    lines: list[str] = []
    answer = cat.run(
        Host("x"), [], timeout_s=20, stopping=threading.Event(), sent="one\ntwo\n" * 5000, on_line=lines.append
    )
    assert answer.stdout == "one\ntwo\n" * 5000
    assert lines == ["one", "two"] * 5000


def test_what_does_not_end_is_ended(local: Ssh) -> None:
    sleeping = Ssh(command=("sleep", "60"), environment=local.environment)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="did not end in time"):
        run(sleeping, [], timeout_s=0.5)
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(Unavailable, match="stopped"):
        sleeping.run(Host("x"), [], timeout_s=60, stopping=stopping)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("words", [("yes",), ("tr", "\\0", "x")], ids=["lines", "one line"])
@pytest.mark.parametrize("to", ["", ">&2"])
def test_a_node_that_prints_without_end_is_ended(local: Ssh, words: tuple[str, ...], to: str) -> None:
    command = f"{' '.join(repr(word) for word in words)} < /dev/zero {to}"
    endless = Ssh(command=("sh", "-c", command), environment=local.environment)
    with pytest.raises(Unavailable, match="printed more than 8 MiB"):
        run(endless, [], timeout_s=60)


def test_a_node_that_can_not_be_reached_says_ssh_s_reason(local: Ssh) -> None:
    failing = Ssh(command=("sh", "-c", "echo no route >&2; exit 255"), environment=local.environment)
    with pytest.raises(Unavailable, match="not reached by ssh: no route"):
        run(failing, [])


def test_a_failed_command_gives_its_last_line(local: Ssh) -> None:
    failing = Ssh(command=("sh", "-c", "echo plumbline: why >&2; exit 1"), environment=local.environment)
    answer = failing.run(Host("x"), [], timeout_s=20, stopping=threading.Event())
    assert (answer.returncode, answer.reason) == (1, "why")


@pytest.mark.parametrize("text", ["", "a 'b"])
def test_a_node_command_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="--node-command"):
        words_of(text)


def test_no_agent_and_no_display_is_forwarded() -> None:
    """Whatever the user's own configuration says: a node could sign acceptances through the agent."""
    words = Ssh().argv(Host("x"), ["baseline", "state"])
    assert {"-a", "-x"} <= set(words[: words.index("--")])
