"""Why a thread is late, from the kernel's files and from threads that are."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from plumbline.core.stall import read_stall
from support.daemon import eventually
from support.starvation import no_cpu_to_spare

THREAD = 812
STARVED = "the host is short of CPU: it waited 3.1 of 4.0 s for one"


def task(root: Path, state: str, wchan: str = "0", schedstat: str = "9203412 104882113 17") -> Path:
    """The files of a thread, as Linux 6.12 has them; its program's name holds what a parser may stumble on."""
    directory = root / str(THREAD)
    directory.mkdir()
    (directory / "stat").write_text(f"{THREAD} (a) R (b) {state} 1 812 812 0 -1 4194624 1201 0 0 0 0 0\n")
    (directory / "wchan").write_text(wchan)
    (directory / "schedstat").write_text(f"{schedstat}\n")
    return root


@pytest.mark.parametrize(
    ("state", "wchan", "schedstat", "why"),
    [
        ("D", "rtnl_dumpit", "9203412 104882113 17", "a read hangs in the kernel (state D in rtnl_dumpit); see dmesg"),
        ("D", "0", "9203412 104882113 17", "a read hangs in the kernel (state D); see dmesg"),
        ("S", "do_poll.constprop.0", "1 1 1", "a read hangs in the kernel (state S in do_poll.constprop.0); see dmesg"),
        ("S", "futex_do_wait", "1 1 1", "it waits for another thread of the daemon (state S in futex_do_wait)"),
        ("S", "futex_do_wait", "9203412 3100000000 17", STARVED),  # the interpreter's lock, in turns
        ("D", "folio_wait_bit_common", "9203412 3100000000 17", STARVED),
        ("R", "0", "900000000 0 1", STARVED),  # it waits now
        ("R", "0", "3900000000 0 1", "it used 3.9 s of CPU"),
        ("R", "0", "", "it still runs, or waits for a CPU"),  # CONFIG_SCHED_INFO is off
    ],
)
def test_what_the_kernel_says(tmp_path: Path, state: str, wchan: str, schedstat: str, why: str) -> None:
    stall = read_stall(THREAD, task(tmp_path, state, wchan, schedstat))
    assert stall.why(4.0) == why
    assert stall.starved(4.0) == (why == STARVED)


def test_a_thread_that_has_ended(tmp_path: Path) -> None:
    stall = read_stall(THREAD, tmp_path)
    assert (stall.why(4.0), stall.starved(4.0)) == ("a read hangs in the kernel; see dmesg", False)


def test_a_thread_without_a_cpu() -> None:
    with no_cpu_to_spare() as work:
        began = time.monotonic()
        thread = threading.Thread(target=work)
        thread.start()
        assert thread.native_id is not None
        time.sleep(0.5)
        stall = read_stall(thread.native_id)
        assert stall.starved(time.monotonic() - began)
    thread.join()


def test_a_thread_whose_read_does_not_return() -> None:
    end, start = os.pipe()
    began = time.monotonic()
    thread = threading.Thread(target=os.read, args=(end, 1))
    thread.start()
    native = thread.native_id
    assert native is not None
    eventually(lambda: read_stall(native).state == "S")
    time.sleep(0.2)
    stall = read_stall(native)
    elapsed_s = time.monotonic() - began
    os.write(start, b".")
    thread.join()
    os.close(end)
    os.close(start)
    assert not stall.starved(elapsed_s)
    assert stall.why(elapsed_s).startswith("a read hangs in the kernel (state S")
