"""``plumbline ceph top`` and the alerts mean the same by "out of line"."""

from __future__ import annotations

import json
from pathlib import Path

import rjsonnet

from plumbline.ceph_top.verdict import Thresholds

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "alerts" / "config.libsonnet"


def test_thresholds_are_those_of_the_alerts() -> None:
    snippet = "(import %s)._config.osd"
    of_alerts = json.loads(rjsonnet.evaluate_snippet("thresholds", snippet % json.dumps(str(CONFIG))))
    ours = Thresholds()
    assert {
        "minimumOsds": ours.minimum_osds,
        "ratio": ours.ratio,
        "agreeRatio": ours.agree_ratio,
        "share": ours.share,
        "queueShare": ours.queue_share,
    }.items() <= of_alerts.items()
    assert of_alerts["heartbeat"] == {
        "floorSeconds": ours.heartbeat_floor_s,
        "spread": ours.heartbeat_spread,
        "share": ours.heartbeat_share,
    }
    assert of_alerts["connection"] == {
        "floorSeconds": ours.connection_floor_s,
        "spread": ours.connection_spread,
        "share": ours.connection_share,
        "lossShare": ours.connection_loss_share,
        "lossPerSecond": ours.connection_loss_per_s,
        "timeoutSeconds": ours.connection_timeout_s,
    }
