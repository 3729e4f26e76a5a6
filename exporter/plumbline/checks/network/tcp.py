"""TCP: its options, and the memory of its sockets. Advice only ever raises; a larger value is never wrong."""

from collections.abc import Callable, Iterator

from plumbline.checks import fixes
from plumbline.checks.model import Check, Severity, Verdict, check
from plumbline.checks.network.facts import NetworkFacts
from plumbline.checks.text import plural

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
RMEM_MAX, WMEM_MAX = "net.core.rmem_max", "net.core.wmem_max"
DOCUMENTED = {RMEM: (4096, 87380, 4194304), WMEM: (4096, 65536, 4194304), RMEM_MAX: (4194304,), WMEM_MAX: (4194304,)}
"""Figura 42, in bytes; vectors are minimum, default, maximum."""
# Not the send default: every kernel has 16384 there, and automatic sizing only starts from it
_JUDGED = {WMEM: (0, 2)}
# Bytes up to which the receive maximum is doubled while segments are dropped: 32 MiB is the bandwidth-delay product of
# 100 Gb/s and 2.7 ms, more than any storage network has
_LARGEST_RMEM = 33554432


def _at_least(name: str) -> Callable[[NetworkFacts], Iterator[Verdict]]:
    documented = DOCUMENTED[name]

    def judge(facts: NetworkFacts) -> Iterator[Verdict]:
        now = facts.sysctl.numbers.get(name)
        if now is None or len(now) != len(documented):
            return
        judged = _JUDGED.get(name, range(len(documented)))
        short = any(now[field] < documented[field] for field in judged)
        fix = fixes.sysctl(name, tuple(map(max, now, documented))) if short else None
        yield Verdict(name, _bytes(now), f"at least {_bytes(documented)}", fix)

    return judge


@check(
    "network.tcp-rmem",
    "Give TCP sockets enough memory to receive.",
    "Every host. While received segments are dropped, the maximum may grow beyond the documented one.",
    "A window smaller than bandwidth times round trip slows every connection down; what does not fit into a full "
    "socket is dropped and sent again.",
    "unnoba-2020, 5.2.8 (Figuras 41, 42) and 10.1; Documentation/networking/ip-sysctl.rst",
    Severity.WARNING,
    'sysctl -w net.ipv4.tcp_rmem="<min> <default> <max>"   # the larger of each current value and 4096 87380 4194304',
)
def tcp_rmem(facts: NetworkFacts) -> Iterator[Verdict]:
    now, lost = facts.sysctl.numbers.get(RMEM), facts.tcp_receive_drops
    if now is None or len(now) != 3 or lost is None or not lost.grows or now[2] < DOCUMENTED[RMEM][2]:
        yield from _at_least(RMEM)(facts)
        return
    actual = f"{_bytes(now)}, {plural(lost.grew or 0, 'segment')} dropped recently"
    if now[2] >= _LARGEST_RMEM:  # more memory would only hide an application that does not read
        yield Verdict(RMEM, actual, f"at least {_bytes(DOCUMENTED[RMEM])}")
        return
    goal = (*now[:2], min(now[2] * 2, _LARGEST_RMEM))
    because = "Received data is being dropped because sockets are full."
    yield Verdict(RMEM, actual, "no received segment dropped", fixes.sysctl(RMEM, goal), because=because)


def _bytes(values: tuple[int, ...]) -> str:
    return " ".join(map(str, values))


def _switched_on(name: str) -> Callable[[NetworkFacts], Iterator[Verdict]]:
    def judge(facts: NetworkFacts) -> Iterator[Verdict]:
        now = facts.sysctl.number(name)
        if now is not None:  # tcp_timestamps may be 2, which is on as well
            yield Verdict(name, str(now), "1", None if now else fixes.sysctl(name, [1]))

    return judge


TCP_WMEM = Check(
    "network.tcp-wmem",
    "Give TCP sockets enough memory to send.",
    "Every host. Minimum and maximum are judged; the kernel sizes each socket between them.",
    "A sender keeps what is not yet acknowledged: with less memory than bandwidth times round trip, it waits.",
    "unnoba-2020, 5.2.8 (Figura 42); Documentation/networking/ip-sysctl.rst",
    Severity.WARNING,
    _at_least(WMEM),
    'sysctl -w net.ipv4.tcp_wmem="<min> <default> <max>"   # the larger of each current value and 4096 65536 4194304',
)
_LIMITS_PROGRAMS = (
    "It limits what a program may request (SO_RCVBUF, SO_SNDBUF; Ceph's ms_tcp_rcvbuf); TCP's automatic sizing "
    "ignores it."
)
CORE_RMEM_MAX = Check(
    "network.rmem-max",
    "Let programs request receive buffers up to TCP's own maximum.",
    "Every host.",
    _LIMITS_PROGRAMS,
    "unnoba-2020, 5.2.8 (Figura 42) and 10.1; Documentation/admin-guide/sysctl/net.rst",
    Severity.INFO,
    _at_least(RMEM_MAX),
    "sysctl -w net.core.rmem_max=4194304",
)
CORE_WMEM_MAX = Check(
    "network.wmem-max",
    "Let programs request send buffers up to TCP's own maximum.",
    "Every host.",
    _LIMITS_PROGRAMS,
    "unnoba-2020, 5.2.8 (Figura 42); Documentation/admin-guide/sysctl/net.rst",
    Severity.INFO,
    _at_least(WMEM_MAX),
    "sysctl -w net.core.wmem_max=4194304",
)
WINDOW_SCALING = Check(
    "network.tcp-window-scaling",
    "Leave TCP window scaling on.",
    "Every host.",
    "Without it no window exceeds 64 KiB: at the author's round trip of 163 µs a connection is limited to 3.2 Gb/s.",
    "unnoba-2020, 5.2.8 (Figura 42); RFC 7323; Documentation/networking/ip-sysctl.rst",
    Severity.WARNING,
    _switched_on("net.ipv4.tcp_window_scaling"),
    "sysctl -w net.ipv4.tcp_window_scaling=1",
)
TIMESTAMPS = Check(
    "network.tcp-timestamps",
    "Leave TCP timestamps on.",
    "Every host.",
    "They protect against sequence numbers that wrap, within seconds at 10 Gb/s, and make round trips measurable.",
    "unnoba-2020, 5.2.6; RFC 7323; Documentation/networking/ip-sysctl.rst",
    Severity.WARNING,
    _switched_on("net.ipv4.tcp_timestamps"),
    "sysctl -w net.ipv4.tcp_timestamps=1",
)
SACK = Check(
    "network.tcp-sack",
    "Leave selective acknowledgements on, unless a test here says otherwise.",
    "Every host.",
    "Without them Linux repairs one lost segment per round trip. The literature disagrees about fast links without "
    "loss; the kernel's default is on.",
    "unnoba-2020, 5.2.7; RFC 2018; Documentation/networking/ip-sysctl.rst",
    Severity.INFO,
    _switched_on("net.ipv4.tcp_sack"),
    "sysctl -w net.ipv4.tcp_sack=1",
)

CHECKS = (tcp_rmem, TCP_WMEM, CORE_RMEM_MAX, CORE_WMEM_MAX, WINDOW_SCALING, TIMESTAMPS, SACK)
