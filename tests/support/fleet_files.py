"""Baseline files of simulated nodes: the project's own text of figures that are drawn, not measured."""

from __future__ import annotations

import base64
import random
from datetime import UTC, datetime

from plumbline.baseline.files import Latencies
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.text import format_record
from plumbline.baseline.signature import NAMESPACE
from plumbline.baseline.site import SiteEntry, SiteFile
from plumbline.baseline.units import Iops, Latency, Throughput
from plumbline.config.workloads import load_catalogue

CATALOGUE = load_catalogue()
LATENCIES_S = {"randread-4k-qd1-j1": 8e-3, "randwrite-4k-qd1-j1": 4e-3}
RTT_S, OSD_BYTES_PER_S = 120e-6, 150e6


def signature_text(of: str) -> str:
    """A signature of a baseline in its form (PROTOCOL.sshsig of OpenSSH), by no key."""
    fields = (b"ssh-ed25519", NAMESPACE.encode(), b"", b"sha512", of.encode())
    blob = b"SSHSIG\0\0\0\1" + b"".join(len(each).to_bytes(4, "big") + each for each in fields)
    return f"-----BEGIN SSH SIGNATURE-----\n{base64.b64encode(blob).decode()}\n-----END SSH SIGNATURE-----\n"


def node_text(
    host: str,
    *,
    fleet_class: str,
    seed: int = 0,
    slow: float = 1.0,
    fast_osd: float = 1.0,
    ceph: str = "18.2.7",
    disk: str = "",
) -> str:
    """A node whose figures differ from its like by 4 %; its disks are ``slow`` times as slow, ``fast_osd`` as fast."""
    draw = random.Random(f"{host}{seed}")

    def near(value: float) -> float:
        return float(f"{value * draw.gauss(1, 0.04):.4g}")

    entries = [
        SiteEntry(
            workload=workload,
            operation=CATALOGUE.by_id[workload].operations[0],
            device_class="hdd",
            latency=Latencies(
                p50=Latency.of(middle := near(seconds * slow)), p99=Latency.of(float(f"{middle * 3:.4g}"))
            ),
            iops=Iops.of(float(f"{1 / middle:.4g}")),
            tolerance_ratio=1.25,
            runs=5,
            mad_ratio=0.02,
            spread_ratio=1.1,
        )
        for workload, seconds in LATENCIES_S.items()
    ]
    entries += [
        SiteEntry(
            workload="icmp-rtt-56",
            operation="round-trip",
            device_class="10g",
            latency=Latencies(p50=Latency.of(near(RTT_S))),
            tolerance_ratio=1.3,
        ),
        SiteEntry(
            workload="osd-bench-4m",
            operation="write",
            device_class="hdd",
            throughput=Throughput.of(near(OSD_BYTES_PER_S * fast_osd)),
            tolerance_ratio=1.3,
        ),
    ]
    file = SiteFile(
        schema_version=1,
        source="measured",
        name=host,
        host=host,
        fleet_class=fleet_class,
        recorded=datetime(2026, 11, 25, 12, seed, tzinfo=UTC),
        recorded_by="ada",
        tools={"plumbline": "0.1.0"},
        fingerprint=Fingerprint(ceph=ceph, kernel="6.12.48", disks={disk or f"S-{host}": "HGST HUS72"}),
        entries=tuple(entries),
    )
    return format_record(file)
