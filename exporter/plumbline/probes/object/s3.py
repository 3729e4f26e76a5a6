"""Put, get, list and delete objects at an S3 endpoint, one request at a time, below a prefix of our own."""

import hashlib
import os
import socket

import msgspec

from plumbline.config.probes.object import S3Config
from plumbline.config.workloads import S3Ops
from plumbline.core.isolated import argv_of, last_line
from plumbline.core.kernel import read_kernel
from plumbline.core.process import Completed
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.object.s3_credentials import open_credentials
from plumbline.probes.object.s3_worker import Answer, Task
from plumbline.probes.run.child_task import Failed, Refused, Timed, parse_answer, timed_result
from plumbline.probes.run.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.run.result import ProbeResult
from plumbline.probes.run.tool import refuse_if_stopped

DEVICE_CLASS = "s3"  # Used if the configuration does not name the class of storage behind the endpoint
# for the start of the worker and one last removal, beyond the probe's timeout
_MARGIN_S = 5.0
_MOVE_BYTES = ("put", "get")


class S3Probe(msgspec.Struct, frozen=True):
    """The periodic probe of one endpoint. ``host`` is part of its objects' names: see :func:`owner_of`."""

    config: S3Config
    workload: S3Ops
    host: str

    heavy = True

    @property
    def identity(self) -> Identity:
        return Identity.of(
            self.config,
            self.workload,
            device_class=self.config.device_class or DEVICE_CLASS,
            tool="botocore",
            target=target_of(self.config.endpoint),
        )

    @property
    def prefix(self) -> str:
        return prefix_of(self.host, self.config.name)

    def run(self, run: Run) -> ProbeResult:
        """See :class:`.model.PeriodicProbe`; its own reasons: ``credentials``, ``not-ours``, ``versioned``."""
        count = self.config.operations
        run.progress(Progress(f"putting, getting, listing and deleting {count} objects"))
        started = run.clock()
        completed, answer = self._ask(run, count)
        return timed_result(
            self.identity,
            answer,
            completed,
            started=started,
            version=answer.version if isinstance(answer, Timed) else "",
            count=count,
            sizes=dict.fromkeys(_MOVE_BYTES, self.workload.object_size),
        )

    def clean_up(self, run: Run) -> None:
        """Remove objects below our prefix, in a bucket with our marker."""
        self._ask(run, 0)

    def _ask(self, run: Run, operations: int) -> tuple[Completed, Timed | Failed]:
        config = self.config
        credentials = open_credentials(config.credentials_file, config.ca_file)
        try:
            task = Task(
                endpoint=config.endpoint,
                bucket=config.bucket,
                prefix=self.prefix,
                region=config.region,
                ca_file=config.ca_file,
                credentials_fd=credentials,
                credentials_name=config.credentials_file,
                object_size=self.workload.object_size,
                operations=operations,
                request_timeout_s=float(config.request_timeout),
                timeout_s=float(config.timeout),
            )
            completed = run.runner.run(
                argv_of("plumbline.probes.object.s3_worker", msgspec.json.encode(task).decode(), site_packages=True),
                timeout_s=float(config.timeout) + _MARGIN_S,
                keep_fds=(*run.keep_fds, credentials),
            )
        finally:
            os.close(credentials)
        refuse_if_stopped(completed.cancelled)
        if completed.timed_out:
            return completed, Failed(f"{config.endpoint}: not finished in time", timeout=True)
        try:
            answer: Answer = parse_answer(completed.stdout, Answer, source="s3")
        except ParseError as error:
            # only the exception's name: its text may contain secrets
            name = last_line(completed).partition(":")[0]
            answer = Failed(f"s3: {name or error} (exit status {completed.returncode})")
        if isinstance(answer, Refused):
            raise ProbeRefused(answer.reason, answer.message)
        return completed, answer


def prefix_of(host: str, name: str) -> str:
    """Everything below this prefix is that probe's."""
    return f"plumbline-probe/{host}/{name}/"


def target_of(endpoint: str) -> str:
    return endpoint.partition("//")[2].rstrip("/")


def owner_of(host: Host) -> str:
    """Names this daemon in its objects' names. Hosts can have one name, and a host two daemons: each would remove the
    other's objects as its own leftovers."""
    try:
        machine = read_kernel(host.roots.etc / "machine-id").strip()
    except OSError:  # a container may have none; then its hostname is its own
        machine = b""
    mark = hashlib.sha256(machine + b"\0" + os.fsencode(host.storage.absolute())).hexdigest()[:8]
    return f"{socket.gethostname()}-{mark}"


def build(config: S3Config, workload: S3Ops, host: Host) -> Plan:
    return Plan(periodic=(S3Probe(config, workload, owner_of(host)),))
