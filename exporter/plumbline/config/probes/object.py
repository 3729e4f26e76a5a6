"""The configuration of probes of object storage."""

import re
from typing import Annotated, ClassVar

from msgspec import Meta

from plumbline.config.probes.base import OneWorkload, Periodic, ProbeBase
from plumbline.config.types import Duration, FieldError
from plumbline.config.workloads import S3Ops, Workload

_ENDPOINT = re.compile(r"https?://(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?/?")
# Amazon's rules for bucket names; RGW accepts more.
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


class S3Config(Periodic, frozen=True, kw_only=True, tag_field="type", tag="s3"):
    """Put, get, list and delete of objects at an S3 endpoint (RGW or any other), in a bucket of our own.

    Needs `plumbline[s3]`. If small gets take 40 ms, set RGW's frontend option `tcp_nodelay=1`: here they then took 10
    instead of 46."""

    layer: ClassVar[str] = "object"
    runs: ClassVar[tuple[type[Workload], ...]] = (S3Ops,)
    secrets: ClassVar[tuple[str, ...]] = ("credentials_file", "ca_file")
    anchors: ClassVar[tuple[str, ...]] = ("ca_file",)

    endpoint: str
    """`https://rgw.example.org` or `http://127.0.0.1:7480`."""
    bucket: str
    """Created if missing; refused if it holds objects that are not ours."""
    credentials_file: str
    """Two lines: `access_key = …`, `secret_key = …`. Must be readable by this user alone; or `credential:NAME`, a file
    that systemd gives the service."""
    workload: str = "s3-ops-4k"
    """A catalogue id of kind `s3-ops`."""
    region: str = "default"
    """Part of the signature."""
    ca_file: str | None = None
    """Certificates to trust for `https`. ``None``: the system's."""
    operations: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """Operations of each kind in one run."""
    request_timeout: Duration = Duration(10.0)
    """Timeout of one request; a slower one fails the run. Requests are not retried."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_place(self, self.endpoint, self.bucket)


class S3CanaryConfig(OneWorkload, frozen=True, kw_only=True, tag_field="type", tag="s3-canary"):
    """The canary at an S3 endpoint: put, get, list and delete, one request at a time, in a bucket of our own.

    Needs `plumbline[s3]`. A probe of the type `s3` may use the same bucket."""

    layer: ClassVar[str] = "object"
    runs: ClassVar[tuple[type[Workload], ...]] = (S3Ops,)
    secrets: ClassVar[tuple[str, ...]] = ("credentials_file", "ca_file")
    anchors: ClassVar[tuple[str, ...]] = ("ca_file",)

    endpoint: str
    """`https://rgw.example.org` or `http://127.0.0.1:7480`."""
    bucket: str
    """Created if missing; refused if it holds objects that are not ours. All hosts may use the same."""
    credentials_file: str
    """As for `s3`: two lines, `access_key = …` and `secret_key = …`; or `credential:NAME`."""
    workload: str = "s3-ops-4k"
    """A catalogue id of kind `s3-ops`. Its figures are comparable with those of a periodic probe of the type `s3`."""
    region: str = "default"
    """Part of the signature."""
    ca_file: str | None = None
    """Certificates to trust for `https`. ``None``: the system's."""
    rate: Annotated[float, Meta(gt=0, le=10)] = 2.0
    """Requests a second, of all four kinds together: 2 make a median of each kind in every minute."""
    stuck_after: Duration = Duration(10.0)
    """A request in flight for longer sets ``plumbline_probe_success`` to 0; at least 1s. After twice this time it has
    failed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_place(self, self.endpoint, self.bucket)


def _check_place(probe: ProbeBase, endpoint: str, bucket: str) -> None:
    if not _ENDPOINT.fullmatch(endpoint):
        # the error omits the value, which may contain a password
        raise FieldError("endpoint", "http:// or https:// with a host and nothing else")
    if not _BUCKET.fullmatch(bucket):
        raise probe.mistake("bucket", "3 to 63 lower-case letters, digits, '.' and '-'")
