"""Writes promtool tests of the canary whose series are too regular to type (``FILES``).

``python tests/rules/write_canary.py``; a test compares what is committed with what this writes. Every host scrapes 150
operations of one canary each 30 s. The baseline's median is 0.2 ms, its tolerance 1.25, its bound 0.5 ms; without
history the tolerance is what the hour allows, so the limit is 0.2 ms x 1.25 x 1.3 = 0.325 ms.
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
PLACE = (
    'device_class="nvme"%(cluster)s,instance="%(host)s.example:10047",'
    'job="plumbline",layer="%(layer)s",operation="read"'
)
WORKLOAD = 'workload="randread-4k-qd1-j1"'
GROUPS = (
    "plumbline-baseline.rules",
    "plumbline-canary.rules",
    "plumbline-probe.rules",
    "plumbline-degradation.rules",
    "plumbline-osd-host.rules",
    "plumbline-season.rules",
    "plumbline-expected.rules",
    "plumbline-judgement.rules",
    "plumbline-load.rules",
    "plumbline-blame.rules",
    "plumbline-canary",
    "plumbline-vantage",
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
    layer: str = "disk"

    def series(self) -> list[dict[str, str]]:
        cluster = f',cluster="{self.cluster}"' if self.cluster else ""
        place = PLACE % {"cluster": cluster, "host": self.name, "layer": self.layer}
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
    interval: str = "30s"

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
        return {"name": self.name, "interval": self.interval, "input_series": series} | {
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
SUBJECT = "The canary, read (randread-4k-qd1-j1) on stor01.example:10047, device class nvme"
BASELINE = "the measured baseline (baseline.yaml)"


FELT = " Clients of layer rados probably see the same."
UNSUSPECTED = "\nSuspected: nothing yet; no host, network, disk or OSD is out of line."


def recorded(metric: str, values: str, host: str = "stor01", more: str = "", layer: str = "disk") -> dict[str, str]:
    """A figure of the canary of ``host`` that is already recorded, or one that its rules are to read."""
    place = PLACE % {"cluster": ',cluster="north"', "host": host, "layer": layer}
    judged = f'{place},{WORKLOAD},source="measured",profile="baseline.yaml"{more}'.replace('job="plumbline",', "")
    return {"series": f"plumbline:{metric}{{{judged}}}", "values": values}


def history(values: str, host: str = "stor01") -> list[dict[str, str]]:
    """What is judged and the tolerance: from there on every rule is evaluated."""
    return [
        recorded("degradation_fast:ratio", values, host, ',probe="canary",statistic="p50"'),
        recorded("baseline_in_force:tolerance_ratio", "1.25x1500", host),
    ]


def asked(metric: str, host: str, more: str = "") -> str:
    return f'round(sum(plumbline:canary_{metric}{{instance="{host}.example:10047"{more}}}), 0.001)'


def counter(metric: str, host: str, more: str) -> dict[str, str]:
    """1.2 a second, of a canary of which nothing else is known."""
    place = PLACE % {"cluster": ',cluster="north"', "host": host, "layer": "disk"}
    labels = f'{place},probe="canary",{WORKLOAD}{more}'
    return {"series": f"plumbline_canary_{metric}_total{{{labels}}}", "values": "0+36x80"}


def share_of(values: str, host: str = "stor01", layer: str = "disk") -> dict[str, str]:
    """The share of slow operations."""
    return recorded("canary_slow_operations:ratio", values, host, ',probe="canary"', layer)


def usual(host: str, window: str, share: float, layer: str = "disk") -> dict[str, str]:
    """The share of slow operations of a canary's slowest hours."""
    return recorded("canary_slow_usual:ratio", f"{share}x1500", host, f',probe="canary",window="{window}"', layer)


def spread(host: str, value: float, layer: str = "disk") -> dict[str, str]:
    """What the baseline was recorded with."""
    place = PLACE % {"cluster": ',cluster="north"', "host": host, "layer": layer}
    entry = f'{WORKLOAD},config_hash="f8ebba40cbad",source="measured",profile="baseline.yaml",span="1m"'
    return {"series": f"plumbline_baseline_spread_ratio{{{place},{entry}}}", "values": f"{value}x300"}


