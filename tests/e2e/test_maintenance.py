"""``plumbline maintenance`` beside a daemon: announced, exported, scraped, shown, ended."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

from support.daemon import COMMAND, Daemon, eventually, running

UNTIL = "plumbline_maintenance_until_timestamp_seconds"


def maintain(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [*COMMAND, "maintenance", *arguments, "--storage.path", str(folder / "state")]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def ends(daemon: Daemon) -> set[str]:
    return daemon.metrics().labels(UNTIL, "host")


def test_from_the_command_to_the_page_and_back(folder: Path) -> None:
    with running(folder, config={"probes": []}) as daemon:
        unseen = maintain(folder, "start", "stor02", "--for", "2h", "--why", "firmware <b>", "--wait", "0s")
        assert unseen.returncode == 3
        assert "no scrape has seen it within 0s: " in unseen.stdout
        eventually(lambda: ends(daemon) == {"stor02"}, within_s=60)
        assert "Maintenance: stor02 until " in daemon.page()
        assert "firmware &lt;b&gt;" in daemon.get("/").text
        stopping = threading.Event()
        scraping = threading.Thread(target=lambda: [daemon.metrics() for _ in iter(lambda: stopping.wait(0.5), True)])
        scraping.start()
        try:
            seen = maintain(folder, "start", "--cluster", "--for", "10m", "--why", "switch", "--wait", "60s")
        finally:
            stopping.set()
            scraping.join()
        assert (seen.returncode, seen.stderr) == (0, "")
        assert "a scrape has seen it" in seen.stdout
        rows = json.loads(maintain(folder, "list", "--json").stdout)
        assert [(row["host"], row["why"], row["scraped"]) for row in rows] == [
            (None, "switch", True),
            ("stor02", "firmware <b>", True),
        ]
        assert maintain(folder, "end", "stor02").stdout == "maintenance of stor02 has ended\n"
        assert [row["host"] for row in json.loads(maintain(folder, "list", "--json").stdout)] == [None]
        eventually(lambda: "Maintenance: stor02" not in daemon.page(), within_s=60)


def test_what_is_refused(folder: Path) -> None:
    with running(folder, config={"probes": []}):
        for arguments, reason in (
            (("start", "stor02", "--for", "4d", "--why", "x"), "at most 3d"),
            (("start", "--for", "1h", "--why", "x"), "name one host, or --cluster"),
            (("start", "a", "--cluster", "--for", "1h", "--why", "x"), "name one host, or --cluster"),
            (("start", "a b", "--for", "1h", "--why", "x"), "not a name of a host"),
            (("start", "a", "--for", "1h", "--why", ""), "why: expected 1 to 200 printable characters"),
            (("end", "stor09"), "no maintenance of stor09 is in force here"),
        ):
            refused = maintain(folder, *arguments)
            assert refused.returncode == 1, arguments
            assert reason in refused.stderr
            assert refused.stderr.count("\n") == 1
        assert maintain(folder, "list").stdout == "no maintenance was started here\n"
