"""Writes promtool tests of the canary whose series are too regular to type (``FILES``).

``python tests/rules/write_canary.py``; a test compares what is committed with what this writes. Every host scrapes 150
operations of one canary each 30 s. The baseline's median is 0.2 ms, its tolerance 1.25, its bound 0.5 ms; without
history the tolerance is what the hour allows, so a canary is beyond from 0.2 ms x 1.25 x 1.3 = 0.325 ms on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
EDGES = (0.0001, 0.0002, 0.00032, 0.00033, 0.0004, 0.0005, 0.0008, 0.0016, 0.002, 0.01)
BOUND = 0.0005
OPS = 150
PLACE = 'device_class="nvme"%(cluster)s,instance="%(host)s.example:10047",job="plumbline",layer="disk",operation="read"'
WORKLOAD = 'workload="randread-4k-qd1-j1"'
GROUPS = (
    "plumbline-baseline.rules",
    "plumbline-canary.rules",
    "plumbline-probe.rules",
    "plumbline-degradation.rules",
    "plumbline-osd-host.rules",
    "plumbline-judgement.rules",
    "plumbline-canary",
)


@dataclass(frozen=True)
class Phase:
    """``minutes`` of operations: half of them take ``median`` (an edge), ``slow`` of 150 lie above the bound."""

    minutes: float
    median: float = 0.0002
    slow: int = 0
    ops: int = OPS
    errors: int = 0


@dataclass(frozen=True)
class Host:
    """One canary. After the last phase it is gone."""

    phases: Sequence[Phase]
    name: str = "stor01"
    cluster: str = "north"
    judged: bool = True
    """Whether there is a baseline."""

    def series(self) -> list[dict[str, str]]:
        cluster = f',cluster="{self.cluster}"' if self.cluster else ""
        place = PLACE % {"cluster": cluster, "host": self.name}
        canary = f'{place},probe="canary",{WORKLOAD}'
        entry = f'{place},{WORKLOAD},config_hash="f8ebba40cbad",source="measured",profile="baseline.yaml"'
        steps = round(sum(phase.minutes for phase in self.phases) * 2)
        name = "plumbline_canary_latency_seconds"
        out = [
            _row(f'{name}_bucket{{{canary},le="{edge:g}"}}', [self._upto(phase, edge) for phase in self._scrapes()])
            for edge in EDGES
        ]
        every = [phase.ops for phase in self._scrapes()]
        out += [
            _row(f'{name}_bucket{{{canary},le="+Inf"}}', every),
            _row(f"{name}_count{{{canary}}}", every),
            _row(f"{name}_sum{{{canary}}}", [phase.ops * phase.median for phase in self._scrapes()]),
        ]
        if any(phase.errors for phase in self.phases):
            label = f'instance="{self.name}.example:10047",job="plumbline",operation="read",probe="canary",error="EIO"'
            label += cluster
            out.append(_row(f"plumbline_canary_errors_total{{{label}}}", [phase.errors for phase in self._scrapes()]))
        above = [phase.ops - self._upto(phase, BOUND) for phase in self._scrapes()]
        out.append(_row(f'plumbline_canary_slow_operations_total{{{canary},bound="{BOUND:g}"}}', above))
        out += [
            {"series": series, "values": f"{value}x{steps}"}
            for series, value in (
                (f"plumbline_baseline_applicable{{{entry}}}", "1"),
                (f'plumbline_baseline_latency_seconds{{{entry},statistic="p50"}}', "0.0002"),
                (f"plumbline_baseline_tolerance_ratio{{{entry}}}", "1.25"),
                (f'plumbline_canary_workload_info{{{canary},config_hash="f8ebba40cbad"}}', "1"),
            )
            if self.judged or not series.startswith("plumbline_baseline_")
        ]
        return out

    def _scrapes(self) -> list[Phase]:
        return [phase for phase in self.phases for _ in range(round(phase.minutes * 2))]

    @staticmethod
    def _upto(phase: Phase, edge: float) -> int:
        if edge < phase.median:
            return 0
        if edge == phase.median:
            return phase.ops // 2
        return phase.ops - (phase.slow if edge <= BOUND else 0) if edge < EDGES[-1] else phase.ops


def _row(series: str, increments: Sequence[float]) -> dict[str, str]:
    """Counters in promtool's notation, runs of one increment together."""
    parts, total, at = [], 0.0, 0
    while at < len(increments):
        run = at
        while run < len(increments) and increments[run] == increments[at]:
            run += 1
        parts.append(f"{total:.10g}+{increments[at]:.10g}x{run - at - 1}")
        total += increments[at] * (run - at)
        at = run
    return {"series": series, "values": " ".join(parts)}


