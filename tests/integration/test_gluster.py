"""GlusterFS as a real glusterd tells it: a brick that is killed, what has to be healed then, a glusterd that hangs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.background.gluster import GlusterWatch
from plumbline.errors import PlumblineError
from plumbline.sources.gluster import WITHIN_S, GlusterReading, read_state
from support.daemon import eventually
from support.gluster import Glusterd, glusterd

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make namespaces"),
]
BRICKS = ("first", "second", "third")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Glusterd]:
    with glusterd(tmp_path_factory.mktemp("gluster")) as started:
        started.volume("create", "data", "replica", "3", *map(started.brick, BRICKS), "force")
        started.volume("start", "data")
        yield started


def reading(watch: GlusterWatch) -> GlusterReading:
    watch.slot.refresh()
    return watch.slot.value


def up(watch: GlusterWatch) -> dict[str, bool]:
    """Brick → whether it is up."""
    (volume,) = reading(watch).state.volumes
    assert (volume.bricks_each, volume.needed) == (3, 2)
    return {Path(brick.name).name: brick.up for brick in volume.bricks}


def test_a_brick_is_killed_and_healed(host: Glusterd) -> None:
    watch = GlusterWatch(host.roots, host)
    eventually(lambda: up(watch) == dict.fromkeys(BRICKS, True))
    host.process_of("second").kill()
    eventually(lambda: up(watch) == {"first": True, "second": False, "third": True})
    mounts = "mkdir -p /run/data && { mountpoint -q /run/data || mount -t glusterfs localhost:/data /run/data; }"
    host.do("sh", "-c", f"{mounts} && date >/run/data/file")
    left = {("data", host.brick("first")), ("data", host.brick("third"))}
    eventually(lambda: reading(watch).heals.keys() == left and all(reading(watch).heals.values()))
    host.volume("start", "data", "force")
    eventually(lambda: all(up(watch).values()))
    asks = ("gluster", "--mode=script", "--log-file=/dev/null", "volume", "heal", "data")

    def healed() -> bool:
        host.run(asks, timeout_s=10.0)  # the self-heal daemon looks by itself every ten minutes
        return set(reading(watch).heals.values()) == {0} and len(reading(watch).heals) == 3

    eventually(healed, within_s=120, every_s=1)


def test_a_glusterd_that_hangs_delays_nobody(host: Glusterd) -> None:
    watch = GlusterWatch(host.roots, host)
    before = reading(watch)
    os.kill(host.pid, signal.SIGSTOP)
    try:
        asks = threading.Thread(target=watch.slot.refresh)
        asks.start()
        began = time.monotonic()
        assert watch.slot.value is before
        assert time.monotonic() - began < WITHIN_S / 2
        asks.join()
        with pytest.raises(PlumblineError, match="no answer within 10 s"):
            _ = watch.slot.value
    finally:
        os.kill(host.pid, signal.SIGCONT)
    eventually(lambda: read_state(host.roots, host).volumes == before.state.volumes)
