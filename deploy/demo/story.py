"""make demo-slow: baseline, throttle, pending, firing, arrival, throttle off, resolved; told as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deploy.demo import slowdown
from deploy.demo.configs import ALERT
from deploy.demo.processes import DemoError
from deploy.demo.slowdown import Slowdown
from deploy.demo.stack import Stack

BASELINE = 'plumbline:baseline_in_force:latency_seconds{statistic="p50", workload=~"%s"}'
RATIO = 'plumbline:degradation_fast:ratio{statistic="p50"}'
LIVE = 'plumbline:canary_latency_fast:seconds{statistic="p50"}'
POLL_S = 1.0
TELL_EVERY_S = 5.0


@dataclass(slots=True)
class Story:
    """Follows one alert through its life; every wait has a deadline."""

    stack: Stack
    slow: Slowdown
    deadline: float
    proc: Path
    state: str = "inactive"
    started: float = 0.0
    told: float = 0.0
    arrived: set[str] = field(default_factory=set)

    def run(self) -> None:
        """The whole cycle; :class:`DemoError` where a step does not happen in time. The throttle never stays."""
        self.started = time.monotonic()
        if ALERT not in self.stack.prometheus.alerts_loaded():
            raise DemoError(f"Prometheus has loaded no rule {ALERT}")
        self._wait("the canary's latency compared with its baseline", lambda: bool(self.stack.prometheus.query(RATIO)))
        self._tell("throttle ON: " + self.slow.description)
        try:
            self._wait("firing", lambda: self.state == "firing", before_each=self._hold)
            self._wait("its arrival in Alertmanager", lambda: "firing" in self.arrived, before_each=self._hold)
        finally:
            self.slow.remove()
        self._tell("throttle OFF")
        self._wait("inactive again", lambda: self.state == "inactive")
        self._wait("the resolved notification", lambda: "resolved" in self.arrived)
        self._tell("the whole cycle was seen: inactive → pending → firing → delivered → inactive → resolved")

    def _hold(self) -> None:
        """Keep every worker throttled, restarted ones too."""
        self.slow.apply(slowdown.workers(self.stack.daemon.popen.pid, self.proc))

    def _wait(self, what: str, done: Callable[[], bool], *, before_each: Callable[[], None] = lambda: None) -> None:
        while True:
            before_each()
            self.stack.processes.check()
            self._watch()
            if done():
                return
            if time.monotonic() > self.deadline:
                raise DemoError(f"not seen in time: {what} ({ALERT} is {self.state}); {self._figures()}")
            if time.monotonic() - self.told >= TELL_EVERY_S:
                self._tell(self._figures())
            time.sleep(POLL_S)

    def _watch(self) -> None:
        """Tell what changed in Prometheus and what Alertmanager delivered since the last look."""
        state = self.stack.prometheus.alert_states().get(ALERT, "inactive")
        if state != self.state:
            self._tell(f"{ALERT}: {self.state} → {state}")
            self.state = state
        for notification in self.stack.webhook.drain():
            self._tell(notification.line)
            if notification.name == ALERT:
                self.arrived.add(notification.status)

    def _figures(self) -> str:
        """Baseline and live p50 of each operation, as Prometheus has them."""
        live = sorted(self.stack.prometheus.query(LIVE), key=lambda series: key(series[0]))
        if not live:
            return "waiting for the canary's first figures"
        workloads = "|".join(labels["workload"] for labels, _ in live)
        baseline = {key(labels): value for labels, value in self.stack.prometheus.query(BASELINE % workloads)}
        return "; ".join(_line(labels, value, baseline.get(key(labels))) for labels, value in live)

    def _tell(self, text: str) -> None:
        self.told = time.monotonic()
        print(f"{self.told - self.started:6.0f} s  {text}", flush=True)


def key(labels: dict[str, str]) -> tuple[str, str]:
    """What makes a live figure and a baseline comparable here, on one host."""
    return labels["workload"], labels["operation"]


def _line(labels: dict[str, str], live: float, baseline: float | None) -> str:
    against = "no baseline" if baseline is None else f"baseline {milliseconds(baseline)}, {live / baseline:.1f} times"
    return f"{labels['operation']} p50 {milliseconds(live)} ({against})"


def milliseconds(seconds: float) -> str:
    """Three significant digits."""
    return f"{seconds * 1000:.3g} ms"