def means(host: str, short: str, long: str) -> list[dict[str, str]]:
    """The means' ratios over both windows."""
    return [
        recorded(f"degradation{span}:ratio", f"{value}x60", host, ',probe="canary",statistic="mean"')
        for span, value in (("", short), ("_long", long))
    ]


def high(
    moment: str, ratio: str, limit: str = "1.6", host: str = "stor01", seen: str = "25m", **labels: str
) -> tuple[Any, ...]:
    return (
        moment,
        HIGH,
        {
            "severity": "warning",
            "instance": f"{host}.example:10047",
            "source": "measured",
            "profile": "baseline.yaml",
            "statistic": "p50",
            **labels,
        },
        {
            "description": f"{SUBJECT.replace('stor01', host)}: the p50 latency is {ratio} times"
            f" {BASELINE}, seen over {seen}; the limit over 25m is {limit} times.",
        },
    )


def extreme(moment: str, ratio: str, severity: str = "warning", **labels: str) -> tuple[Any, ...]:
    return (
        moment,
        EXTREME,
        {"severity": severity, **labels, "source": "measured", "profile": "baseline.yaml", "statistic": "p50"},
        {
            "description": SUBJECT.replace("stor01.example:10047", labels.get("instance", "stor01.example:10047"))
            + f": the p50 latency of the last 60s is {ratio} times {BASELINE}."
            f"{FELT + UNSUSPECTED if severity == 'critical' else ''}",
        },
    )


def fleet(moment: str, share: str, points: str, suspected: str = UNSUSPECTED, **labels: str) -> tuple[Any, ...]:
    layer = labels.get("layer", "disk")
    return (
        moment,
        FLEET,
        {"severity": "critical", **labels},
        {
            "description": f"On {share} of the OSDs or hosts that canaries measure in cluster north,"
            f" read operations of layer {layer}"
            " (randread-4k-qd1-j1, device class nvme) have been slower than their limits for at least 4m:"
            " clients see it wherever they look. One part may be the cause where writes wait for its replicas."
            f"\nHosts that agree: {points}.{suspected}",
        },
    )


def burn(
    moment: str, share: str, severity: str, host: str = "stor01", over: str = "10m", **labels: str
) -> tuple[Any, ...]:
    window = {"critical": "10m", "warning": "6h"}[severity]
    return (
        moment,
        BURN,
        {"severity": severity, "window": window, "instance": f"{host}.example:10047", **labels},
        {
            "description": f"{SUBJECT.replace('stor01', host)}: {share} of its operations were slower"
            f" than the limit set by the baseline or failed, over {over}; the budget is 1%."
            f"{FELT + UNSUSPECTED if severity == 'critical' else ''}",
        },
    )


CALM = Phase(15)
DOUBLE = 0.0004

CLIENT = {"layer": "rados"}


def sudden(minutes: float, median: float) -> tuple[Phase, Phase]:
    """Begins with so many operations that the next result knows, however many scrapes before it a window holds:
    Prometheus 3 leaves out the one at a window's start."""
    return Phase(0.5, median, ops=20 * OPS), Phase(minutes - 0.5, median)


SINCE = "at least since 1970-01-01 00:15:30 +0000 UTC"
DOUBLED = "{}.example:10047 (2.0 times its baseline)"
TWO_OF_THREE = f"2 of 3, %s: {DOUBLED.format('stor02')}, {DOUBLED.format('stor03')}"
LATER = SINCE.replace("00:15:30", "00:31:30")
TWO_OF_TWO = f"2 of 2, {SINCE}: {DOUBLED.format('stor01')}, {DOUBLED.format('stor02')}"


def hosts(*phases: Phase, count: int = 3, first: int = 1, layer: str = "disk", **more: Any) -> list[Host]:
    return [Host(phases, name=f"stor{number:02}", layer=layer, **more) for number in range(first, first + count)]


