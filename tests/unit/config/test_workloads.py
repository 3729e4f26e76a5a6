"""The catalogue as data: what an id says is what its parameters are, and every id is one experiment."""

from __future__ import annotations

from collections import Counter
from importlib import resources
from typing import get_args

import pytest
import yaml

from plumbline.config.probes import ProbeConfig
from plumbline.config.workloads import (
    LAYERS,
    BlockWorkload,
    FileOps,
    Messages,
    Metadata,
    OsdBench,
    PathMtu,
    Pattern,
    RadosBench,
    RadosOps,
    RbdBench,
    RoundTrip,
    S3Ops,
    Sync,
    TcpThroughput,
    VolumeClaim,
    Workload,
    load_catalogue,
)
from plumbline.errors import ConfigError
from support.offenders import for_every

CATALOGUE = load_catalogue()
ALL = list(CATALOGUE.by_id.values())
PREFIX = {"disk": "", "rbd": "rbd-", "filesystem": "fs-", "rados": "rados-"}


def size(number: int) -> str:
    for unit, scale in (("g", 2**30), ("m", 2**20), ("k", 2**10)):
        if number % scale == 0:
            return f"{number // scale}{unit}"
    return f"{number}b"


def expected(each: Workload) -> str:
    """The id that the parameters make."""
    match each:
        case BlockWorkload():
            mix = each.rwmix_read if each.pattern is Pattern.RANDRW else ""
            tail = ("-dsync" if each.sync is Sync.DSYNC else "") + ("" if each.direct else "-buffered")
            block = f"{PREFIX[each.layer]}{each.pattern}{mix}-{size(each.block_size)}"
            return f"{block}-qd{each.iodepth}-j{each.jobs}{tail}"
        case TcpThroughput():
            return f"tcp-throughput-s{each.streams}"
        case Messages():
            kind = each.test.replace("rc_rdma", "rdma").replace("_", "-")
            return f"{kind}-{size(each.message_bytes).removesuffix('b')}"
        case RoundTrip():
            return f"icmp-rtt-{each.payload_bytes}" if each.protocol == "icmp" else "tcp-rtt"
        case PathMtu():
            return "path-mtu"
        case OsdBench():
            usual = each.total_bytes in (2**30, 12288000)  # of Ceph: 1 GiB, and mClock's 3,000 blocks of 4 KiB
            return f"osd-bench-{size(each.block_size)}" + ("" if usual else f"-{size(each.total_bytes)}")
        case RadosBench():
            return f"rados-{each.mode}-{size(each.object_size)}-t{each.concurrent}"
        case RadosOps():
            return f"rados-ops-{size(each.object_size)}"
        case RbdBench():
            pattern = "rand" if each.random else ""
            return f"rbd-bench-{pattern}{each.operation}-{size(each.io_size)}-t{each.threads}"
        case Metadata():
            files = {1000: "1k", 16384: "16k"}[each.files]
            return f"fs-metadata-{files}"
        case FileOps():
            return f"fs-ops-{size(each.block_size)}" + ("" if each.direct else "-buffered")
        case S3Ops():
            return f"s3-ops-{size(each.object_size)}"
        case VolumeClaim():
            return f"claim-{size(each.volume_bytes)}-write-{size(each.block_size)}"


@for_every("each", ALL, ids=lambda each: each.id)
def test_an_id_says_what_its_parameters_are(each: Workload) -> None:
    assert each.id == expected(each)
    assert each.layer in LAYERS
    assert each.description.strip() == each.description != ""


def test_every_id_is_another_experiment() -> None:
    hashes = Counter((each.layer, each.config_hash()) for each in ALL)
    assert [key for key, count in hashes.items() if count > 1] == []
    # a probe's results are compared by these hashes
    assert len({each.config_hash() for each in ALL}) == len(ALL)


def test_every_workload_has_a_type_of_probe_that_runs_it() -> None:
    for each in ALL:
        if isinstance(each, BlockWorkload) and each.layer == "rados":
            continue  # fio's rados engine leaves its objects behind; ids for documented figures only
        if isinstance(each, VolumeClaim):
            continue  # a job of Kubernetes runs it: plumbline probe claim
        assert any(isinstance(each, kind.runs) and each.layer == kind.layer for kind in get_args(ProbeConfig)), each.id


def test_the_rows_of_the_documents_are_there() -> None:
    named = {
        "table 4 of INFN 2025": ("write-1m-qd8-j8", "fs-read-1m-qd8-j8", "rbd-write-1m-qd8-j8"),
        "table 7 of INFN 2025": ("randread-4k-qd1-j8", "fs-randwrite-4k-qd1-j8", "rbd-randread-4k-qd1-j8"),
        "rows RADOS of INFN 2025": ("rados-write-1m-qd8-j8", "rados-randread-4k-qd1-j8"),
        "figure 122 of UNNOBA 2020": ("rbd-randwrite-4k-qd16-j4",),
        "10.4 of UNNOBA 2020": ("rbd-write-4m-qd16-j1", "rbd-randrw50-4m-qd16-j1", "rbd-bench-read-4m-t16"),
        "figure 60 of UNNOBA 2020": ("randwrite-4k-qd32-j32", "randwrite-4k-qd2-j4"),
        "figure 14 of ICN-UNAM": ("read-512k-qd1-j8", "fs-read-512k-qd1-j8"),
        "the largest record of ICN-UNAM": ("fs-randread-16m-qd1-j1",),
        "Fujitsu 2013's fio": ("rbd-randread-8m-qd1-j128", "fs-write-8k-qd1-j64"),
        "figure 10 of Wroclaw 2017": ("fs-randrw50-16m-qd1-j5",),
    }
    assert [where for where, ids in named.items() if not set(ids) <= CATALOGUE.by_id.keys()] == []


def test_hashes_that_stand_in_recorded_baselines_never_change() -> None:
    known = {"randread-4k-qd1-j1": "f8ebba40cbad"}
    assert {each: CATALOGUE.by_id[each].config_hash() for each in known} == known


def test_an_unknown_id_says_what_is_like_it() -> None:
    with pytest.raises(ConfigError, match="no such workload"):
        CATALOGUE.get("randread-4k-qd1-j9", where="configuration", key="probes")


def test_the_file_has_no_id_twice() -> None:
    rows = yaml.safe_load((resources.files("plumbline.config") / "workloads.yaml").read_text("utf-8"))
    assert len({row["id"] for row in rows}) == len(rows)
