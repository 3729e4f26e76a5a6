"""MooseFS as a real master tells it: chunkservers are killed, and chunks lose their copies."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.moosefs import MoosefsReading, read_chunks
from support.daemon import eventually
from support.netns import Namespace, namespace
from support.programs import need

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make namespaces"),
]
MASTER, SERVERS = "192.0.2.9", ("192.0.2.1", "192.0.2.2")
OF_BOTH = "WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = {data}\n"


class Moosefs:
    """A master and chunkservers in a network namespace; ``folder`` is the master's host."""

    def __init__(self, network: Namespace, folder: Path) -> None:
        self.network, self.folder = network, folder
        self.roots = Roots.under(folder)

    def start(self, program: str, config: Path) -> subprocess.Popen[bytes]:
        argv = ["ip", "netns", "exec", self.network.name, program, "-f", "-c", str(config), "start"]
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def chunkserver(self, address: str) -> subprocess.Popen[bytes]:
        place = self.folder / address
        (place / "disk").mkdir(parents=True, exist_ok=True)
        (place / "hdd.cfg").write_text(f"{place / 'disk'}\n")
        (place / "chunkserver.cfg").write_text(
            OF_BOTH.format(data=place)
            + f"HDD_CONF_FILENAME = {place / 'hdd.cfg'}\nMASTER_HOST = {MASTER}\nHDD_LEAVE_SPACE_DEFAULT = 16MiB\n"
            + f"CSSERV_LISTEN_HOST = {address}\nBIND_HOST = {address}\n"
        )
        return self.start("mfschunkserver", place / "chunkserver.cfg")

    def write(self) -> None:
        """A file of two copies; mounted and unmounted in a mount namespace of its own."""
        point = self.folder / "mnt"
        point.mkdir()
        goal = "{ mfssetgoal 2 two || mfssetsclass 2CP two; }"  # MooseFS 3 and 4
        steps = (
            f"mfsmount -H {MASTER} {point} && cd {point} && mkdir two && {goal} && echo data >two/file"
            f" && sync && cd / && umount {point}"
        )
        argv = ["ip", "netns", "exec", self.network.name, "sh", "-c", steps]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def read(self) -> MoosefsReading:
        return self.network.run(lambda: read_chunks(self.roots, ProcessRunner(os.environ)))


@pytest.fixture
def moosefs(tmp_path: Path) -> Iterator[Moosefs]:
    for program in ("mfsmaster", "mfschunkserver", "mfscli", "mfsmount", "mfssetgoal"):
        need(program)
    with namespace() as network:
        network.ip("link", "add", "br0", "type", "bridge")
        network.ip("link", "set", "br0", "up")
        for address in (MASTER, *SERVERS):
            network.ip("address", "add", f"{address}/24", "dev", "br0")
        yield Moosefs(network, tmp_path)


def whole(reading: MoosefsReading) -> dict[str, int]:
    """The classes that have chunks."""
    return {state: count for state, count in reading.chunks.items() if count}


def test_chunks_lose_their_copies(moosefs: Moosefs) -> None:
    config = moosefs.folder / "etc" / "mfs"
    config.mkdir(parents=True)
    (config / "exports.cfg").write_text("* / rw,alldirs,admin,maproot=0:0\n")
    (config / "topology.cfg").touch()
    (moosefs.folder / "metadata.mfs").write_bytes(b"MFSM NEW")
    (config / "mfsmaster.cfg").write_text(
        OF_BOTH.format(data=moosefs.folder)
        + f"EXPORTS_FILENAME = {config / 'exports.cfg'}\nTOPOLOGY_FILENAME = {config / 'topology.cfg'}\n"
        + "REPLICATIONS_DELAY_INIT = 1\n"  # if a file is written before both chunkservers take chunks
        + "".join(f"{who}_LISTEN_HOST = {MASTER}\n" for who in ("MATOML", "MATOCS", "MATOCL"))
    )
    with pytest.raises(ParseError, match="Working master servers not found"):
        moosefs.read()
    with ExitStack() as stack:
        processes = [moosefs.start("mfsmaster", config / "mfsmaster.cfg"), *map(moosefs.chunkserver, SERVERS)]
        for process in processes:
            stack.callback(process.wait)
            stack.callback(process.kill)
        names = [f"{address}:9422" for address in SERVERS]
        eventually(lambda: _connected(moosefs) == dict.fromkeys(names, True), within_s=60)
        moosefs.write()
        eventually(lambda: whole(moosefs.read()) == {"stable": 1}, within_s=120)
        processes[1].kill()
        eventually(lambda: moosefs.read().chunkservers == {names[0]: False, names[1]: True})
        assert whole(moosefs.read()) == {"endangered": 1}
        processes[2].kill()
        eventually(lambda: whole(moosefs.read()) == {"missing": 1})


def _connected(moosefs: Moosefs) -> dict[str, bool]:
    try:
        return dict(moosefs.read().chunkservers)
    except ParseError:  # the master is not up yet
        return {}
