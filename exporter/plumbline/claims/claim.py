"""A volume of Kubernetes from its claim to the first write, for one StorageClass.

A pod is made of a PodTemplate. It has one ephemeral volume, so that Kubernetes itself makes the claim with the pod and
removes it with the pod (https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#generic-ephemeral-volumes): this
program has no right to claims but to read them, and leaves no volume behind if it dies. The times are those of one
clock, this program's: it looks at pod and claim again and again, the longer the wait the less often, so each time is
right to 5 % or to 0.3 s. Only the write is timed in the pod (:mod:`.first_write`).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec

from plumbline.claims.api import Api, ApiError, Claim, Event, Events, Pod, Pods, PodTemplate, answered, parse
from plumbline.errors import ParseError, PlumblineError, ProbeRefused
from plumbline.probes.run.model import Identity
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult

LABEL = "plumbline/claim"  # On pods of ours, with the claim's name; nothing without it is ever deleted
VOLUME = "claimed"  # Its name in the template
WANTED_SIZE = "1Gi"  # The workload's: larger volumes take longer to format
GONE_WITHIN_S = 120.0
_CLAIMS = "persistentvolumeclaims"
_LOOK_EVERY_S, _LOOK_SHARE, _LOOK_MOST_S = 0.3, 0.05, 3.0
_WRITE_MAX_NS = 10**13
# Events of a claim after which the scheduler's of its pod tell more. Afterwards those are history: the scheduler first
# warns of every pod that the claim is not there yet.
_WAITS_FOR_POD = frozenset({"WaitForPodScheduled", "WaitForFirstConsumer"})


class WriteReport(msgspec.Struct, frozen=True):
    """The output of :mod:`.first_write`."""

    write_ns: int | None = None
    error: str = ""


T = TypeVar("T")


@dataclass(slots=True)
class Times:
    """Monotonic seconds at which something was first seen."""

    created: float
    bound: float | None = None
    started: float | None = None
    written: float | None = None
    write_ns: int | None = None

    def operations(self) -> tuple[OperationResult, ...]:
        """What is known."""
        durations: dict[str, float] = {}
        if self.bound is not None:
            durations["bind"] = self.bound - self.created
            if self.started is not None:
                durations["mount"] = max(0.0, self.started - self.bound)
        if self.write_ns is not None and self.written is not None:
            durations |= {"write": self.write_ns / 1e9, "total": self.written - self.created}
        return tuple(
            OperationResult(operation=name, latency=dict.fromkeys(("mean", "p50"), value), bins=((value, 1),))
            for name, value in durations.items()
        )


class ClaimRun(msgspec.Struct, frozen=True):
    """One run. ``clock``: Unix seconds; ``monotonic`` and ``pause`` are arguments for tests."""

    api: Api
    name: str
    timeout_s: float
    stopping: threading.Event
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = msgspec.field(default=time.sleep)

    def storage_class(self) -> tuple[PodTemplate, str]:
        """The template, and the class that it names. Raises :class:`ProbeRefused` for a template of another kind."""
        template = self.api.ask("GET", "podtemplates", PodTemplate, name=self.name)
        where = f"PodTemplate {self.name}"
        try:
            spec = template.template["spec"]
            (volume,) = (volume_entry for volume_entry in spec["volumes"] if volume_entry["name"] == VOLUME)
            claim = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
            named, size = claim["storageClassName"], claim["resources"]["requests"]["storage"]
            (_,) = spec["containers"]
        except (KeyError, TypeError, ValueError):
            raise ProbeRefused(
                "template", f"{where}: expected one container, and an ephemeral volume {VOLUME} with a storageClassName"
            ) from None
        if size != WANTED_SIZE:
            raise ProbeRefused("template", f"{where}: claims {size}; results compare with {WANTED_SIZE} only")
        return template, str(named)

    def run(self, template: PodTemplate, identity: Identity) -> ProbeResult:
        """Remove what an earlier run left, measure, and remove it all. Raises :class:`ProbeRefused` when it is stopped,
        and :class:`ApiError` before anything was made."""
        self.sweep()
        version = self.api.version()
        began, started = self.monotonic(), self.clock()
        pod = self.api.ask("POST", "pods", Pod, body=self._pod(template.template))
        times, outcome, message = Times(self.monotonic()), Outcome.SUCCESS, ""
        try:
            self._follow(pod, times)
            if times.write_ns is None:
                outcome, message = Outcome.TIMEOUT, self._why_not(pod, times)
        except (ClaimFailed, ApiError) as error:
            outcome, message = Outcome.FAILURE, str(error)
        finally:
            left = self._remove(pod)
        if self.stopping.is_set():
            raise ProbeRefused("stopped", "stopped")
        if left:
            outcome, message = Outcome.FAILURE, "; ".join(filter(None, (message, left)))
        return identity.result(
            tool_version=version,
            started=started,
            duration=self.monotonic() - began,
            outcome=outcome,
            operations=times.operations() if outcome is Outcome.SUCCESS else (),
            message=message[:1000],
        )

    def sweep(self) -> None:
        """Delete the pods of ours that a killed run left; their volumes go with them."""
        for pod in self.api.ask("GET", "pods", Pods, query={"labelSelector": f"{LABEL}={self.name}"}).items:
            if left := self._remove(pod):
                raise ApiError(f"of an earlier run: {left}")

    def _pod(self, template: dict[str, Any]) -> dict[str, Any]:
        labels = (template.get("metadata") or {}).get("labels") or {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": f"{self.name}-", "labels": {**labels, LABEL: self.name}},
            # Kubernetes itself ends the pod if this program can't
            "spec": {
                **template["spec"],
                "activeDeadlineSeconds": max(1, int(self.timeout_s)),
                "restartPolicy": "Never",
            },
        }

    def _follow(self, pod: Pod, times: Times) -> None:
        """Look until the write is known, or the time is over, or all is in vain (:class:`ClaimFailed`)."""
        until = times.created + self.timeout_s
        while not self.stopping.is_set():
            if times.bound is None and self._claim(pod, until).status.phase == "Bound":
                times.bound = self.monotonic()
            now = self._look(pod, until)
            state = now.state
            if times.started is None and (state.running is not None or state.terminated is not None):
                times.started = self.monotonic()
                times.bound = times.started if times.bound is None else times.bound
            if state.terminated is not None:
                times.written = self.monotonic()
                times.write_ns = written(state.terminated.message, state.terminated.exit_code, state.terminated.reason)
                return
            if now.status.phase == "Failed":
                raise ClaimFailed(f"the pod failed: {now.status.reason} {now.status.message}".strip())
            waited = self.monotonic() - times.created
            if waited >= self.timeout_s:
                return
            self.pause(min(_LOOK_MOST_S, max(_LOOK_EVERY_S, waited * _LOOK_SHARE), self.timeout_s - waited))

    def _look(self, pod: Pod, until: float) -> Pod:
        try:
            return self._answered(lambda: self.api.ask("GET", "pods", Pod, name=pod.metadata.name), until)
        except ApiError as error:
            if error.status == 404:
                raise ClaimFailed("the pod was deleted by another; was its node drained?") from error
            raise

    def _claim(self, pod: Pod, until: float) -> Claim:
        """The claim of the pod's volume; empty before Kubernetes has made it."""
        try:
            return self._answered(lambda: self.api.ask("GET", _CLAIMS, Claim, name=claim_of(pod)), until)
        except ApiError as error:
            if error.status != 404:
                raise
            return Claim()

    def _answered(self, ask: Callable[[], T], until: float) -> T:
        return answered(ask, until=until, pause=self.pause, clock=self.monotonic)

    def _why_not(self, pod: Pod, times: Times) -> str:
        """In which step it is stuck, and what Kubernetes last said of it."""
        step = "not bound" if times.bound is None else "not mounted" if times.started is None else "not written"
        reason = ""
        try:
            now = self.api.ask("GET", "pods", Pod, name=pod.metadata.name)
            waiting = now.state.waiting
            unmet = (item.message for item in now.status.conditions if item.status == "False" and item.message)
            reason = next(unmet, "")
            reason = (waiting.message if waiting else "") or reason
            event = self._last_event(claim_of(pod)) if times.bound is None else None
            if event is None or event.reason in _WAITS_FOR_POD:
                event = self._last_event(pod.metadata.name) or event
            reason = f"{event.reason}: {event.message}" if event else reason
        except ApiError as error:
            reason = str(error)
        return f"{step} within {self.timeout_s:g} s" + (f"; {' '.join(reason.split())[:500]}" if reason else "")

    def _last_event(self, name: str) -> Event | None:
        """The last warning about a pod or claim; without any, the last event."""
        events = self.api.ask("GET", "events", Events, query={"fieldSelector": f"involvedObject.name={name}"}).items
        return max(reversed(events), key=lambda event: (event.type == "Warning", event.last), default=None)

    def _remove(self, pod: Pod) -> str:
        """Delete a pod of ours and wait until it and its claim are gone; otherwise what is left."""
        meta = pod.metadata
        if meta.labels.get(LABEL) != self.name or not meta.uid:
            return f"pod {meta.name} is not ours and stays"
        until = self.monotonic() + GONE_WITHIN_S
        # the uid: never another pod of this name
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": meta.uid}}
        try:
            self._answered(lambda: self._unless_gone("DELETE", "pods", meta.name, body), until)
            for what, name in (("pods", meta.name), (_CLAIMS, claim_of(pod))):
                gone = partial(self._unless_gone, "GET", what, name)
                while self._answered(gone, until):
                    if self.monotonic() >= until:
                        return f"{what}/{name} is still there after {GONE_WITHIN_S:g} s; see its finalizers and events"
                    self.pause(_LOOK_EVERY_S)
        except ApiError as error:
            return f"pod {meta.name} could not be removed: {error}"
        return ""

    def _unless_gone(self, method: str, what: str, name: str, body: object = None) -> bool:
        try:
            self.api.ask(method, what, msgspec.Raw, name=name, body=body)
        except ApiError as error:
            if error.status in (404, 409):  # 409: another object has the name
                return False
            raise
        return True


class ClaimFailed(PlumblineError):
    """It can't succeed any more."""


def claim_of(pod: Pod) -> str:
    """Kubernetes names the claim of an ephemeral volume after the pod and the volume."""
    return f"{pod.metadata.name}-{VOLUME}"


def written(message: str, exit_code: int, reason: str) -> int:
    """Nanoseconds of the write, from the container's last message. Raises :class:`ClaimFailed`."""
    try:
        report = parse(message.encode(), WriteReport, source="first write")
    except ParseError:
        shown = re.sub(r"\s+", " ", message)[:200]
        raise ClaimFailed(f"the container ended with {exit_code} ({reason}) and said: {shown or 'nothing'}") from None
    if report.write_ns is None or not 0 < report.write_ns <= _WRITE_MAX_NS or exit_code:
        raise ClaimFailed(f"the first write failed: {report.error[:200] or f'exit status {exit_code}'}")
    return report.write_ns