@dataclass
class Case:
    name: str
    hosts: Sequence[Host]
    quiet: Sequence[tuple[str, str]] = ()
    """(moment, alert)"""
    firing: Sequence[tuple[str, str, dict[str, str], dict[str, str]]] = ()
    """(moment, alert, labels beside the usual ones, annotations)"""
    samples: Sequence[tuple[str, str, float]] = ()
    """(moment, expression without labels, value)"""
    recovering: str = ""
    more: Sequence[dict[str, str]] = field(default_factory=list)

    def test(self) -> dict[str, Any]:
        series = [row for host in self.hosts for row in host.series()] + list(self.more)
        if self.recovering:
            label = 'cluster="north",instance="mgr:9283",job="ceph",pool_id="1"'
            series.append({"series": f"ceph_pg_recovering{{{label}}}", "values": self.recovering})
        checks: list[dict[str, Any]] = [
            {"eval_time": moment, "alertname": alert, "exp_alerts": []} for moment, alert in self.quiet
        ]
        together: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for moment, alert, labels, texts in self.firing:
            together.setdefault((moment, alert), []).append(_expected(alert, labels, texts))
        checks += [
            {"eval_time": moment, "alertname": alert, "exp_alerts": alerts}
            for (moment, alert), alerts in together.items()
        ]
        asked = [
            {"expr": expr, "eval_time": moment, "exp_samples": [{"labels": "{}", "value": value}]}
            for moment, expr, value in self.samples
        ]
        tests = {"alert_rule_test": checks, "promql_expr_test": asked}
        return {"name": self.name, "interval": "30s", "input_series": series} | {
            kind: these for kind, these in tests.items() if these
        }


def _expected(alert: str, labels: dict[str, str], texts: dict[str, str]) -> dict[str, Any]:
    usual = {
        "cluster": "north",
        "device_class": "nvme",
        "layer": "disk",
        "operation": "read",
        "signal": "latency",
        "workload": "randread-4k-qd1-j1",
    }
    if alert != "PlumblineFleetLatencyHigh":
        usual |= {"instance": "stor01.example:10047", "probe": "canary"}
    merged = {name: value for name, value in (usual | labels).items() if value}
    return {
        "exp_labels": dict(sorted(merged.items())),
        "exp_annotations": texts,
    }


HIGH, FLEET, EXTREME, BURN = (
    "PlumblineCanaryLatencyHigh",
    "PlumblineFleetLatencyHigh",
    "PlumblineCanaryLatencyExtreme",
    "PlumblineCanaryBudgetBurn",
)
SUBJECT = "canary, read (randread-4k-qd1-j1) on stor01.example:10047, device class nvme"
BASELINE = "the measured baseline baseline.yaml"


def high(moment: str, ratio: str, severity: str = "critical", **labels: str) -> tuple[Any, ...]:
    agrees = (
        "it has exceeded what this hour allows for 7m at a steady level, or for 10m at any level"
        if severity == "critical"
        else "its longer windows agree"
    )
    return (
        moment,
        HIGH,
        {"severity": severity, "source": "measured", "profile": "baseline.yaml", "statistic": "p50", **labels},
        {
            "summary": "A canary is slower than its baseline.",
            "description": f"Canary {SUBJECT}: the p50 latency is {ratio} times {BASELINE}, and {agrees}.",
        },
    )


def extreme(moment: str, ratio: str) -> tuple[Any, ...]:
    return (
        moment,
        EXTREME,
        {"severity": "critical", "source": "measured", "profile": "baseline.yaml", "statistic": "p50"},
        {
            "summary": "A canary is many times slower than its baseline.",
            "description": f"Canary {SUBJECT}: the p50 latency of the last 90s is {ratio} times {BASELINE}.",
        },
    )


def fleet(moment: str, share: str) -> tuple[Any, ...]:
    return (
        moment,
        FLEET,
        {"severity": "critical"},
        {
            "summary": "The canaries of most hosts are slower than their baselines.",
            "description": f"{share} of the hosts of cluster north find read (randread-4k-qd1-j1, device class nvme)"
            " more than 1.3 times slower than this hour allows, for 4m: the whole layer is slow, not one device.",
        },
    )


def burn(moment: str, share: str, severity: str) -> tuple[Any, ...]:
    window = {"critical": "10m", "warning": "6h"}[severity]
    return (
        moment,
        BURN,
        {"severity": severity, "window": window},
        {
            "summary": "Too many canary operations are slower than the baseline allows, or fail.",
            "description": f"{share} of the operations of canary {SUBJECT}, were slower than the limit set by the"
            f" baseline or failed, over {window}; the budget is 1%.",
        },
    )


CALM = Phase(15)
DOUBLE = 0.0004

