"""The configuration of each kind of probe: one struct a kind, told apart by ``type``."""

from __future__ import annotations

from plumbline.probe_configs.ceph import CephProbe
from plumbline.probe_configs.disk import DiskProbe
from plumbline.probe_configs.filesystem import FilesystemConfig
from plumbline.probe_configs.network import NetworkProbe
from plumbline.probe_configs.object import S3Config

ProbeConfig = DiskProbe | NetworkProbe | CephProbe | FilesystemConfig | S3Config
