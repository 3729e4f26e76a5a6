"""TCP's settings: raised where they are too small, never lowered."""

from __future__ import annotations

import pytest

from plumbline.checks.growth import Count
from plumbline.checks.model import Keep, Severity
from plumbline.checks.network import tcp
from plumbline.checks.network.facts import NetworkFacts
from support.facts import only, sysctls

FILE = "/etc/sysctl.d/90-storage-network.conf"


def host(drops: Count | None = None, **settings: tuple[int, ...]) -> NetworkFacts:
    return NetworkFacts(
        2.0,
        sysctl=sysctls({name.replace("__", "."): values for name, values in settings.items()}),
        tcp_receive_drops=drops,
    )


@pytest.mark.parametrize("check", tcp.CHECKS, ids=lambda check: check.id)
def test_a_setting_that_is_not_known_says_nothing(check) -> None:
    assert only(check, host()) is None


@pytest.mark.parametrize(
    ("check", "name", "values"),
    [
        (tcp.tcp_rmem, "net__ipv4__tcp_rmem", (4096, 131072, 33554432)),  # this kernel's default with 24 GiB
        (tcp.tcp_rmem, "net__ipv4__tcp_rmem", (4096, 87380, 4194304)),
        (tcp.TCP_WMEM, "net__ipv4__tcp_wmem", (4096, 65536, 4194304)),
        (tcp.TCP_WMEM, "net__ipv4__tcp_wmem", (4096, 16384, 4194304)),  # the default of every kernel
        (tcp.CORE_RMEM_MAX, "net__core__rmem_max", (4194304,)),
        (tcp.CORE_WMEM_MAX, "net__core__wmem_max", (8388608,)),
        (tcp.WINDOW_SCALING, "net__ipv4__tcp_window_scaling", (1,)),
        (tcp.TIMESTAMPS, "net__ipv4__tcp_timestamps", (1,)),
        (tcp.TIMESTAMPS, "net__ipv4__tcp_timestamps", (2,)),
        (tcp.SACK, "net__ipv4__tcp_sack", (1,)),
    ],
)
def test_met(check, name: str, values: tuple[int, ...]) -> None:
    found = only(check, host(**{name: values}))
    assert found is not None
    assert (found.met, found.actual) == (True, " ".join(map(str, values)))


@pytest.mark.parametrize(
    ("check", "name", "values", "severity", "command", "line"),
    [
        (
            tcp.tcp_rmem, "net__ipv4__tcp_rmem", (4096, 16384, 1048576), Severity.WARNING,
            'sysctl -w net.ipv4.tcp_rmem="4096 87380 4194304"', "net.ipv4.tcp_rmem = 4096 87380 4194304",
        ),
        (  # only what is too small changes
            tcp.tcp_rmem, "net__ipv4__tcp_rmem", (8192, 131072, 1048576), Severity.WARNING,
            'sysctl -w net.ipv4.tcp_rmem="8192 131072 4194304"', "net.ipv4.tcp_rmem = 8192 131072 4194304",
        ),
        (
            tcp.TCP_WMEM, "net__ipv4__tcp_wmem", (4096, 16384, 1048576), Severity.WARNING,
            'sysctl -w net.ipv4.tcp_wmem="4096 65536 4194304"', "net.ipv4.tcp_wmem = 4096 65536 4194304",
        ),
        (
            tcp.CORE_RMEM_MAX, "net__core__rmem_max", (212992,), Severity.INFO,
            "sysctl -w net.core.rmem_max=4194304", "net.core.rmem_max = 4194304",
        ),
        (
            tcp.CORE_WMEM_MAX, "net__core__wmem_max", (212992,), Severity.INFO,
            "sysctl -w net.core.wmem_max=4194304", "net.core.wmem_max = 4194304",
        ),
        (
            tcp.WINDOW_SCALING, "net__ipv4__tcp_window_scaling", (0,), Severity.WARNING,
            "sysctl -w net.ipv4.tcp_window_scaling=1", "net.ipv4.tcp_window_scaling = 1",
        ),
        (
            tcp.TIMESTAMPS, "net__ipv4__tcp_timestamps", (0,), Severity.WARNING,
            "sysctl -w net.ipv4.tcp_timestamps=1", "net.ipv4.tcp_timestamps = 1",
        ),
        (
            tcp.SACK, "net__ipv4__tcp_sack", (0,), Severity.INFO,
            "sysctl -w net.ipv4.tcp_sack=1", "net.ipv4.tcp_sack = 1",
        ),
    ],
)  # fmt: skip
def test_not_met(check, name: str, values: tuple[int, ...], severity: Severity, command: str, line: str) -> None:
    found = only(check, host(**{name: values}))
    assert found is not None
    assert (found.met, found.severity) == (False, severity)
    assert found.fix is not None
    assert (found.fix.now, found.fix.keep) == (command, Keep(FILE, line))


def test_while_data_is_thrown_away_the_maximum_grows_beyond_the_documented_one() -> None:
    found = only(tcp.tcp_rmem, host(Count(9, 5), net__ipv4__tcp_rmem=(4096, 131072, 6291456)))
    assert found is not None
    assert found.actual == "4096 131072 6291456, 5 segments dropped recently"
    assert found.fix is not None
    assert found.fix.now == 'sysctl -w net.ipv4.tcp_rmem="4096 131072 12582912"'


@pytest.mark.parametrize(
    ("drops", "rmem"),
    [
        (Count(9, 0), (4096, 131072, 6291456)),
        (Count(9), (4096, 131072, 6291456)),
        (Count(9, 5), (4096, 131072, 33554432)),
    ],
)
def test_old_losses_and_a_maximum_that_is_large_already_ask_for_nothing(drops: Count, rmem: tuple[int, ...]) -> None:
    found = only(tcp.tcp_rmem, host(drops, net__ipv4__tcp_rmem=rmem))
    assert found is not None
    assert found.met
