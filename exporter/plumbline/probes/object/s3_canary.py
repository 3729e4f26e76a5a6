"""The canary at an S3 endpoint: from its configuration to one job."""

from typing import Any, Self

import msgspec
from msgspec.structs import replace

from plumbline.config.probes.object import S3CanaryConfig
from plumbline.config.workloads import S3Ops
from plumbline.probes.canary.job import CanaryJob
from plumbline.probes.canary.target import INTERACTIVE, Target
from plumbline.probes.object.s3 import DEVICE_CLASS, owner_of, prefix_of, target_of
from plumbline.probes.object.s3_canary_worker import ADVICE, ERRORS
from plumbline.probes.object.s3_worker import Task
from plumbline.probes.run.model import Host, Plan

SWEEP_WITHIN_S = 30.0


class EndpointTarget(Target, frozen=True, kw_only=True):
    """A bucket of ours at an endpoint."""

    task: Task

    kind = "s3-canary"
    reasons = ADVICE
    errors = ERRORS
    look_at = "the gateway's log"
    worker = "plumbline.probes.object.s3_canary_worker"
    site_packages = True
    asked_share = 0.75  # it has an object to remove

    @property
    def where(self) -> str:
        return f"{self.task.endpoint}: bucket {self.task.bucket}"

    def interactive(self, *, spare: bool) -> Self:  # noqa: ARG002
        """Below a prefix of its own: at its start a worker removes all objects below its prefix."""
        return replace(self, task=replace(self.task, prefix=f"{self.task.prefix.rstrip('/')}{INTERACTIVE}/"))

    def order(self) -> dict[str, Any]:
        return {"task": msgspec.to_builtins(self.task)}


def build(config: S3CanaryConfig, workload: S3Ops, host: Host) -> Plan:
    task = Task(
        endpoint=config.endpoint,
        bucket=config.bucket,
        prefix=prefix_of(owner_of(host), config.name),
        region=config.region,
        ca_file=config.ca_file,
        credentials_name=config.credentials_file,
        object_size=workload.object_size,
        # long enough to see a request hang, instead of timing out at once
        request_timeout_s=2 * float(config.stuck_after),
        timeout_s=SWEEP_WITHIN_S,
    )
    target = EndpointTarget(
        name=config.name,
        workloads=((workload, ()),),
        device_class=config.device_class or DEVICE_CLASS,
        rate=config.rate,
        stuck_after_s=float(config.stuck_after),
        max_busy_ratio=1.0,  # a gateway serves many requests at once
        target=target_of(config.endpoint),
        task=task,
    )
    return Plan(continuous=(CanaryJob(config, target, ""),))
