"""Probes' part of a real cluster, as `plumbline ceph setup` makes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from plumbline.commands.ceph import admin as cephadmin
from plumbline.commands.ceph import setup as ceph_setup
from plumbline.config.model import CephConfig
from plumbline.config.types import Duration

from .ceph_client import CephClient

GROUPS = 64
"""Of the pool for objects. Where its groups lie depends on the pool's number, so on how many pools other tests made
before: of 8 groups on three OSDs every eighth pool leaves one OSD without a single first place, of 64 none in 10^10."""


@contextlib.contextmanager
def set_up(cluster: CephClient, *, timeout_s: float = 10.0, osd_bench: bool = False) -> Iterator[CephConfig]:
    """Pools and the confined user; taken back afterwards with all they hold, whoever's it is."""
    config = CephConfig(
        conf=str(cluster.conf),
        keyring=str(cluster.keyring("client.plumbline")),
        osd_bench_user="plumbline-bench" if osd_bench else None,
        osd_bench_keyring=str(cluster.keyring("client.plumbline-bench")) if osd_bench else None,
        timeout=Duration(timeout_s),
    )
    admin = cephadmin.Cluster(cephadmin.Admin(str(cluster.conf)), cluster.environment)
    want = cephadmin.requirements(config, osd_bench=osd_bench, groups=GROUPS)
    plan = ceph_setup.setup(want, admin.look(want))
    assert not plan.foreign, plan.foreign
    try:
        admin.apply(plan, before=lambda _step: None)
        cluster.wait_clean()
        yield config
    finally:
        cluster.heal()
        for pool in want.pools:
            cluster.remove_pool(pool.name)
        for user in want.users:
            cluster.remove_user(user)
