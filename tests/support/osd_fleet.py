"""Admin sockets of many OSDs in a process of their own, so that what answering costs falls on nobody else.

Each says what a real osd.0 of Ceph 16.2.15 said under load (``tests/fixtures/ceph-16.2-states/load-2``), with the pings
and connections of a cluster as large as wanted: recorded from three OSDs they would have two peers. The connections are
those of an osd.0 of Ceph 20.2.4, as 16.2 can't tell them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from plumbline.sources.ceph.osd_mclock import SHARE_OPTIONS

from .admin_sockets import AdminSocket

FIXTURES = Path(__file__).parents[1] / "fixtures"
_LOADED, _HEALTHY = FIXTURES / "ceph-16.2-states" / "load-2", FIXTURES / "ceph-16.2"
_TENTACLE = FIXTURES / "ceph-20.2"


def answers(peers: int) -> dict[str, bytes]:
    """Command → answer of an OSD with so many peers."""
    network = json.loads((_LOADED / "dump_osd_network.json").read_bytes())
    recorded = network["entries"]
    network["entries"] = [
        {**recorded[peer % len(recorded)], "to osd": peer, "interface": interface}
        for peer in range(1, peers + 1)
        for interface in ("front", "back")
    ]
    connections = json.loads((_TENTACLE / "messenger-dump-cluster.json").read_bytes())
    asked = connections["messenger"]["connections"]
    connections["messenger"]["connections"] = [
        {"async_connection": asked[peer % len(asked)]["async_connection"] | {"conn_id": peer}}
        for peer in range(1, peers + 1)
    ]
    # with a database on a device of its own, and what Ceph counts since 18: as many series as an OSD can have
    counters = json.loads((_LOADED / "perf-dump.json").read_bytes()) | json.loads(
        (_HEALTHY / "perf-dump-spilled.json").read_bytes()
    )
    counters["rocksdb"] |= {"compact_completed": 1, "compact_lasted": 0.2}
    counters["mclock-shard-queue-0"] = {"mclock_client_queue_len": 1}
    options = {
        "osd_op_queue": "mclock_scheduler",
        "osd_mclock_max_capacity_iops_hdd": "315.000000",
        "osd_mclock_max_capacity_iops_ssd": "21500.000000",
        "osd_mclock_profile": "balanced",
        **dict.fromkeys(SHARE_OPTIONS.values(), "0.500000"),
    }
    return {
        "perf dump": json.dumps(counters).encode(),
        "perf histogram dump": (_LOADED / "perf-histogram-dump.json").read_bytes(),
        "dump_osd_network": json.dumps(network).encode(),
        "dump_blocked_ops": (_HEALTHY / "dump_ops_in_flight.json").read_bytes(),
        "dump_historic_slow_ops": (_HEALTHY / "dump_historic_slow_ops.json").read_bytes(),
        "bluestore allocator score block": b'{"fragmentation_rating": 0.25}',
        "config get": json.dumps(options).encode(),
        "version": (_TENTACLE / "version.json").read_bytes(),
        "messenger dump": json.dumps(connections).encode(),
    }


@contextlib.contextmanager
def osd_fleet(folder: Path, osds: int, *, peers: int) -> Iterator[None]:
    """``folder/ceph-osd.N.asok`` for as long as the block lasts."""
    argv = [sys.executable, "-m", __name__, str(folder), str(osds), str(peers)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"serving\n"
        try:
            yield
        finally:
            process.communicate()  # its standard input ends


def main() -> None:
    """Serve until standard input ends."""
    folder, osds, peers = sys.argv[1:]
    said = answers(int(peers))
    serving = [AdminSocket(Path(folder) / f"ceph-osd.{number}.asok", said) for number in range(int(osds))]
    print("serving", flush=True)
    sys.stdin.read()
    for each in serving:
        each.close()


if __name__ == "__main__":
    main()
