"""Programs that tests need and a machine may lack: named, so that a skip says what to install."""

from __future__ import annotations

import shutil

import pytest

DEBIAN_PACKAGES = {
    "addpart": "util-linux",
    "amtool": "prometheus-alertmanager",
    "bpftrace": "bpftrace",
    "chromium": "chromium",
    "ethtool": "ethtool",
    "fio": "fio",
    "ip": "iproute2",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "lspci": "pciutils",
    "mount": "mount",
    "openssl": "openssl",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "promtool": "prometheus",
    "setpci": "pciutils",
    "smartctl": "smartmontools",
    "setpriv": "util-linux",
    "systemd-analyze": "systemd",
    "umount": "mount",
}
"""Program → the Debian package that brings it (requirements/debian-test.txt lists the packages)."""


def need(program: str) -> str:
    """The path of ``program``; without it the test is skipped with the package's name as the reason."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian package {DEBIAN_PACKAGES[program]})")
    return found
