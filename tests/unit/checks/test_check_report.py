"""What plumbline check prints, gives to programs, and returns."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from plumbline.checks import report
from plumbline.checks.model import Finding, Fix, Keep, Severity
from plumbline.collectors import finding
from plumbline.commands.check import print_findings
from plumbline.core.console import make_console

UDEV = "/etc/udev/rules.d/90-storage-network.rules"


def found(check: str, subject: str, severity: Severity, fix: Fix | None = None) -> Finding:
    return Finding(check, subject, severity, fix is None, "453 of 4,078", "4,078", "A ring.", "unnoba-2020", fix)


RING = found(
    "network.ring-below-maximum", "ens2f0", Severity.WARNING,
    Fix("ethtool -G ens2f0 rx 4078", Keep(UDEV, "RULE one"), "Resets the link."),
)  # fmt: skip
RING2 = found(
    "network.ring-below-maximum", "ens2f1", Severity.WARNING,
    Fix("ethtool -G ens2f1 rx 4078", Keep(UDEV, "RULE two"), "Resets the link."),
)  # fmt: skip
IRQ = found("network.irqs-on-one-cpu", "ens2f0", Severity.INFO, Fix("systemctl enable --now irqbalance"))
HALF = found(
    "network.half-duplex", "eno1", Severity.CRITICAL, Fix("ethtool -s eno1 autoneg on", Keep(UDEV, "RULE one"))
)
MTU = found(
    "network.mtu-differs", "eno1", Severity.WARNING,
    Fix("ip link set dev eno1 mtu 9000", Keep("/etc/network/interfaces", "mtu 9000", "in the stanza of eno1")),
)  # fmt: skip
GOOD = [found("network.tcp-sack", "net.ipv4.tcp_sack", Severity.INFO)]
GOOD2 = [found("network.pause-off", name, Severity.INFO) for name in ("ens2f0", "ens2f1")]


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        (GOOD, 0),
        ([*GOOD, IRQ], 0),
        ([RING, *GOOD], 1),
        ([IRQ, RING, HALF], 2),
        ([found("network.half-duplex", "eno1", Severity.CRITICAL)], 0),
    ],
)
def test_exit_code(findings: list[Finding], code: int) -> None:
    assert report.exit_code(findings) == code


def test_what_keeps_the_fixes_stands_once_a_file() -> None:
    assert report.keeps([HALF, RING, RING2, IRQ, MTU, *GOOD]) == {
        (UDEV, ""): ["RULE one", "RULE two"],
        ("/etc/network/interfaces", "in the stanza of eno1"): ["mtu 9000"],
    }


def printed(*findings: Finding, every: bool = False) -> str:
    stream = io.StringIO()
    print_findings(make_console(stream), findings, every=every)
    return stream.getvalue()


def test_into_a_pipe() -> None:
    assert printed(HALF, RING, RING2, *GOOD, *GOOD2) == (
        "critical (1)\n"
        "Subject  Is            Should be  Fix now\n"
        "eno1     453 of 4,078  4,078      ethtool -s eno1 autoneg on\n"
        "\n"
        "warning (2)\n"
        "Subject  Is            Should be  Fix now\n"
        "ens2f0   453 of 4,078  4,078      ethtool -G ens2f0 rx 4078\n"
        "ens2f1   453 of 4,078  4,078      ethtool -G ens2f1 rx 4078\n"
        "\n"
        "network.half-duplex: A ring.\n"
        "  source: unnoba-2020\n"
        "network.ring-below-maximum: A ring.\n"
        "  source: unnoba-2020\n"
        "  take care: Resets the link.\n"
        "\n"
        "To stay, in /etc/udev/rules.d/90-storage-network.rules:\n"
        "  RULE one\n"
        "  RULE two\n"
        "\n"
        "met (3): network.pause-off ×2, network.tcp-sack\n"
    )


def test_the_place_in_a_file_is_said() -> None:
    assert "\nTo stay, in /etc/network/interfaces in the stanza of eno1:\n  mtu 9000\n" in printed(MTU)


def test_all_lists_what_is_met() -> None:
    assert printed(*GOOD, *GOOD2, every=True) == (
        "met (3)\n"
        "Subject            Check              Is\n"
        "net.ipv4.tcp_sack  network.tcp-sack   453 of 4,078\n"
        "ens2f0             network.pause-off  453 of 4,078\n"
        "ens2f1             network.pause-off  453 of 4,078\n"
    )


def test_on_a_terminal_nothing_of_a_command_is_lost() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None, highlight=False, markup=False)
    print_findings(console, [RING, *GOOD])
    words = stream.getvalue().split()
    assert {"ethtool", "-G", "ens2f0", "rx", "4078"} <= set(words)


def test_for_programs() -> None:
    data = json.loads(json.dumps(report.as_data([HALF, IRQ, *GOOD], host="stor1", window_s=2.0)))
    assert data["host"] == "stor1"
    assert data["window_seconds"] == 2.0
    assert data["summary"] == {"critical": 1, "warning": 0, "info": 1, "met": 1}
    assert data["findings"][0] == {
        "check": "network.half-duplex",
        "subject": "eno1",
        "severity": "critical",
        "met": False,
        "is": "453 of 4,078",
        "should": "4,078",
        "why": "A ring.",
        "source": "unnoba-2020",
        "fix": {
            "now": "ethtool -s eno1 autoneg on",
            "caution": "",
            "keep": {"file": UDEV, "content": "RULE one", "place": ""},
        },
    }
    assert data["findings"][1]["fix"]["keep"] is None
    assert "fix" not in data["findings"][2]


def test_as_metrics() -> None:
    samples = [(spec.name, labels, value) for spec, labels, value in finding.samples([RING, *GOOD])]
    assert samples == [
        ("plumbline_finding", ("network.ring-below-maximum", "ens2f0", "warning"), 1),
        ("plumbline_finding", ("network.tcp-sack", "net.ipv4.tcp_sack", "info"), 0),
    ]