LATENCY = (
    Case(
        "one disk, a lasting doubling: a ticket in half an hour, no page; after it, kept for thirty",
        [Host([CALM, Phase(45, DOUBLE), Phase(60)])],
        quiet=[("32m", HIGH), ("105m", HIGH), ("40m", EXTREME), ("40m", FLEET)],
        firing=[high("41m", "2.0"), high("59m", "2.0"), high("90m", "1.0")],
    ),
    Case(
        "slow and busy: load explains what is below the cap, and nothing beyond it",
        [Host([CALM, Phase(40, DOUBLE)]), Host([CALM, Phase(40, 0.0008)], name="stor02")],
        firing=[high("45m", "4.0", host="stor02")],
        more=[recorded("canary_busy:info", "_x30 1x200", host, ',probe="canary"') for host in ("stor01", "stor02")],
    ),
    Case(
        "a baseline without a median: both windows of the mean are beyond; one is not; there is a median; no recovery",
        [],
        firing=[
            (
                "10m",
                HIGH,
                {
                    "severity": "warning",
                    "source": "measured",
                    "profile": "baseline.yaml",
                    "statistic": "mean",
                },
                {
                    "description": f"{SUBJECT}: the mean latency is 1.8 times {BASELINE}, seen over 5m and 2h.",
                },
            )
        ],
        more=[
            *means("stor01", "1.76", "1.51"),
            *means("stor02", "1.75", "1.6"),
            *means("stor03", "1.8", "1.5"),
            *means("stor04", "1.8", "1.6"),
            recorded("degradation:ratio", "1x60", "stor04", ',probe="canary",statistic="p50"'),
            {"series": 'plumbline:recovery:bool{cluster="north"}', "values": "0x60"},
        ],
    ),
    Case(
        "a baseline without a median, while the cluster recovers",
        [],
        quiet=[("10m", HIGH)],
        more=[
            *means("stor01", "1.8", "1.6"),
            {"series": 'plumbline:recovery:bool{cluster="north"}', "values": "1x60"},
        ],
    ),
    Case(
        "just above and just below the limit",
        [Host([CALM, Phase(45, 0.00033)]), Host([CALM, Phase(45, 0.00032)], name="stor02")],
        firing=[high("55m", "1.6")],
    ),
    Case(
        "one disk beyond what any weather excuses: a ticket within fifteen minutes",
        [Host([CALM, Phase(25, 0.0008)])],
        quiet=[("24m", HIGH), ("28m", FLEET)],
        firing=[high("26m", "4.0")],
    ),
    Case(
        "transient: hiccups of four minutes at eight times the latency, half of the time",
        [Host([CALM, *[Phase(4, 0.0016), Phase(4)] * 6, Phase(15)])],
        quiet=[(f"{minute}m", alert) for minute in (17, 30, 45, 60) for alert in (HIGH, EXTREME, BURN)],
    ),
    Case(
        "no data: the canary stops while it is slow",
        [Host([CALM, Phase(8, 0.0008)])],
        quiet=[("23m", HIGH), ("25m", HIGH), ("40m", HIGH)],
    ),
    Case(
        "no baseline: slow by nobody's measure",
        [Host([CALM, Phase(40, 0.01)], judged=False)],
        quiet=[("50m", HIGH), ("50m", EXTREME)],
    ),
    Case(
        "too few operations to judge: one a minute, all slow",
        [Host([Phase(60, DOUBLE, ops=1)])],
        quiet=[("55m", HIGH), ("55m", BURN), ("55m", EXTREME)],
    ),
    Case(
        "recovery is slow by nature: no ticket while it lasts, a catastrophe all the same",
        [Host([CALM, Phase(45, DOUBLE), Phase(9, 0.01)])],
        recovering="0x20 1x180",
        quiet=[("45m", HIGH), ("59m", HIGH), ("65m", EXTREME)],
        firing=[extreme("68m", "50.0")],
    ),
    Case(
        "no cluster label, no metrics of Ceph: the same judgement",
        [Host([CALM, Phase(45, DOUBLE)], cluster="")],
        quiet=[("32m", HIGH)],
        firing=[high("55m", "2.0", cluster="")],
    ),
    Case(
        "throttled for a minute",
        [Host([CALM, Phase(1, 0.01), Phase(5)])],
        quiet=[("16m", EXTREME), ("17m", EXTREME), ("18m", EXTREME)],
    ),
    Case(
        "a client's layer, catastrophic at one vantage point: a page after six minutes",
        [Host([CALM, Phase(9, 0.01)], layer="rados")],
        quiet=[("16m", EXTREME), ("18m", EXTREME), ("21m", EXTREME)],
        firing=[extreme("23m", "50.0", "critical", **CLIENT)],
    ),
    Case(
        "a client's layer, catastrophic at two vantage points: a page at once",
        hosts(CALM, Phase(5, 0.01), count=2, layer="rados"),
        quiet=[("16m", EXTREME)],
        firing=[extreme("18m", "50.0", "critical", instance=f"stor0{host}.example:10047", **CLIENT) for host in (1, 2)],
    ),
    Case(
        "two of three hosts: the layer, within 22 minutes; then nothing",
        hosts(CALM, *sudden(28, DOUBLE), Phase(25), count=2, first=2) + hosts(CALM, Phase(53), count=1, first=4),
        quiet=[("35m", FLEET), ("63m", FLEET)],
        firing=[fleet(moment, "66.67%", TWO_OF_THREE % LATER) for moment in ("37m", "42m", "50m")],
    ),
    Case(
        "two of three hosts, and the third near to its limit: within five minutes",
        hosts(CALM, *sudden(12, DOUBLE), count=2, first=2) + hosts(CALM, *sudden(12, 0.00032), count=1, first=4),
        quiet=[("18m", FLEET)],
        firing=[fleet("20m", "66.67%", TWO_OF_THREE % SINCE)],
    ),
    Case(
        "two of three hosts, for nineteen minutes: noise that coincides",
        hosts(CALM, Phase(19, DOUBLE), Phase(9), count=2, first=2) + hosts(CALM, Phase(28), count=1, first=4),
        quiet=[("20m", FLEET), ("30m", FLEET), ("34m", FLEET), ("36m", FLEET)],
    ),
    Case(
        "two of three hosts since their first scrape: that is not yet twenty minutes",
        hosts(Phase(30, DOUBLE), count=2, first=2) + hosts(Phase(30), count=1, first=4),
        quiet=[("14m", FLEET), ("20m", FLEET)],
        firing=[fleet("29m", "66.67%", TWO_OF_THREE % SINCE.replace("00:15:30", "00:17:00"))],
    ),
    Case(
        "slow since the first scrape, and gone within four minutes",
        hosts(Phase(3, DOUBLE), count=2, layer="rados"),
        quiet=[(moment, FLEET) for moment in ("3m", "4m", "6m", "7m")],
    ),
    Case(
        "two of three hosts since their first scrape, and all gone within twenty minutes",
        hosts(Phase(10, DOUBLE), count=2, first=2) + hosts(Phase(10), count=1, first=4),
        quiet=[(moment, FLEET) for moment in ("9m", "22m", "26m")],
    ),
    Case(
        "one of three hosts: a device",
        hosts(CALM, Phase(30, DOUBLE), count=1) + hosts(Phase(45), count=2, first=2),
        quiet=[("21m", FLEET), ("26m", FLEET), ("44m", FLEET)],
    ),
    Case(
        "two hosts' disks: too few to speak of a layer",
        hosts(CALM, Phase(12, DOUBLE), count=2),
        quiet=[("21m", FLEET), ("26m", FLEET)],
    ),
    Case(
        "two vantage points of a client's layer agree: a page within five minutes",
        hosts(CALM, *sudden(12, DOUBLE), Phase(15), count=2, layer="rados"),
        quiet=[("18m", FLEET), ("41m", FLEET)],
        firing=[fleet("20m", "100%", TWO_OF_TWO, "\nSuspected: osd.3 (PlumblineOsdSlowDisk).", **CLIENT)],
        more=[
            {
                "series": 'ALERTS{alertname="PlumblineOsdSlowDisk",alertstate="firing",ceph_daemon="osd.3",'
                'cluster="north",layer="osd",severity="warning",signal="latency"}',
                "values": "1x100",
            }
        ],
    ),
    Case(
        "a client's layer seen from one vantage point: no page",
        hosts(CALM, Phase(12, DOUBLE), count=1, layer="rados"),
        quiet=[("21m", FLEET), ("26m", FLEET)],
    ),
    Case(
        "all near to their limits, and only one beyond",
        hosts(CALM, Phase(15, 0.00032), count=2) + hosts(CALM, Phase(15, DOUBLE), count=1, first=3),
        quiet=[("21m", FLEET), ("29m", FLEET)],
    ),
    Case(
        "a pause of the layer in the middle of the span",
        hosts(CALM, *[Phase(3, DOUBLE), Phase(2)] * 3, layer="rados"),
        quiet=[(moment, FLEET) for moment in ("18m", "20m", "21m", "25m", "28m")],
    ),
    Case(
        "a blip of the network: all hosts for three and a half minutes",
        hosts(CALM, Phase(3.5, 0.0016), Phase(10)),
        quiet=[(moment, alert) for moment in ("18m", "19m", "20m", "22m") for alert in (FLEET, HIGH)],
    ),
    Case(
        "all hosts, while the cluster recovers",
        hosts(CALM, Phase(12, DOUBLE)),
        recovering="1x60",
        quiet=[("21m", FLEET), ("26m", FLEET)],
    ),
)