LATENCY = (
    Case(
        "a lasting doubling: a page in eight minutes; after it, kept for ten",
        [Host([CALM, Phase(15, DOUBLE), Phase(20)])],
        quiet=[("21m", HIGH), ("44m", HIGH), ("30m", EXTREME), ("30m", FLEET)],
        firing=[high("23m", "2.0"), high("37m", "1.8")],
    ),
    Case(
        "just above and just below what may be",
        [Host([CALM, Phase(25, 0.00033)]), Host([CALM, Phase(25, 0.00032)], name="stor02")],
        quiet=[("21m", HIGH)],
        firing=[high("39m", "1.6")],
    ),
    Case(
        "transient: a hiccup of four minutes at eight times the latency",
        [Host([CALM, Phase(4, 0.0016), Phase(15)])],
        quiet=[(f"{minute}m", alert) for minute in (17, 19, 21, 25) for alert in (HIGH, EXTREME, BURN)],
    ),
    Case(
        "transient: two hiccups of four minutes that follow each other at different heights",
        [Host([CALM, Phase(4, DOUBLE), Phase(4, 0.0008), Phase(15)])],
        quiet=[(f"{minute}m", HIGH) for minute in (20, 22, 23, 24, 26)],
    ),
    Case(
        "wavering, and beyond for more than ten minutes: a page all the same",
        [Host([CALM, *[Phase(2, DOUBLE), Phase(2, 0.0008)] * 4])],
        quiet=[("24m", HIGH)],
        firing=[high("29m", "2.0")],
    ),
    Case(
        "no data: the canary stops while it is slow",
        [Host([CALM, Phase(4, DOUBLE)])],
        quiet=[("17m", HIGH), ("24m", HIGH), ("30m", HIGH)],
    ),
    Case(
        "no baseline: slow by nobody's measure",
        [Host([CALM, Phase(12, 0.01)], judged=False)],
        quiet=[("25m", HIGH), ("25m", EXTREME)],
    ),
    Case(
        "too few operations to judge: one a minute, all slow",
        [Host([Phase(40, DOUBLE, ops=1)])],
        quiet=[("39m", HIGH), ("39m", BURN), ("39m", EXTREME)],
    ),
    Case(
        "recovery is slow by nature: no page while it lasts, a catastrophe all the same",
        [Host([CALM, Phase(15, DOUBLE), Phase(5, 0.01)])],
        recovering="0x20 1x80",
        quiet=[("24m", HIGH), ("29m", HIGH)],
        firing=[extreme("34m", "50.0")],
    ),
    Case(
        "no cluster label, no metrics of Ceph: the same judgement",
        [Host([CALM, Phase(15, DOUBLE)], cluster="")],
        quiet=[("21m", HIGH)],
        firing=[high("25m", "2.0", cluster="")],
    ),
    Case(
        "throttled for a minute",
        [Host([CALM, Phase(1, 0.01), Phase(5)])],
        quiet=[("16m", EXTREME), ("17m", EXTREME), ("18m", EXTREME)],
    ),
    Case(
        "two of three hosts: the layer, within six minutes; then the third alone",
        [
            Host([CALM, Phase(12, DOUBLE), Phase(15)], name="stor02"),
            Host([CALM, Phase(12, DOUBLE), Phase(15)], name="stor03"),
            Host([CALM, Phase(27)], name="stor04"),
        ],
        quiet=[("18m", FLEET), ("41m", FLEET)],
        firing=[fleet("21m", "66.67%"), fleet("26m", "66.67%")],
    ),
    Case(
        "one of three hosts: a device",
        [Host([CALM, Phase(12, DOUBLE)]), Host([Phase(27)], name="stor02"), Host([Phase(27)], name="stor03")],
        quiet=[("21m", FLEET), ("26m", FLEET)],
        firing=[high("25m", "2.0")],
    ),
    Case(
        "two hosts: too few to speak of a layer",
        [Host([CALM, Phase(12, DOUBLE)], name=name) for name in ("stor02", "stor03")],
        quiet=[("21m", FLEET), ("26m", FLEET)],
    ),
    Case(
        "a blip of the network: all hosts for three and a half minutes",
        [Host([CALM, Phase(3.5, 0.0016), Phase(10)], name=name) for name in ("stor01", "stor02", "stor03")],
        quiet=[(moment, alert) for moment in ("18m", "19m", "20m", "22m") for alert in (FLEET, HIGH)],
    ),
    Case(
        "all hosts, while the cluster recovers",
        [Host([CALM, Phase(12, DOUBLE)], name=name) for name in ("stor01", "stor02", "stor03")],
        recovering="1x60",
        quiet=[("21m", FLEET), ("26m", FLEET)],
    ),
    Case(
        "a quarter slower for two and a half hours: a ticket, no page",
        [Host([CALM, Phase(150, 0.00032)])],
        quiet=[("70m", HIGH)],
        firing=[high("160m", "1.6", "warning")],
    ),
    Case(
        "a third slower than the hour allows at most: the ticket joins the page",
        [Host([CALM, Phase(150, 0.00033)])],
        firing=[high("160m", "1.6"), high("160m", "1.6", "warning")],
    ),
)

