"""Whether a monitor or manager of a cluster runs on this host, without using a Ceph command.

    /var/lib/ceph/mon/ceph-stor01, /var/lib/ceph/mgr/ceph-stor01                        packages
    /etc/systemd/system/ceph-mon.target.wants/ceph-mon@stor01.service
    /var/lib/ceph/<fsid>/mon.stor01, /var/lib/ceph/<fsid>/mgr.stor01.abcdef             cephadm
    /etc/systemd/system/ceph-<fsid>.target.wants/ceph-<fsid>@mon.stor01.service
    /var/lib/rook/mon-a                                                                 Rook; its managers leave nothing

``/var/lib/ceph`` is closed to other users, as are the admin sockets in ``/run/ceph``, which would add nothing. Anyone
may read which units are enabled. https://docs.ceph.com/en/latest/cephadm/operations/, rook.io: dataDirHostPath
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plumbline.core.roots import Roots
from plumbline.sources.kernel.sysfs import entries

_FSID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_OF_CEPHADM = re.compile(r"(?:mon|mgr)\..+")
_TARGET = re.compile(rf"ceph-(?:mon|mgr|{_FSID})\.target\.wants")
_UNIT = re.compile(rf"ceph-(?:(?:mon|mgr)@|{_FSID}@(?:mon|mgr)\.).+\.service")
_OF_ROOK = re.compile(r"mon-[a-z]+")


def head_daemon(roots: Roots) -> str:
    """A path that shows a monitor or manager; empty: there is none, or none that this user may see."""
    return next(_paths(roots), "")


def _paths(roots: Roots) -> Iterator[str]:
    ceph, rook, units = roots.var / "lib" / "ceph", roots.var / "lib" / "rook", roots.etc / "systemd" / "system"
    for kind in ("mon", "mgr"):
        yield from (str(ceph / kind / name) for name in entries(ceph / kind))
    for cluster in entries(ceph):
        if re.fullmatch(_FSID, cluster):
            yield from (str(ceph / cluster / name) for name in entries(ceph / cluster) if _OF_CEPHADM.fullmatch(name))
    yield from (str(rook / name) for name in entries(rook) if _OF_ROOK.fullmatch(name))
    for target in entries(units):
        if _TARGET.fullmatch(target):
            yield from (str(units / target / name) for name in entries(units / target) if _UNIT.fullmatch(name))