# What is no second vantage point, by its share of slow operations every 30 s; stor06's is usual for it.
UNLIKE = {
    "stor03": "0.04x80",
    "stor04": "_x30 0.06x50",
    "stor05": "0.06x8 0x1 0.06x18 0x1 0.06x48",
    "stor06": "0.06x80",
}
OTHER_LAYERS = ("rbd", "filesystem", "object", "client")
# One has ten minutes behind it only when the other has been gone for six.
GONE = {"stor01": "_x16 0.06x60", "stor07": "0.06x24"}


def writing(series: dict[str, str]) -> dict[str, str]:
    return series | {"series": series["series"].replace('operation="read"', 'operation="write"')}


TAIL = (
    Case(
        "a tail of 15 % at two vantage points: a page in twelve minutes",
        hosts(CALM, Phase(13, slow=23), Phase(20), count=2, layer="rados"),
        quiet=[("25m", BURN), ("45m", BURN), ("27m", HIGH)],
        firing=[
            burn("27m", "15.33%", "critical", **CLIENT),
            burn("27m", "15.33%", "critical", "stor02", **CLIENT),
        ],
    ),
    Case(
        "a tail of 15 % where the baseline is outgrown, and nobody knows yet what is usual: no page, no ticket",
        hosts(CALM, Phase(13, slow=23), Phase(60, slow=23), count=2, layer="rados"),
        quiet=[("27m", BURN), ("85m", BURN)],
        more=[
            {
                "series": "plumbline:fleet_outgrown:ratio"
                f'{{cluster="north",layer="rados",device_class="nvme",operation="read",{WORKLOAD}}}',
                "values": "1.5x300",
            }
        ],
    ),
    Case(
        "a tail of 15 % at one vantage point, or of one disk: no page",
        [Host([CALM, Phase(13, slow=23)], layer="rados"), Host([CALM, Phase(13, slow=23)], name="stor02")],
        quiet=[("27m", BURN)],
    ),
    Case(
        "a tail of 4 %: a ticket within the hour, no page",
        [Host([Phase(70), Phase(60, slow=6)])],
        quiet=[("100m", BURN)],
        firing=[burn("110m", "4%", "warning", over="1h")],
    ),
    Case(
        "a tail of 4 %, of canaries whose slowest hours usually have 1 %: just unusual, and just usual",
        [Host([Phase(70), Phase(60, slow=6)], name=name) for name in ("stor01", "stor02")],
        firing=[burn("110m", "4%", "warning", over="1h")],
        more=[usual("stor01", "1h", 0.0099), usual("stor02", "1h", 0.0101)],
    ),
    Case(
        "a tail of 4 %, and a median that is higher, too: what that explains is no ticket of the tail",
        [],
        quiet=[("60m", BURN)],
        firing=[
            burn("130m", "4%", "warning", host, "1h", source="measured", profile="baseline.yaml")
            for host in ("stor01", "stor03", "stor04")
        ],
        more=[
            *(
                row
                for host, ratio in (("stor01", 1.4), ("stor02", 1.4), ("stor03", 1.4), ("stor04", 1.25))
                for row in (
                    *history(f"{ratio}x280", host),
                    share_of("0.04x280", host),
                )
            ),
            spread("stor01", 0.13),
            spread("stor02", 0.11),
            spread("stor04", 0),
        ],
    ),
    Case(
        "bursts, a third of the time: ten in a hundred over six hours; just usual, too few or ended: none",
        [],
        quiet=[("250m", BURN)],
        firing=[burn("359m", "9.958%", "warning", over="6h", source="measured", profile="baseline.yaml")],
        interval="15s",
        more=[
            *(share_of(" ".join(["0x79 0.3x39"] * 12), host) for host in ("stor01", "stor02")),
            *(
                share_of(" ".join(each), host)
                for host, each in (
                    ("stor03", [*["0x103 0.3x15"] * 8, *["0x79 0.3x39"] * 4]),
                    ("stor04", [*["0x79 0.3x39"] * 10, "0x239"]),
                    ("stor05", [*["0x79 0.3x39"] * 10, *["0x95 0.3x23"] * 2]),
                )
            ),
            usual("stor01", "6h", 0.048),
            usual("stor02", "6h", 0.052),
        ],
        samples=[("359m", asked("slow_level:ratio", "stor01", ',window="6h"'), 0.1)],
    ),
    Case(
        "a ticket begins five minutes after an hour, and ends ten minutes after most of the hour is good again",
        [],
        quiet=[("61m", BURN), ("135m", BURN)],
        firing=[
            burn(moment, "3%", "warning", over="1h", source="measured", profile="baseline.yaml")
            for moment in ("66m30s", "125m")
        ],
        more=[share_of("0.03x179 0x200")],
    ),
    Case(
        "a recovery within six hours excuses a ticket",
        [],
        quiet=[("62m30s", BURN), ("119m", BURN)],
        more=[share_of("0.03x240")],
        recovering="0x20 3x20 0x300",
    ),
    Case(
        "a tail of 15 % at two vantage points: just usual, no page",
        hosts(CALM, Phase(13, slow=23), count=2, layer="rados"),
        quiet=[("27m", BURN)],
        more=[usual(host, "1h", 0.0515, "rados") for host in ("stor01", "stor02")],
    ),
    Case(
        "a tail of 15 % at two vantage points: just unusual, a page",
        hosts(CALM, Phase(13, slow=23), count=2, layer="rados"),
        firing=[burn("27m", "15.33%", "critical", host, **CLIENT) for host in ("stor01", "stor02")],
        more=[usual(host, "1h", 0.051, "rados") for host in ("stor01", "stor02")],
    ),
    Case(
        "two agree and page; beside them one too few, too young, usual or not all the time: neither paged nor agreeing",
        [],
        quiet=[("9m30s", BURN)],
        firing=[
            burn("20m", share, "critical", host, source="measured", profile="baseline.yaml", **CLIENT)
            for host, share in (("stor01", "10%"), ("stor02", "6%"))
        ],
        more=[
            share_of("0.06x35 0.1x40", "stor01", "rados"),
            share_of("0.06x80", "stor02", "rados"),
            *(share_of(values, host, "rados") for host, values in UNLIKE.items()),
            usual("stor06", "1h", 0.0245, "rados"),
            # of each kind one beside a single one that burns
            *(share_of("0.06x80", "stor01", layer) for layer in OTHER_LAYERS),
            *(
                share_of(values, host, layer)
                for (host, values), layer in zip(UNLIKE.items(), OTHER_LAYERS, strict=True)
            ),
            usual("stor06", "1h", 0.0245, OTHER_LAYERS[3]),
            *(writing(share_of(values, host, "rados")) for host, values in GONE.items()),
        ],
    ),
    Case("just below: a tail of 2 %", [Host([Phase(130, slow=3)])], quiet=[("125m", BURN)]),
    Case(
        "transient: everything slow for eight minutes",
        [Host([Phase(60), Phase(8, 0.0016, slow=150), Phase(20)])],
        quiet=[("67m", BURN), ("69m", BURN), ("72m", BURN)],
    ),
    Case(
        "operations that fail count as slow, and no recovery excuses them",
        [Host([CALM, Phase(13, ops=135, errors=15), Phase(20, errors=0)], layer="rados")],
        recovering="1x100",
        quiet=[("25m", BURN), ("45m", BURN)],
        firing=[burn("27m", "10%", "critical", **CLIENT)],
        samples=[("20m", "round(sum(plumbline:canary_failed_operations:ratio), 0.001)", 0.1)],
    ),
    Case(
        "failed operations by the share of all: just enough, just too few; the text says how many now",
        [],
        quiet=[("9m30s", BURN), ("32m", BURN)],
        firing=[
            burn(moment, share, "critical", host, source="measured", profile="baseline.yaml", **CLIENT)
            for moment in ("11m", "28m")
            for host, share in (("stor01", "20%"), ("stor02", "6%"))
        ],
        more=[
            recorded("canary_failed_operations:ratio", f"{values} 0x60", host, ',probe="canary"', "rados")
            for host, values in (("stor01", "0.1x20 0.2x19"), ("stor02", "0.06x40"), ("stor03", "0.04x40"))
        ],
    ),
    Case(
        "counters that are not of one instant: no share is below 0 or above 1, and without errors it is 0",
        [],
        more=[
            *(
                recorded("canary_attempts_fast:ops_per_second", "1x80", host, ',probe="canary"')
                for host in ("stor01", "stor02")
            ),
            counter("slow_operations", "stor01", f',bound="{BOUND:g}"'),
            {
                "series": 'plumbline_canary_errors_total{cluster="north",instance="stor02.example:10047",'
                'job="plumbline",operation="read",probe="canary",error="EIO"}',
                "values": "0+36x80",
            },
        ],
        samples=[
            ("20m", asked("slow_operations:ratio", "stor01"), 1),
            ("20m", asked("failed_operations:ratio", "stor01"), 0),
            ("20m", asked("failed_operations:ratio", "stor02"), 1),
        ],
    ),
    Case(
        "slow ones are excused by a recovery",
        hosts(CALM, Phase(13, slow=23), count=2, layer="rados"),
        recovering="1x100",
        quiet=[("27m", BURN)],
    ),
    Case("no data: the canary is gone", [Host([CALM, Phase(5, slow=23)])], quiet=[("30m", BURN), ("90m", BURN)]),
)


