"""The figures that chapter 5 of the UNNOBA thesis prints, and the verdict its author reached from each."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from plumbline.checks.growth import Count
from plumbline.checks.model import Finding, judge
from plumbline.checks.network import CHECKS
from plumbline.checks.network.facts import NetworkFacts, Nic, SoftnetCpu
from plumbline.sources.kernel.softnet import parse_softnet
from plumbline.sources.net.port_settings import Moderation, PauseConfig, RingSizes
from support import facts as support

FIGURES = Path(__file__).parents[2] / "fixtures" / "unnoba-2020-chapter-5"
DEBIAN_10 = {
    "net.core.netdev_budget": (300,),  # Figura 30
    "net.core.netdev_max_backlog": (1000,),  # Figura 36
    "net.ipv4.tcp_rmem": (4096, 131072, 4194304),  # Figura 41
}
PORT = Nic("ens2f0", driver="bnx2x", bus="0000:05:00.0", up=True)


def figure(name: str) -> str:
    return (FIGURES / name).read_text("ascii")


def verdicts(facts: NetworkFacts) -> dict[str, Finding]:
    found = {each.check: each for each in judge(CHECKS, facts)}
    assert len(found) == len(judge(CHECKS, facts)), "one subject each"
    return found


def settings(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w -]+): +(\S+)$", text, re.MULTILINE))


def interrupts(text: str, device: str) -> Nic:
    """A port whose queues had these interrupts: the busiest CPU's share, and the vectors at work."""
    rows = [line.split() for line in text.splitlines() if line.endswith(tuple(f"{device}-{n}" for n in range(8)))]
    counts = [list(map(int, row[1:9])) for row in rows]
    cpus = [sum(column) for column in zip(*counts, strict=True)]
    return replace(PORT, device=device, interrupts=support.interrupts(max(cpus) / sum(cpus), len(rows)))


CPUS = tuple(SoftnetCpu(cpu, Count(1, 1), Count(0, 0), Count(0, 0)) for cpu in range(8))


def test_figura_23_is_balanced() -> None:
    for device in ("eno1", "eno2"):
        nic = interrupts(figure("interrupts-spread.txt"), device)
        assert nic.interrupts is not None
        assert nic.interrupts.active_vectors == 8
        found = verdicts(NetworkFacts(2.0, (nic,), CPUS))["network.irqs-on-one-cpu"]
        assert found.met


def test_figura_29_has_everything_on_one_cpu_and_asks_for_irqbalance() -> None:
    nic = interrupts(figure("interrupts-on-cpu0.txt"), "eno1")
    found = verdicts(NetworkFacts(2.0, (nic,), CPUS))["network.irqs-on-one-cpu"]
    assert not found.met
    assert found.actual == "100% of 8 queues' interrupts on one of 8 CPUs"
    assert found.fix is not None
    assert "irqbalance" in found.fix.now


def softnet() -> tuple[SoftnetCpu, ...]:
    """Figura 31 as the growth of one look: "valores crecientes"."""
    reading = parse_softnet(figure("softnet_stat.txt"), source="Figura 31")
    return tuple(
        SoftnetCpu(
            each.cpu,
            Count(each.processed, each.processed),
            Count(each.dropped, each.dropped),
            Count(each.time_squeeze, each.time_squeeze),
        )
        for each in reading
    )


def test_figura_31_runs_out_of_its_budget_and_gets_the_command_of_figura_32() -> None:
    cpus = softnet()
    assert [each.squeezed.total for each in cpus if each.squeezed] == [
        18093, 2651334, 2170448, 2563117, 16130, 2564833, 4587666, 3235299,
    ]  # fmt: skip
    found = verdicts(NetworkFacts(2.0, (), cpus, support.sysctls(DEBIAN_10)))["network.netdev-budget"]
    assert not found.met
    assert found.fix is not None
    assert found.fix.now == "sysctl -w net.core.netdev_budget=600"


def test_figura_31_has_no_drop_in_the_second_column() -> None:
    found = verdicts(NetworkFacts(2.0, (), softnet(), support.sysctls(DEBIAN_10)))["network.netdev-max-backlog"]
    assert found.met


def test_figura_33_has_pause_frames_enabled() -> None:
    said = settings(figure("pause.txt"))
    nic = replace(PORT, device="ens1f0", pause=PauseConfig(None, said["RX"] == "on", said["TX"] == "on"))
    found = verdicts(NetworkFacts(2.0, (nic,)))["network.pause-off"]
    assert found.met


def test_figura_35_has_adaptive_coalescing() -> None:
    text = figure("coalesce.txt")
    said = settings(text)
    assert "Adaptive RX: on TX: on" in text
    rx = Moderation(int(said["rx-usecs"]), int(said["rx-frames"]), True)
    assert rx == Moderation(8, 128, True)
    found = verdicts(NetworkFacts(2.0, (replace(PORT, coalescing=support.moderated(rx)),)))["network.coalescing-off"]
    assert found.met


def test_figura_37_is_small_on_a_port_that_drops_and_gets_the_command_of_figura_38() -> None:
    maximum, current = figure("rings.txt").split("Current hardware settings:")
    rings = RingSizes(rx=int(settings(current)["RX"]), rx_max=int(settings(maximum)["RX"]))
    assert (rings.rx, rings.rx_max) == (453, 4078)
    nic = replace(PORT, rings=rings, ring_drops=Count(750466))  # Figura 28: rx_discards
    found = verdicts(NetworkFacts(None, (nic,)))["network.ring-below-maximum"]
    assert not found.met
    assert found.fix is not None
    assert found.fix.now == "ethtool -G ens2f0 rx 4078"


def test_figura_39_has_the_offloads_that_matter() -> None:
    features = {name: value == "on" for name, value in settings(figure("features.txt")).items()}
    assert len(features) == 13
    assert features["large-receive-offload"] is False
    found = verdicts(NetworkFacts(2.0, (replace(PORT, offloads=features),)))["network.offloads-off"]
    assert found.met


def test_figura_40_without_jumbo_frames_is_no_finding() -> None:
    nic = replace(PORT, mtu_bytes=1500, roles=frozenset({"ceph_public", "ceph_cluster"}))
    assert verdicts(NetworkFacts(2.0, (nic,))) == {}


def test_figura_41_is_enough_and_less_gets_the_values_of_figura_42() -> None:
    assert verdicts(NetworkFacts(sysctl=support.sysctls(DEBIAN_10)))["network.tcp-rmem"].met
    less = {**DEBIAN_10, "net.ipv4.tcp_rmem": (4096, 65536, 2097152), "net.core.rmem_max": (212992,)}
    found = verdicts(NetworkFacts(sysctl=support.sysctls(less)))
    fixes = [found[check].fix for check in ("network.tcp-rmem", "network.rmem-max")]
    assert [fix.now for fix in fixes if fix] == [
        'sysctl -w net.ipv4.tcp_rmem="4096 87380 4194304"',
        "sysctl -w net.core.rmem_max=4194304",
    ]
