"""What the test cluster's daemons read: the configuration and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

OSDS = 3


def conf_text(
    folder: Path,
    fsid: str,
    mon_ports: Sequence[int],
    *,
    ports: range,
    osd_gib: int,
    options: Mapping[str, str],
    address: str,
    osd_addresses: Mapping[int, str],
) -> str:
    """``ceph.conf``: everything of the cluster is in ``folder``, and small; OSDs and managers listen on ``ports`` of
    ``address``, OSDs in ``osd_addresses`` on their own."""
    both = ",".join(f"v{version}:{address}:{port}" for version, port in zip((2, 1), mon_ports, strict=True))
    everyone = {
        "fsid": fsid,
        "mon_host": f"[{both}]",
        "public_addr": address,
        "cluster_addr": address,
        "run_dir": f"{folder}/run",
        "admin_socket": f"{folder}/run/$cluster-$name.asok",
        "log_file": f"{folder}/log/$name.log",
        "mon_cluster_log_file": f"{folder}/log/cluster.log",
        "crash_dir": f"{folder}/crash",
        "keyring": f"{folder}/$cluster.$name.keyring",
        **QUIET,
        "osd_crush_chooseleaf_type": "1",
        "osd_pool_default_size": "2",
        "osd_pool_default_min_size": "1",
        "osd_pool_default_pg_num": "8",
        "osd_pool_default_pg_autoscale_mode": "off",
        "mon_allow_pool_delete": "true",
        "mon_allow_pool_size_one": "true",
        "mon_warn_on_pool_no_redundancy": "false",
        "auth_allow_insecure_global_id_reclaim": "false",
        # a developer's disk is often nearly full
        "mon_data_avail_warn": "1",
        "mon_data_avail_crit": "0",
        "ms_async_op_threads": "2",
        # several clusters run beside each other: an OSD must not get the port of another cluster's dead one
        "ms_bind_port_min": str(ports.start),
        "ms_bind_port_max": str(ports.stop - 1),
        **_PROMPT,
        **options,
    }
    mon = {"mon_data": f"{folder}/mon/$id", "mgr_initial_modules": "prometheus", "mon_osd_min_down_reporters": "1"}
    mgr = {"mgr_data": f"{folder}/mgr/$id"}
    osd = {
        "osd_data": f"{folder}/osd/$id",
        "bluestore_block_size": str(osd_gib << 30),
        "osd_memory_target": str(1 << 30),
        "bluestore_cache_autotune": "false",
        "bluestore_cache_size": str(64 << 20),
        "osd_op_num_shards": "2",
        "osd_op_num_threads_per_shard": "1",
        "osd_fast_shutdown_notify_mon": "true",
        "osd_max_backfills": "4",
    }
    clients = {
        "admin_socket": f"{folder}/run/$cluster-$name-$pid.$cctid.asok",
        "log_file": f"{folder}/log/$name.$pid.log",
    }
    sections = {"global": everyone, "mon": mon, "mgr": mgr, "osd": osd, "client": clients}
    for number in range(OSDS):
        own = osd_addresses.get(number, address)
        sections[f"osd.{number}"] = {
            "crush_location": f"root=default host=node-{number}",
            "public_addr": own,
            "cluster_addr": own,
        }
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()) + "\n"
        for name, values in sections.items()
    )


_PROMPT = {
    "paxos_propose_interval": "0.1",
    "mgr_stats_period": "1",
    "mgr_tick_period": "1",
    "mon_mgr_digest_period": "1",
    "mon_tick_interval": "1",
    "osd_mon_report_interval": "1",
}
"""Daemons tell each other every second what they tell every five by default; nobody's test is about that."""
_DEBUG = (
    "asok", "auth", "bdev", "bluefs", "bluestore", "client", "crush", "filer", "finisher", "heartbeatmap", "mgr",
    "mgrc", "mon", "monc", "ms", "objecter", "objectcacher", "osd", "paxos", "perfcounter", "rados", "rbd", "rgw",
    "rocksdb", "throttle", "timer", "tp",
)  # fmt: skip
QUIET = {f"debug_{part}": "0/0" for part in _DEBUG}
"""Memory and CPU time for what nobody reads in a test."""
