"""The table: every group of rows, in the order they are taken. Later ones have more broken devices before them."""

from __future__ import annotations

from lab.rows import (
    bond,
    boot,
    canary,
    ceph,
    cephadm,
    container,
    demo,
    dm,
    enclosure,
    host,
    md,
    multipath,
    net,
    nvme,
    pcie,
    pressure,
    rdma,
    scsi,
    state,
)
from lab.table import Group

GROUPS: tuple[Group, ...] = (
    net.GROUP,
    rdma.GROUP,
    bond.GROUP,
    scsi.GROUP,
    enclosure.GROUP,
    nvme.GROUP,
    md.GROUP,
    dm.GROUP,
    multipath.GROUP,
    pcie.GROUP,
    pressure.GROUP,
    canary.GROUP,
    state.GROUP,
    host.GROUP,
    ceph.GROUP,
    demo.GROUP,
    container.GROUP,
    boot.GROUP,
    cephadm.GROUP,
)
