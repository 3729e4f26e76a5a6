"""``promtool check metrics`` on a page."""

from __future__ import annotations

import subprocess

from .programs import need

ARGUED = frozenset(
    f'{name} use base unit "bytes" instead of "bits"'
    for name in (
        "plumbline_nic_speed_bits_per_second",
        "plumbline_nic_max_speed_bits_per_second",
        "plumbline_infiniband_rate_bits_per_second",
    )
)
"""Complaints we leave: the kernel, ethtool and every switch state a link's speed in bits per second, and the name
is part of the metric contract."""


def complaints(page: bytes) -> list[str]:
    """Everything else that it has to say about a page in the text format; a page it can't parse included."""
    done = subprocess.run(
        [need("promtool"), "check", "metrics"], input=page, capture_output=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).decode().splitlines()
    assert said or done.returncode == 0, done.returncode
    return [line for line in said if line not in ARGUED]