TAIL = (
    Case(
        "a tail of 15 %: a page in twelve minutes",
        [Host([CALM, Phase(13, slow=23), Phase(20)])],
        quiet=[("25m", BURN), ("45m", BURN), ("27m", HIGH)],
        firing=[burn("27m", "15.33%", "critical")],
    ),
    Case(
        "a tail of 4 %: a ticket within the hour, no page",
        [Host([Phase(70), Phase(60, slow=6)])],
        quiet=[("100m", BURN)],
        firing=[burn("110m", "4%", "warning")],
    ),
    Case("just below: a tail of 2 %", [Host([Phase(130, slow=3)])], quiet=[("125m", BURN)]),
    Case(
        "transient: everything slow for eight minutes",
        [Host([Phase(60), Phase(8, 0.0016, slow=150), Phase(20)])],
        quiet=[("67m", BURN), ("69m", BURN), ("72m", BURN)],
    ),
    Case(
        "operations that fail count as slow, and no recovery excuses them",
        [Host([CALM, Phase(13, ops=135, errors=15), Phase(20, errors=0)])],
        recovering="1x100",
        quiet=[("25m", BURN), ("45m", BURN)],
        firing=[burn("27m", "10%", "critical")],
    ),
    Case(
        "slow ones are excused by a recovery",
        [Host([CALM, Phase(13, slow=23)])],
        recovering="1x100",
        quiet=[("27m", BURN)],
    ),
    Case("no data: the canary is gone", [Host([CALM, Phase(5, slow=23)])], quiet=[("30m", BURN), ("90m", BURN)]),
)


def excess(host: str) -> str:
    return f'sum(round(plumbline:canary_excess:ratio{{instance="{host}.example:10047"}}, 0.01))'


def expected(host: str) -> str:
    return f'sum(plumbline:canary_expected:ratio{{instance="{host}.example:10047"}})'


JUDGED = (
    Case(
        "without history the hour allows the baseline's whole tolerance",
        [
            Host([Phase(30)], name="stor01"),
            Host([CALM, Phase(15, DOUBLE)], name="stor02"),
            Host([CALM, Phase(15, DOUBLE, ops=135, errors=15)], name="stor03"),
        ],
        samples=[
            ("25m", expected("stor01"), 1.25),
            ("25m", excess("stor01"), 0.8),
            ("25m", excess("stor02"), 1.6),
            ("25m", "round(sum(plumbline:canary_failed_operations:ratio), 0.001)", 0.1),
            ("25m", "round(sum(plumbline:fleet_beyond:ratio), 0.001)", 0.667),
        ],
    ),
    Case(
        "the same hour of yesterday: as accepted, beyond the tolerance, quieter than the least that counts",
        [
            Host([Phase(24 * 60 + 40), Phase(20, DOUBLE)], name="stor01"),
            Host([Phase(180, 0.00032), Phase(21 * 60 + 40), Phase(20, DOUBLE)], name="stor02"),
            Host([Phase(180, 0.0001), Phase(21 * 60 + 40), Phase(20, DOUBLE)], name="stor03"),
        ],
        samples=[
            ("80m", "round(sum(plumbline:canary_hour:ratio), 0.01)", 3.1),
            ("1490m", expected("stor01"), 1.0),
            ("1490m", excess("stor01"), 2.0),
            ("1490m", expected("stor02"), 1.25),
            ("1490m", excess("stor02"), 1.6),
            ("1490m", expected("stor03"), 0.9),
            ("1490m", excess("stor03"), 2.22),
        ],
    ),
)


def render(cases: Sequence[Case], every: str) -> str:
    """``every``: between evaluations; a day's history is judged more seldom than a page."""
    document = {
        "rule_files": ["../../alerts/out/plumbline-rules.yaml", "../../alerts/out/plumbline-alerts.yaml"],
        "evaluation_interval": every,
        "group_eval_order": list(GROUPS),
        "tests": [case.test() for case in cases],
    }
    head = "# Written by tests/rules/write_canary.py; edit that, not this file.\n"
    return head + yaml.safe_dump(document, sort_keys=False, width=2**16)


FILES = {
    "canary_alerts.yaml": (LATENCY, "30s"),
    "canary_burn.yaml": (TAIL, "30s"),
    "canary_season.yaml": (JUDGED, "2m"),
}

if __name__ == "__main__":
    for file, how in FILES.items():
        (FOLDER / file).write_text(render(*how), "utf-8")
