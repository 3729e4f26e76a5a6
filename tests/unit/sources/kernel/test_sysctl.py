"""Kernel settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.collectors.sysctl import INFO, VALUE, samples
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.sysctl import NUMBERS, SysctlReading, parse_numbers, read_sysctl

# what the thesis sets for its nodes (section 4.4.2) and its sockets (figure 42)
DOCUMENTED = {
    "kernel/osrelease": "5.10.0-29-amd64\n",
    "kernel/pid_max": "4194303\n",
    "kernel/threads-max": "2097152\n",
    "vm/max_map_count": "524288\n",
    "vm/min_free_kbytes": "1048576\n",
    "vm/vfs_cache_pressure": "10\n",
    "vm/zone_reclaim_mode": "0\n",
    "vm/dirty_ratio": "80\n",
    "vm/dirty_background_ratio": "80\n",
    "net/core/netdev_budget": "600\n",
    "net/core/rmem_max": "4194304\n",
    "net/ipv4/tcp_rmem": "4096\t87380\t4194304\n",
    "net/ipv4/tcp_mem": "287898\t383867\t575796\n",
    "net/ipv4/tcp_congestion_control": "cubic\n",
}


def host(root: Path, settings: dict[str, str]) -> Roots:
    roots = Roots.under(root)
    for name, text in settings.items():
        path = roots.proc / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return roots


def test_settings(tmp_path: Path) -> None:
    reading = read_sysctl(host(tmp_path, DOCUMENTED))
    assert reading == SysctlReading(
        {
            "kernel.pid_max": (4194303,),
            "kernel.threads-max": (2097152,),
            "vm.max_map_count": (524288,),
            "vm.min_free_kbytes": (1048576,),
            "vm.vfs_cache_pressure": (10,),
            "vm.zone_reclaim_mode": (0,),
            "vm.dirty_ratio": (80,),
            "vm.dirty_background_ratio": (80,),
            "net.core.netdev_budget": (600,),
            "net.core.rmem_max": (4194304,),
            "net.ipv4.tcp_rmem": (4096, 87380, 4194304),
            "net.ipv4.tcp_mem": (287898, 383867, 575796),
        },
        {"kernel.osrelease": "5.10.0-29-amd64", "net.ipv4.tcp_congestion_control": "cubic"},
    )
    assert (reading.number("net.core.netdev_budget"), reading.number("vm.swappiness")) == (600, None)


def test_samples_name_the_fields() -> None:
    reading = SysctlReading(
        {"net.ipv4.tcp_rmem": (4096, 87380, 4194304), "net.ipv4.tcp_mem": (1, 2, 3), "vm.dirty_bytes": (0,)},
        {"net.ipv4.tcp_congestion_control": "bbr"},
    )
    assert list(samples(reading)) == [
        (VALUE, ("net.ipv4.tcp_rmem", "min"), 4096),
        (VALUE, ("net.ipv4.tcp_rmem", "default"), 87380),
        (VALUE, ("net.ipv4.tcp_rmem", "max"), 4194304),
        (VALUE, ("net.ipv4.tcp_mem", "min"), 1),
        (VALUE, ("net.ipv4.tcp_mem", "pressure"), 2),
        (VALUE, ("net.ipv4.tcp_mem", "max"), 3),
        (VALUE, ("vm.dirty_bytes", ""), 0),
        (INFO, ("net.ipv4.tcp_congestion_control", "bbr"), 1),
    ]


def test_one_malformed_setting_is_skipped(tmp_path: Path) -> None:
    skipped: list[tuple[str, str]] = []
    roots = host(tmp_path, {"vm/dirty_ratio": "twenty\n", "vm/swappiness": "60\n"})
    assert read_sysctl(roots, on_skip=lambda *skip: skipped.append(skip)).numbers == {"vm.swappiness": (60,)}
    assert skipped == [("vm.dirty_ratio", f"{roots.proc}/sys/vm/dirty_ratio:1: 'twenty', expected 1 number")]


def test_nothing_to_read_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"proc/sys: none of the settings can be read"):
        read_sysctl(Roots.under(tmp_path))


@pytest.mark.parametrize(
    ("text", "count", "values"),
    [("300", 1, (300,)), ("-1\n", 1, (-1,)), ("4096\t131072\t6291456\n", 3, (4096, 131072, 6291456))],
)
def test_numbers(text: str, count: int, values: tuple[int, ...]) -> None:
    assert parse_numbers(text, count=count, source="s") == values


@pytest.mark.parametrize(("text", "count"), [("", 1), ("1 2", 1), ("1 2", 3), ("0x10", 1), ("1.5", 1), ("٣", 1)])
def test_malformed_numbers(text: str, count: int) -> None:
    with pytest.raises(ParseError, match=f"^s:1: .* expected {count} number"):
        parse_numbers(text, count=count, source="s")


def test_the_running_kernel_has_what_its_namespace_shows() -> None:
    reading = read_sysctl(Roots.under(Path("/")))
    assert reading.numbers.keys() <= NUMBERS.keys()
    assert reading.numbers["vm.dirty_ratio"][0] in range(101)
    assert len(reading.numbers["net.ipv4.tcp_rmem"]) == 3
