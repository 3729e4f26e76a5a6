"""A claim's run against a cluster that is played: what is timed, what is said of a failure, what is removed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from plumbline.claims import claim
from plumbline.claims.api import Api, ApiError, parse
from plumbline.claims.claim import LABEL, ClaimFailed, ClaimRun, written
from plumbline.claims.claim_file import identity_of
from plumbline.errors import ProbeRefused
from plumbline.probes.run.result import Outcome, ProbeResult

T = TypeVar("T")
IDENTITY = identity_of("standard", "standard")
POD = {"metadata": {"name": "standard-x1", "uid": "u1", "labels": {LABEL: "standard"}}}
VOLUME = {
    "name": "claimed",
    "ephemeral": {
        "volumeClaimTemplate": {"spec": {"storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}}
    },
}
TEMPLATE: dict[str, Any] = {
    "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "write"}], "volumes": [VOLUME]}}
}
RUNNING = {"containerStatuses": [{"state": {"running": {"startedAt": "2026-11-26T03:00:00Z"}}}], "phase": "Running"}


def ended(message: str, code: int = 0, reason: str = "Completed") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"phase": "Succeeded" if not code else "Failed", "containerStatuses": [{"state": state}]}


class Played(Api):
    """What the API server answers ``at`` seconds after the pod was made; ``log``: what it was asked to change."""

    def __init__(self, *, bound_at: float = 2.0, states: Mapping[float, dict[str, Any]]) -> None:
        self.now, self.made, self.deleted = 100.0, -1.0, False
        self.bound_at, self.states = bound_at, states
        self.log: list[tuple[str, str, Any]] = []
        self.left: list[dict[str, Any]] = []
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.fail: Callable[[str, str], ApiError | None] = lambda _method, _path: None

    def version(self) -> str:
        return "v1.34.4"

    def ask(
        self,
        method: str,
        what: str,
        kind: type[T],
        *,
        name: str | None = None,
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> T:
        path = what if name is None else f"{what}/{name}"
        if (error := self.fail(method, path)) is not None:
            raise error
        if method != "GET":
            self.log.append((method, path, body))
        return parse(json.dumps(self.answer(method, path, query)).encode(), kind, source=path)

    def answer(self, method: str, path: str, query: Mapping[str, str] | None) -> Any:
        at = self.now - self.made
        if method == "DELETE":
            self.deleted = True
            self.left = [each for each in self.left if not path.endswith(each["metadata"]["name"])]
            return {}
        match path.split("/", maxsplit=1)[0]:
            case "podtemplates":
                return TEMPLATE
            case "pods" if query:
                assert query == {"labelSelector": f"{LABEL}=standard"}
                return {"items": self.left}
            case "pods" if method == "POST":
                self.made = self.now
                return POD
            case "events":
                assert query is not None
                return {"items": self.events.get(query["fieldSelector"].removeprefix("involvedObject.name="), [])}
        if self.deleted:
            raise ApiError("not found", 404)
        if path.startswith("persistentvolumeclaims/"):
            if at < 0.5:
                raise ApiError("not found", 404)
            return {"status": {"phase": "Bound" if at >= self.bound_at else "Pending"}}
        status = [state for since, state in sorted(self.states.items()) if at >= since]
        return {**POD, "status": status[-1] if status else {"phase": "Pending"}}

    def pause(self, seconds: float) -> None:
        self.now += seconds


def measured(cluster: Played, timeout_s: float = 60.0) -> ProbeResult:
    run = claim_run(cluster, timeout_s)
    template, storage_class = run.storage_class()
    assert storage_class == "standard"
    return run.run(template, IDENTITY)


def claim_run(cluster: Played, timeout_s: float = 60.0) -> ClaimRun:
    return ClaimRun(
        cluster, "standard", timeout_s, threading.Event(), clock=lambda: 1.0, monotonic=lambda: cluster.now,
        pause=cluster.pause,
    )  # fmt: skip


def test_each_step_is_timed_to_a_twentieth() -> None:
    cluster = Played(bound_at=8.0, states={20.0: RUNNING, 21.0: ended('{"write_ns": 1500000}')})
    result = measured(cluster)
    assert result.outcome is Outcome.SUCCESS
    found = {each.operation: each.latency["mean"] for each in result.operations}
    assert found["bind"] == pytest.approx(8.0, abs=0.41)
    assert found["bind"] + found["mount"] == pytest.approx(20.0, abs=1.1)
    assert found["write"] == 0.0015
    assert found["total"] == pytest.approx(21.0, abs=1.1)
    assert (result.tool_version, result.workload, result.device_class) == ("v1.34.4", "claim-1g-write-4k", "standard")


def test_the_pod_is_the_templates_and_is_ended_by_kubernetes_too() -> None:
    cluster = Played(states={3.0: ended('{"write_ns": 1}')})
    measured(cluster, timeout_s=90.0)
    (made, removed) = cluster.log
    assert made[:2] == ("POST", "pods")
    assert made[2]["metadata"] == {"generateName": "standard-", "labels": {"app": "x", LABEL: "standard"}}
    assert made[2]["spec"]["activeDeadlineSeconds"] == 90
    assert made[2]["spec"]["volumes"] == [VOLUME]
    assert removed[:2] == ("DELETE", "pods/standard-x1")
    assert removed[2]["preconditions"] == {"uid": "u1"}


def event(reason: str, message: str, *, last: str = "", first: str = "", warning: bool = False) -> dict[str, Any]:
    """``last`` as controllers write it, ``first`` as the scheduler does."""
    return {
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-11-26T{last}Z" if last else None,
        "eventTime": f"2026-11-26T{first}Z" if first else None,
        "series": None,
    }


# As Kubernetes 1.34 said them, in the order in which it lists them: its API server, scheduler and controllers.
NO_CLAIM_YET = event(
    "FailedScheduling",
    "0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "
    '"standard-x1-claimed". not found',
    first="09:02:56.297422",
    warning=True,
)
WAITS = event("WaitForPodScheduled", "waiting for pod standard-x1 to be scheduled", last="09:02:56")
PROVISIONING = event(
    "ExternalProvisioning",
    "Waiting for a volume to be created either by the external provisioner 'played.example' or manually by the system "
    "administrator.",
    last="09:03:11",
)
UNSCHEDULABLE = event(
    "FailedScheduling", "0/1 nodes are available: 1 node(s) were unschedulable.", first="09:02:56.479043", warning=True
)
QUOTA = event("FailedBinding", "ephemeral volume claimed: … exceeded quota: q", last="09:05:11", warning=True)
NO_CLASS = event("ProvisioningFailed", 'storageclass.storage.k8s.io "absent" not found', last="09:04:40", warning=True)
SERIES = {**NO_CLAIM_YET, "series": {"count": 2, "lastObservedTime": "2026-11-26T09:03:12.424267Z"}}


@pytest.mark.parametrize(
    ("of_pod", "of_claim", "said"),
    [
        ([SERIES], [PROVISIONING, WAITS], PROVISIONING),  # no provisioner runs
        ([NO_CLAIM_YET, UNSCHEDULABLE], [WAITS], UNSCHEDULABLE),
        ([QUOTA, NO_CLAIM_YET], [], QUOTA),  # repeated until the end
        ([NO_CLAIM_YET], [NO_CLASS], NO_CLASS),
        ([NO_CLAIM_YET], [NO_CLASS, PROVISIONING, WAITS], NO_CLASS),  # a warning tells more
        ([], [WAITS], WAITS),
    ],
)
def test_a_claim_that_is_never_bound_says_why(
    of_pod: list[dict[str, Any]], of_claim: list[dict[str, Any]], said: dict[str, Any]
) -> None:
    cluster = Played(bound_at=1e9, states={})
    cluster.events = {"standard-x1": of_pod, "standard-x1-claimed": of_claim}
    result = measured(cluster, timeout_s=30.0)
    assert result.outcome is Outcome.TIMEOUT
    assert result.message == f"not bound within 30 s; {said['reason']}: {said['message']}"
    assert result.operations == ()
    assert cluster.deleted


def test_a_volume_that_is_not_mounted_says_why_and_not_what_came_before() -> None:
    cluster = Played(states={})
    mount = event("FailedMount", "rpc error:\ncode = Internal", last="09:05:30", warning=True)
    cluster.events = {"standard-x1": [NO_CLAIM_YET, mount], "standard-x1-claimed": [NO_CLASS]}
    result = measured(cluster, timeout_s=30.0)
    assert result.message == "not mounted within 30 s; FailedMount: rpc error: code = Internal"


def test_a_volume_that_is_not_mounted_says_so() -> None:
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}], "phase": "Pending"}
    result = measured(Played(states={1.0: waiting}), timeout_s=30.0)
    assert (result.outcome, result.message) == (Outcome.TIMEOUT, "not mounted within 30 s")


@pytest.mark.parametrize(
    ("message", "code", "said"),
    [
        ('{"error": "No space left on device"}', 1, "the first write failed: No space left on device"),
        ("", 137, "the container ended with 137 (OOMKilled) and said: nothing"),
        ("Traceback\n  x", 1, "the container ended with 1 (OOMKilled) and said: Traceback x"),
        ('{"write_ns": -5}', 0, "the first write failed: exit status 0"),
        ('{"write_ns": 1e300}', 0, 'the container ended with 0 (OOMKilled) and said: {"write_ns": 1e300}'),
        ('{"write_ns": 5}', 1, "the first write failed: exit status 1"),
    ],
)
def test_a_write_that_failed(message: str, code: int, said: str) -> None:
    with pytest.raises(ClaimFailed) as failed:
        written(message, code, "OOMKilled")
    assert str(failed.value) == said
    result = measured(Played(states={2.0: ended(message, code, "OOMKilled")}))
    assert (result.outcome, result.message) == (Outcome.FAILURE, said)


def test_a_pod_that_failed_before_its_container_started() -> None:
    failed = {"phase": "Failed", "reason": "Evicted", "message": "the node was low on disk"}
    result = measured(Played(states={2.0: failed}))
    assert (result.outcome, result.message) == (
        Outcome.FAILURE, "the pod failed: Evicted the node was low on disk",
    )  # fmt: skip


def test_an_api_server_that_restarts_is_waited_for_and_one_that_refuses_is_not() -> None:
    cluster = Played(states={3.0: ended('{"write_ns": 7}')})
    cluster.fail = lambda _, path: ApiError("down") if "-x1" in path and 0 < cluster.now - cluster.made < 2 else None
    assert measured(cluster).outcome is Outcome.SUCCESS
    cluster = Played(states={})
    cluster.fail = lambda method, path: ApiError("HTTP 403: no", 403) if method == "GET" and "-x1" in path else None
    result = measured(cluster)
    assert result.outcome is Outcome.FAILURE
    assert "HTTP 403" in result.message
    assert "could not be removed" in result.message


def test_what_a_killed_run_left_goes_first_and_what_is_not_ours_stays() -> None:
    cluster = Played(states={3.0: ended('{"write_ns": 7}')})
    cluster.left = [{"metadata": {"name": "standard-old", "uid": "u0", "labels": {LABEL: "standard"}}}]
    run = claim_run(cluster)
    cluster.deleted = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim, "GONE_WITHIN_S", 5.0)
        cluster.made = cluster.now
        run.sweep()
        assert [each[:2] for each in cluster.log] == [("DELETE", "pods/standard-old")]
        # a server that ignores the selector
        cluster.left = [{"metadata": {"name": "database", "uid": "u9", "labels": {LABEL: "other"}}}]
        with pytest.raises(ApiError, match="pod database is not ours and stays"):
            run.sweep()
    assert len(cluster.log) == 1


def test_a_volume_that_stays_is_a_failure() -> None:
    cluster = Played(states={3.0: ended('{"write_ns": 7}')})
    real = cluster.answer

    def answer(method: str, path: str, query: Mapping[str, str] | None) -> Any:
        if path.startswith("persistentvolumeclaims/") and method == "GET":
            return {"status": {"phase": "Bound"}}
        return real(method, path, query)

    cluster.answer = answer  # type: ignore[method-assign]
    result = measured(cluster)
    assert result.outcome is Outcome.FAILURE
    assert result.message.startswith("persistentvolumeclaims/standard-x1-claimed is still there after 120 s")


def test_a_run_that_is_stopped_removes_the_pod_and_leaves_no_result() -> None:
    cluster = Played(bound_at=1e9, states={})
    run = claim_run(cluster)
    pause = cluster.pause

    def stop(seconds: float) -> None:
        pause(seconds)
        if cluster.now > 110:
            run.stopping.set()

    run = replace(run, pause=stop)
    template, _ = run.storage_class()
    with pytest.raises(ProbeRefused, match="stopped"):
        run.run(template, IDENTITY)
    assert cluster.deleted


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda volume: volume.pop("ephemeral"), "expected one container, and an ephemeral volume claimed"),
        (lambda volume: volume.update(name="data"), "expected one container, and an ephemeral volume claimed"),
        (lambda volume: volume["ephemeral"]["volumeClaimTemplate"]["spec"].pop("storageClassName"), "expected one"),
        (
            lambda volume: volume["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"].update(
                requests={"storage": "5Gi"}
            ),
            "claims 5Gi; results compare with 1Gi only",
        ),
    ],
)
def test_a_template_of_another_kind_is_refused(change: Callable[[dict[str, Any]], object], said: str) -> None:
    cluster = Played(states={})
    volume = json.loads(json.dumps(VOLUME))
    change(volume)
    spec = {"containers": [{}], "volumes": [volume]}
    cluster.answer = lambda *_: {"template": {"spec": spec}}  # type: ignore[method-assign]
    with pytest.raises(ProbeRefused, match=said):
        claim_run(cluster).storage_class()
    assert cluster.log == []
