"""Lustre's imports, health and LNet's counters."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plumbline.collectors import fileservers as metrics
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.lustre import (
    LnetStats,
    LustreImport,
    LustreReading,
    parse_health,
    parse_import,
    parse_lnet,
    read_lustre,
)

FIXTURE = Path(__file__).parents[3] / "fixtures" / "lustre"
CLIENT = "-ffff88105db50000"
OST = f"scratch-OST0001-osc{CLIENT}"


def test_a_client_with_every_state_of_an_import() -> None:
    reading = read_lustre(Roots.under(FIXTURE))
    assert [(each.target, each.state, each.connected, each.attempts, each.timeouts) for each in reading.imports] == [
        ("MGS", "FULL", True, 1, None),
        ("scratch-MDT0000", "IDLE", True, 4, 1),
        ("scratch-OST0000", "FULL", True, 1, 0),
        ("scratch-OST0001", "DISCONN", False, 23, 21),
        ("scratch-OST0002", "DISCONN", None, 2, 0),
    ]
    assert [each.name for each in reading.imports][-1] == f"scratch-OST0002-osc{CLIENT}"
    assert reading.healthy is True
    assert reading.lnet == LnetStats(7, 101719323, 101719291, 2, 21201322992, 53029565353720)


def test_the_places_of_other_releases(tmp_path: Path) -> None:
    """All in procfs, as in 2.8, and the imports in debugfs, as in 2.17: the same figures."""
    host = shutil.copytree(FIXTURE, tmp_path / "host")
    expected = read_lustre(Roots.under(host))
    shutil.move(host / "proc/fs/lustre/osc", host / "sys/kernel/debug/lustre/osc")
    shutil.move(host / "proc/fs/lustre/mdc", host / "sys/kernel/debug/lustre/mdc")
    assert read_lustre(Roots.under(host)) == expected
    shutil.copytree(host / "sys/kernel/debug/lustre", host / "proc/fs/lustre", dirs_exist_ok=True)
    shutil.move(host / "sys/fs/lustre/health_check", host / "proc/fs/lustre/health_check")
    shutil.move(host / "sys/kernel/debug/lnet", host / "proc/sys/lnet")
    shutil.rmtree(host / "sys/kernel")
    assert read_lustre(Roots.under(host)) == expected


def test_what_cannot_be_read_is_skipped(tmp_path: Path) -> None:
    host = shutil.copytree(FIXTURE, tmp_path / "host")
    (host / "proc/fs/lustre/osc" / OST / "import").unlink()
    (host / f"proc/fs/lustre/mdc/scratch-MDT0000-mdc{CLIENT}/import").write_text("import:\n    name: x\n")
    shutil.rmtree(host / "sys/kernel/debug")
    reading = read_lustre(Roots.under(host))
    assert reading.skipped == ((f"scratch-MDT0000-mdc{CLIENT}", "malformed"), (OST, "unreadable"))
    assert [each.target for each in reading.imports] == ["scratch-OST0000", "scratch-OST0002"]
    assert reading.lnet is None


def test_a_host_without_lustre(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no Lustre here"):
        read_lustre(Roots.under(tmp_path))


def test_the_forms_of_newer_releases() -> None:
    """2.16 quotes addresses and counts each of them; 2.17 has other words for the flags."""
    text = """import:
    name: scratch-OST0000-osc-ffff9c
    target: scratch-OST0000_UUID
    state: CONNECTING
    import_flags: [ no_recov, IMPF_DEACTIVE, IMPF_PINGABLE ]
    connection:
       failover_nids: [ "192.0.2.5@tcp" ]
       nids_stats:
          "192.0.2.5@tcp": { connects: 9, replied: 4, uptodate: yes, sec_ago: 3 }
       current_connection: "192.0.2.5@tcp"
       connection_attempts: 9
"""
    assert parse_import(text, source="import") == LustreImport(
        "scratch-OST0000-osc-ffff9c", "scratch-OST0000", "CONNECTING", deactivated=True, attempts=9, timeouts=None
    )


@pytest.mark.parametrize(
    ("text", "healthy"),
    [
        ("healthy", True),
        ("NOT HEALTHY", False),
        ("LBUG", False),
        ("device scratch-OST0000 reported unhealthy NOT HEALTHY", False),
    ],
)
def test_health(text: str, healthy: bool) -> None:
    assert parse_health(text, source="health_check") is healthy


def test_what_the_kernel_does_not_write_is_refused() -> None:
    with pytest.raises(ParseError, match="health_check: not a state of health: 'unhealthy'"):
        parse_health("unhealthy", source="health_check")
    with pytest.raises(ParseError, match="stats: not eleven numbers: '1 2 3'"):
        parse_lnet("1 2 3", source="stats")
    with pytest.raises(ParseError, match="import: no 'state' in"):
        parse_import("import:\n    name: x\n    target: y\n", source="import")


def test_samples() -> None:
    lost = LustreImport("i", "t", "EVICTED", deactivated=False, attempts=3, timeouts=None)
    unused = LustreImport("j", "u", "DISCONN", deactivated=True, attempts=None, timeouts=5)
    assert list(metrics.lustre_samples(LustreReading((lost, unused), False, LnetStats(1, 2, 3, 4, 5, 6)))) == [
        (metrics.INFO, ("i", "t", "EVICTED"), 1),
        (metrics.UP, ("i", "t"), 0),
        (metrics.ATTEMPTS, ("i", "t"), 3),
        (metrics.INFO, ("j", "u", "DISCONN"), 1),
        (metrics.TIMEOUTS, ("j", "u"), 5),
        (metrics.HEALTHY, (), 0),
        (metrics.LNET_ERRORS, (), 1),
        (metrics.LNET_DROPS, (), 4),
        (metrics.LNET_MESSAGES, ("receive",), 3),
        (metrics.LNET_BYTES, ("receive",), 6),
        (metrics.LNET_MESSAGES, ("transmit",), 2),
        (metrics.LNET_BYTES, ("transmit",), 5),
    ]
    assert list(metrics.lustre_samples(LustreReading(()))) == []
