"""What strangers cause is logged at most once in a while, by kind; and how the journal gets it."""

import logging
import os
import subprocess
import sys
from enum import Enum
from pathlib import Path

from plumbline.core.log_limit import JournalFormatter, LogLimit, is_journal


class Kind(Enum):
    A = 1
    B = 2


def test_once_in_an_interval_for_each_kind() -> None:
    now = 0.0
    limit = LogLimit(60.0, clock=lambda: now)
    assert [limit.due(kind) for kind in (Kind.A, Kind.A, Kind.B, Kind.B)] == [True, False, True, False]
    now = 59.9
    assert not limit.due(Kind.A)
    now = 60.0
    assert limit.due(Kind.A)
    now = 61.0
    assert limit.due(Kind.B)
    assert not limit.due(Kind.A)


def test_the_journal_gets_priorities_on_each_line_and_no_time_of_ours() -> None:
    def said(level: int, text: str) -> str:
        return JournalFormatter("%(message)s").format(logging.LogRecord("x", level, "", 0, text, (), None))

    levels = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
    assert [said(level, "a") for level in levels] == ["<2>a", "<3>a", "<4>a", "<6>a", "<7>a"]
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "a", (), sys.exc_info())
    assert all(line.startswith("<3>") for line in JournalFormatter("%(message)s").format(record).split("\n"))


def test_it_is_the_journal_where_systemd_says_so(tmp_path: Path) -> None:
    """A real file stands for the journal's socket: systemd names both by device and inode."""
    with (tmp_path / "stderr").open("w") as file:
        status = os.fstat(file.fileno())
        named = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        assert is_journal(file.fileno(), named)
        assert not is_journal(file.fileno(), {})
        assert not is_journal(file.fileno(), {"JOURNAL_STREAM": "1:1"})
        argv = [sys.executable, "-m", "plumbline", "serve", "--config.file", str(tmp_path / "none.yaml")]
        subprocess.run(argv, stderr=file, env=os.environ | named, check=False)
    closed = os.open(tmp_path, os.O_RDONLY)
    os.close(closed)
    assert not is_journal(closed, named)
    assert (tmp_path / "stderr").read_text().startswith("<3>plumbline: ")
