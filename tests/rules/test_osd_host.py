"""``lib/osd.libsonnet``: an alert about an OSD carries the instance of its host, not of the manager that told of it."""

import json

import pytest
import rjsonnet

from support.promtool import run_tests
from support.rules import ROOT, RULES

MIXIN, LIB = (json.dumps(str(ROOT / name)) for name in ("mixin.libsonnet", "alerts/lib/osd.libsonnet"))
MANAGERS = ("mgr-a:9283", "mgr-b:9283")


def on_host(config=f"(import {MIXIN})._config"):
    """An expression over two producers and any manager, as an alert would write it."""
    snippet = f"(import {LIB}).onHost({config}, 'ceph_osd_commit_latency_ms > 50', ['device_class'])"
    return json.loads(rjsonnet.evaluate_snippet("on_host", snippet))


def series(metric, values, /, **labels):
    return {"series": f"{metric}{{{','.join(f'{k}={json.dumps(v)}' for k, v in labels.items())}}}", "values": values}


def slow(osd, value, manager=MANAGERS[0], **labels):
    return series(
        "ceph_osd_commit_latency_ms", f"{value}x20", ceph_daemon=osd, instance=manager, device_class="ssd", **labels
    )


def uses(osd, instance, values="1x20", **labels):
    return series(
        "plumbline_disk_use_info",
        values,
        device="sdb",
        use="osd",
        user=osd,
        instance=instance,
        job="plumbline",
        **labels,
    )


def promtool(tmp_path, given, expected, expression=None):
    """What else there is than the alert with exactly these label sets after five minutes."""
    rules = {"groups": [{"name": "slow", "rules": [{"alert": "OsdSlow", "expr": expression or on_host()}]}]}
    (tmp_path / "alert.yaml").write_text(json.dumps(rules))
    test = {
        "rule_files": [str(RULES), "alert.yaml"],
        "evaluation_interval": "30s",
        "group_eval_order": ["plumbline-osd-host.rules", "slow"],
        "tests": [
            {
                "interval": "30s",
                "input_series": given,
                "alert_rule_test": [
                    {
                        "eval_time": "5m",
                        "alertname": "OsdSlow",
                        "exp_alerts": [{"exp_labels": each} for each in expected],
                    }
                ],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(json.dumps(test))
    return run_tests(tmp_path / "test.yaml")


HERE = {"instance": "stor01.example:10047", "cluster": "north"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            [uses("osd.3", **HERE), slow("osd.3", 80, cluster="north"), slow("osd.4", 20, cluster="north")],
            [{"ceph_daemon": "osd.3", "device_class": "ssd", **HERE}],
            id="its host's",
        ),
        pytest.param(
            [uses("osd.3", **HERE), *(slow("osd.3", 80, manager, cluster="north") for manager in MANAGERS)],
            [{"ceph_daemon": "osd.3", "device_class": "ssd", **HERE}],
            id="once, while the manager moves",
        ),
        pytest.param(
            [uses("osd.3", "stor01.example:10047", "1x4 stale", cluster="north"), slow("osd.3", 80, cluster="north")],
            [{"ceph_daemon": "osd.3", "device_class": "ssd", **HERE}],
            id="while the host is down",
        ),
        pytest.param(
            [slow("osd.9", 80, cluster="north")],
            [{"ceph_daemon": "osd.9", "device_class": "ssd", "cluster": "north"}],
            id="nobody knows the host: still an alert",
        ),
        pytest.param(
            [uses("osd.3", "stor01.example:10047"), slow("osd.3", 80)],
            [{"ceph_daemon": "osd.3", "device_class": "ssd", "instance": "stor01.example:10047"}],
            id="no cluster label",
        ),
        pytest.param(
            [
                uses("osd.3", "stor07.example:10047", cluster="south"),
                uses("osd.3", **HERE),
                slow("osd.3", 80, cluster="south"),
            ],
            [{"ceph_daemon": "osd.3", "device_class": "ssd", "cluster": "south", "instance": "stor07.example:10047"}],
            id="of two clusters its own",
        ),
        pytest.param([uses("osd.3", **HERE)], [], id="no data"),
    ],
)  # fmt: skip
def test_an_alert_about_an_osd_is_on_its_host(tmp_path, given, expected):
    assert promtool(tmp_path, given, expected) == ""


def test_a_wrong_host_would_be_noticed(tmp_path):
    given = [uses("osd.3", **HERE), slow("osd.3", 80, cluster="north")]
    wrong = [{"ceph_daemon": "osd.3", "device_class": "ssd", **HERE, "instance": "mgr-a:9283"}]
    assert "mgr-a:9283" in promtool(tmp_path, given, wrong)


def test_a_site_whose_nodes_have_no_cluster_renders(tmp_path):
    expression = on_host(f"((import {MIXIN}) + {{ _config+:: {{ instanceLabels: ['instance'] }} }})._config")
    given = [slow("osd.9", 80)]
    assert promtool(tmp_path, given, [{"ceph_daemon": "osd.9", "device_class": "ssd"}], expression) == ""
