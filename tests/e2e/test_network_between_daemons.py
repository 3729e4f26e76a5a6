"""A daemon that measures the cable to a node where the iperf3 server runs that we ship."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import eventually, running
from support.inside import Inside
from support.iperf3 import iperf3_server
from support.netns import Namespace, namespace
from support.programs import need

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2"),
    pytest.mark.timeout(300),
]
PEER = "10.77.0.2"


@pytest.fixture
def cable() -> Iterator[tuple[Namespace, Namespace]]:
    need("iperf3")
    with namespace() as one, namespace() as other:
        peer = ["type", "veth", "peer", "name", "eth0", "mtu", "9000", "netns", other.name]
        one.ip("link", "add", "eth0", "mtu", "9000", *peer)
        for ns, number in ((one, 1), (other, 2)):
            ns.ip("addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            ns.ip("link", "set", "eth0", "up")
        yield one, other


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


@pytest.mark.long
def test_every_probe_of_the_network_to_another_node(cable: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    one, other = cable
    often = {"interval": "30s", "timeout": "15s", "targets": [PEER], "device_class": "10g", "max_load_per_cpu": 100}
    config = {
        "probes": [
            {"type": "iperf3", "name": "net", "runtime": "1s", **often},
            {"type": "rtt", "name": "rtt", "packets": 10, "gap": "10ms", **often},
            {"type": "path-mtu", "name": "mtu", **often},
        ]
    }
    into = ["ip", "netns", "exec"]
    with (
        iperf3_server(PEER, 10048, [*into, other.name]),
        running(folder(tmp_path, "a"), config=config, prefix=[*into, one.name]) as client,
    ):
        measuring = Inside(one, client)

        def figures() -> dict[tuple[str, str], float]:
            found = {}
            for each in measuring.metrics().samples:
                if each.labels.get("statistic", "p50") == "p50" and each.labels.get("layer") == "network":
                    found[each.name, each.labels.get("operation", "")] = each.value
            return found

        wanted = {
            ("plumbline_probe_throughput_bytes_per_second", "transmit"),
            ("plumbline_probe_throughput_bytes_per_second", "receive"),
            ("plumbline_probe_retransmits", "transmit"),
            ("plumbline_probe_latency_seconds", "round-trip"),
            ("plumbline_probe_loss_ratio", "round-trip"),
            ("plumbline_probe_path_mtu_bytes", "path-mtu"),
        }
        eventually(lambda: wanted <= set(figures()), within_s=120, every_s=1)
        assert figures()["plumbline_probe_path_mtu_bytes", "path-mtu"] == 9000
        info = [each.labels for each in measuring.metrics().samples if each.name == "plumbline_probe_target_info"]
        assert {(each["probe"], each["target"], each["device"]) for each in info} == {
            (f"{name}/{PEER}", PEER, "eth0") for name in ("net", "rtt", "mtu")
        }
