"""A network namespace of our own, for as long as a test needs it, and a way to run a function inside it."""

from __future__ import annotations

import ctypes
import os
import secrets
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000


class Namespace:
    """A named namespace; sockets that are opened inside stay inside, whoever uses them later."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ip(self, *arguments: str | bytes) -> None:
        """``ip`` in the namespace."""
        subprocess.run(["ip", "-n", self.name, *arguments], check=True, capture_output=True)

    def batch(self, commands: str) -> None:
        """Many ``ip`` commands, one a line, by one process."""
        argv = ["ip", "-n", self.name, "-batch", "-"]
        subprocess.run(argv, input=commands.encode(), check=True, capture_output=True)

    def run(self, function: Callable[[], T]) -> T:
        """``function()`` in a thread of its own that has entered the namespace; its result or its exception."""
        outcome: list[T] = []
        failure: list[BaseException] = []

        def enter_and_run() -> None:
            try:
                self.enter()
                outcome.append(function())
            except BaseException as error:  # noqa: BLE001  (handed to the caller)
                failure.append(error)

        thread = threading.Thread(target=enter_and_run)
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return outcome[0]

    def enter(self) -> None:
        """The calling thread, and every thread and process that it starts from now on."""
        libc = ctypes.CDLL(None, use_errno=True)
        fd = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.setns(fd, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(fd)


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A fresh namespace with its loopback up; removed at the end, and everything in it."""
    name = f"plumbline-test-{secrets.token_hex(4)}"
    subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
    try:
        made = Namespace(name)
        made.ip("link", "set", "lo", "up")
        yield made
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, capture_output=True)
