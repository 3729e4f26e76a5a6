"""Alerts about a host's ceph-exporter on the two pages that a real one of Ceph 20.2.4 served, six OSDs on one host.

It calls an OSD ``osd.0`` on its counters and ``ceph-osd.0`` in ``ceph_daemon_socket_up``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.ceph_pages import LOAD_S, Page, growing, only, scraped, served
from support.promtool import run_tests
from support.rulefiles import load
from support.rules import ALERTS, RULES

OSDS = tuple(f"osd.{number}" for number in range(6))
STEP_S = 30
READ = ("ceph_daemon_socket_up", "ceph_exporter_scrape_time", "ceph_osd_op_w_latency_count")
"""What the alerts here read of this page, as far as it moves between the two."""
GROUPS = ("plumbline-osd.rules", "plumbline-osd-host.rules", "plumbline-ceph-guard")
DAEMON = 'cluster="north",instance="stor01.example:10047",job="plumbline"'
TARGET = {"cluster": "north", "instance": "stor01:9926", "job": "ceph-exporter"}
SOCKET = 'ceph_daemon_socket_up{ceph_daemon="%s",hostname="stor01",' + ",".join(
    f'{label}="{value}"' for label, value in TARGET.items()
) + "}"  # fmt: skip


def exporter(minutes: int, changes: Mapping[str, str] | None = None) -> list[dict[str, str]]:
    """The page's series at the captured rates; ``changes``: series → other values."""
    pages: list[Page] = [
        scraped(only(served(20, f"exporter-metrics{suffix}"), READ), **TARGET) for suffix in ("", "-load")
    ]
    # labels of the page before those of the target, as the tests below name them
    for number, page in enumerate(pages):
        pages[number] = {
            (name, tuple(sorted(labels, key=lambda label: label[0] in TARGET))): value
            for (name, labels), value in page.items()
        }
    changes = changes or {}
    series = growing(*pages, LOAD_S, STEP_S, minutes * 60 // STEP_S)
    assert changes.keys() <= {each["series"] for each in series}
    return [{**each, "values": changes.get(each["series"], each["values"])} for each in series]


def sockets(minutes: int, osds: tuple[str, ...] = OSDS) -> list[dict[str, str]]:
    """Plumbline's daemon on the same host: the OSDs' sockets answer, and these OSDs count 20 operations a second."""
    samples = minutes * 60 // STEP_S
    found = []
    for osd in osds:
        found += [
            {"series": f'plumbline_osd_socket_up{{ceph_daemon="{osd}",{DAEMON}}}', "values": f"1x{samples}"},
            {
                "series": f'plumbline_osd_latency_seconds_count{{ceph_daemon="{osd}",operation="write",{DAEMON}}}',
                "values": f"0+{20 * STEP_S}x{samples}",
            },
            {
                "series": f'plumbline_disk_use_info{{device="sd{osd[-1]}",use="osd",user="{osd}",{DAEMON}}}',
                "values": f"1x{samples}",
            },
        ]
    return found


def stopped(series: list[dict[str, str]], after_min: int, minutes: int) -> list[dict[str, str]]:
    """Every value stands from this minute on, as of an exporter that waits for a daemon and serves its last page."""
    before, after = (60 * part // STEP_S for part in (after_min, minutes - after_min))
    found = []
    for each in series:
        start, _, step = each["values"].partition("x")[0].rpartition("+")
        last = float(start) + float(step) * before
        found.append({**each, "values": f"{start}+{step}x{before} {last!r}x{after}"})
    return found


def firing(at_min: int, alert: str, *labels: str) -> dict[str, Any]:
    """These series of the alert fire and no other; each by its labels but for the alert's own."""
    kept = "sum by (ceph_daemon, hostname, instance, layer) "
    return {
        "expr": f'{kept}(ALERTS{{alertname="{alert}",alertstate="firing"}})',
        "eval_time": f"{at_min}m",
        "exp_samples": [{"labels": f"{{{each}}}", "value": 1} for each in labels],
    }


def proven(folder: Path, series: list[dict[str, str]], cases: list[dict[str, Any]]) -> str:
    """What promtool has against it."""
    groups = []
    for file in (RULES, ALERTS):
        rules = load(file)
        groups += [each for each in rules["groups"] if each["name"] in GROUPS]
    assert len(groups) == len(GROUPS)
    (folder / "rules.yaml").write_text(json.dumps({"groups": groups}), "utf-8")
    test = {"interval": f"{STEP_S}s", "input_series": series, "promql_expr_test": cases}
    content = {
        "rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test],
        "group_eval_order": [each["name"] for each in groups],
    }  # fmt: skip
    (folder / "test.yaml").write_text(json.dumps(content), "utf-8")
    return run_tests(folder / "test.yaml")


def test_a_page_that_stands_still_is_stale_and_the_exporter_is_named(tmp_path: Path) -> None:
    """One alert for the host, and the manager, whose counters these are not, is not accused."""
    series = stopped(exporter(40), 10, 40) + sockets(40)
    host = 'instance="stor01.example:10047", layer="self"'
    cases = [
        firing(10, "PlumblineCephExporterStale"),
        firing(40, "PlumblineCephExporterStale", host),
        firing(40, "PlumblineCephManagerStale"),
        firing(40, "PlumblineCephExporterDown"),
        {
            "expr": 'sum by (ceph_daemon) (plumbline:osd_operations:rate5m{operation="write"}) == 0',
            "eval_time": "30m",
            "exp_samples": [{"labels": f'{{ceph_daemon="{osd}"}}', "value": 0} for osd in OSDS],
        },
    ]
    assert not proven(tmp_path, series, cases)


def test_a_page_that_moves_is_not_stale(tmp_path: Path) -> None:
    cases = [firing(at, "PlumblineCephExporterStale") for at in (10, 25, 40)]
    assert not proven(tmp_path, exporter(40) + sockets(40), cases)
    # the comparison itself
    assert "exp:" in proven(tmp_path, stopped(exporter(40), 10, 40) + sockets(40), cases)


def test_daemons_that_do_not_answer_are_named_as_ceph_names_them(tmp_path: Path) -> None:
    """``ceph-osd.1`` is osd.1, with its host. Sockets that killed clients left behind are nobody's."""
    down = {
        SOCKET % name: "1x9 0x71"
        for name in (
            "ceph-osd.1", "ceph-mon.stor01", "ceph-mds.a", "ceph-client.admin.10556.94651850975096",
            "ceph-client.rgw.a.9011.94379305531672",
        )
    }  # fmt: skip
    uses = [each for each in sockets(40) if each["series"].startswith("plumbline_disk_use_info")]
    osd = 'ceph_daemon="osd.1", hostname="stor01", instance="stor01.example:10047", layer="osd"'
    rest = [f'ceph_daemon="{name}", hostname="stor01", layer="rados"' for name in ("mon.stor01", "mds.a")]
    cases = [firing(4, "PlumblineCephExporterDown"), firing(30, "PlumblineCephExporterDown", osd, *rest)]
    assert not proven(tmp_path, exporter(40, down) + uses, cases)


def test_an_osd_that_plumbline_asks_itself_is_left_to_plumblines_own_alert(tmp_path: Path) -> None:
    down = {SOCKET % name: "0x80" for name in ("ceph-osd.1", "ceph-osd.2")}
    asked = tuple(osd for osd in OSDS if osd != "osd.2")
    osd = 'ceph_daemon="osd.2", hostname="stor01", layer="osd"'
    cases = [firing(30, "PlumblineCephExporterDown", osd)]
    assert not proven(tmp_path, exporter(40, down) + sockets(40, asked), cases)


def test_sockets_that_answer_fire_nothing(tmp_path: Path) -> None:
    assert not proven(tmp_path, exporter(40), [firing(at, "PlumblineCephExporterDown") for at in (5, 20, 40)])