RESTLESS = "PlumblineCanaryRestless"


def limit(host: str, verdict: str = "page") -> str:
    return asked("limit:ratio", host, f',verdict="{verdict}"')


JUDGED = (
    Case(
        "without history the hour allows the baseline's whole tolerance",
        [Host([Phase(30)]), *hosts(CALM, Phase(15, DOUBLE), count=2, first=2)],
        samples=[
            ("29m", asked("expected:ratio", "stor01"), 1.25),
            ("29m", limit("stor01"), 1.813),
            ("29m", asked("near:ratio", "stor01"), 1.531),
            ("29m", asked("beyond:bool", "stor01"), 0),
            ("29m", asked("beyond:bool", "stor02", ',verdict="page"'), 1),
            ("29m", asked("beyond:bool", "stor02", ',verdict="near"'), 1),
            ("29m", 'round(sum(plumbline:fleet_beyond:ratio{verdict="page"}), 0.001)', 0.667),
        ],
    ),
    Case(
        "the days before: as accepted, beyond the tolerance, quieter than the least that counts",
        [],
        quiet=[("1490m", RESTLESS)],
        interval="2m",
        more=[
            *history("1x739 2x10", "stor01"),
            *history("1.6x89 1x649 2x10", "stor02"),
            *history("0.5x89 1x649 2x10", "stor03"),
            {
                "series": 'plumbline:fleet_residual:ratio{cluster="south",device_class="nvme",layer="disk",'
                f'operation="read",{WORKLOAD}}}',
                "values": "0.8x399 1.25x400",
            },
            recorded("canary_slow_level:ratio", "0.01x29 0.2x29 0.01x740", "stor01", ',probe="canary",window="1h"'),
        ],
        samples=[
            ("80m", "round(sum(plumbline:canary_hour:ratio), 0.01)", 3.1),
            ("1490m", asked("season:ratio", "stor01"), 1.0),
            ("1490m", asked("expected:ratio", "stor01"), 1.0),
            ("1490m", limit("stor01"), 1.45),
            ("1490m", asked("residual:ratio", "stor01"), 2.0),
            ("1490m", asked("drift:ratio", "stor01"), 0.8),
            ("1490m", "max(plumbline:fleet_residual:ratio)", 2.0),
            ("1490m", 'round(max(plumbline:fleet_spread:ratio{cluster="south"}), 0.001)', 0.25),
            ("1590m", asked("slow_usual:ratio", "stor01", ',window="1h"'), 0.2),
            ("1490m", asked("expected:ratio", "stor02"), 1.25),
            ("1490m", asked("expected:ratio", "stor03"), 0.75),
        ],
    ),
    Case(
        "a rise below the limit: a ticket once five hours have seen it; load or the spread explains it",
        [],
        quiet=[("352m", HIGH)],
        firing=[high("372m", "1.5", seen="5h"), high("372m", "1.5", "1.8", "stor03", seen="5h")],
        interval="2m",
        more=[
            *(row for number in range(1, 5) for row in history("1.5x220", f"stor{number:02}")),
            spread("stor03", 0.13),
            spread("stor04", 0.15),
            recorded("canary_busy:info", "_x100 1x5 _x110", "stor01", ',probe="canary"'),
            recorded("canary_busy:info", "_x30 1x180", "stor02", ',probe="canary"'),
        ],
    ),
    Case(
        "a rise that a day has made its own season: a ticket; just tolerable, ended or explained by load: none",
        [],
        quiet=[("1492m", HIGH)],
        firing=[high("1512m", "1.3", seen="1d")],
        interval="2m",
        more=[
            *history("1.3x760", "stor01"),
            *history("1.24x760", "stor02"),
            *history("1.5x450 1.1x310", "stor03"),
            *history("1.3x760", "stor04"),
            recorded("canary_busy:info", "_x300 1x5 _x455", "stor01", ',probe="canary"'),
            recorded("canary_busy:info", "_x300 1x460", "stor04", ',probe="canary"'),
        ],
    ),
    Case(
        "a new canary of a restless layer: its limit is that of its recording, and the cap",
        [Host([Phase(90)]), Host([Phase(90)], name="stor02", layer="rados")],
        quiet=[("60m", RESTLESS)],
        firing=[
            (
                "80m",
                RESTLESS,
                {"severity": "info", "signal": "health", "source": "measured", "profile": "baseline.yaml"},
                {
                    "description": f"{SUBJECT}: its latency varied so much in the last 7d that its limit"
                    " would be 9.3 times its baseline. No limit is above 3 times, so it may exceed its limit in"
                    " ordinary hours.",
                },
            )
        ],
        samples=[
            ("80m", limit("stor01"), 3),
            ("80m", limit("stor02"), 2.252),
            ("80m", limit("stor02", "ticket"), 2.252),
            ("80m", asked("spread:ratio", "stor02"), 0.225),
            ("80m", asked("restless:ratio", "stor01"), 9.33),
            ("80m", "count(plumbline:canary_slow:info) or vector(0)", 0),
        ],
        more=[spread("stor01", 1), spread("stor02", 0.225, "rados")],
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
    return head + yaml.safe_dump(document, sort_keys=False, width=2**16, default_flow_style=None)


FILES = {
    "canary_alerts.yaml": (LATENCY, "30s"),
    "canary_burn.yaml": (TAIL, "30s"),
    "canary_season.yaml": (JUDGED, "2m"),
}

if __name__ == "__main__":
    for file, how in FILES.items():
        (FOLDER / file).write_text(render(*how), "utf-8")
