"""The configuration of each kind of probe: one struct a kind, selected by ``type``."""

from plumbline.config.probes.ceph import CephProbe
from plumbline.config.probes.disk import DiskProbe
from plumbline.config.probes.filesystem import FilesystemCanaryConfig, FilesystemConfig
from plumbline.config.probes.network import NetworkProbe
from plumbline.config.probes.object import S3CanaryConfig, S3Config

ProbeConfig = (
    DiskProbe | NetworkProbe | CephProbe | FilesystemConfig | FilesystemCanaryConfig | S3Config | S3CanaryConfig
)
