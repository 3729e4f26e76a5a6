"""The hosts' Ceph, Debian's, as services of their systemd: a monitor and two OSDs on each, the manager on the first."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.ceph_client import CephClient
from support.ceph_files import QUIET
from support.rules import ROOT

if TYPE_CHECKING:
    from lab.cluster.hosts import Host

HOSTS = ("s1", "s2", "s3")
OSDS_EACH = 2
CLIENT = "10.10.0.1"
MANAGER, METRICS_PORT = "x", 9283
WITHIN_S = 900.0
_CIPHER_CHECKS = (
    "AUTH_INSECURE_SERVICE_KEY_TYPE", "AUTH_INSECURE_CLIENT_KEY_TYPE", "AUTH_INSECURE_KEYS_ALLOWED",
    "AUTH_INSECURE_KEYS_CREATABLE", "AUTH_INSECURE_SERVICE_TICKETS", "AUTH_INSECURE_ROTATING_SERVICE_KEY_TYPE",
)  # fmt: skip
_BCRYPT = ROOT / "requirements/ceph-18-bcrypt.txt"
_NETWORK = "10.10.0.0/24"

_MONITOR = """
ciphers='--auth-service-cipher aes --auth-allowed-ciphers aes,aes256k --auth-preferred-cipher aes'
monmaptool --help 2>&1 | grep -q auth-allowed-ciphers || ciphers=''   # Ceph 20 refuses keys that this machine's can use
monmaptool --create --fsid {fsid} $ciphers {monitors} /run/monmap
mkdir /var/lib/ceph/mon/ceph-{host}
ceph-mon -i {host} --mkfs --monmap /run/monmap --keyring /etc/ceph/seed
chown -Rh ceph:ceph /var/lib/ceph
systemctl start ceph-mon@{host}
"""
_OSD = """
ceph-osd -i {number} --mkfs --no-mon-config --osd-uuid {uuid}
chown -Rh ceph:ceph /var/lib/ceph/osd/ceph-{number}
systemctl start ceph-osd@{number}
"""


@dataclass(frozen=True, slots=True)
class Keys:
    """Everybody's, and the cluster's identity."""

    fsid: str
    keyrings: Mapping[str, str]
    uuids: tuple[str, ...]

    @property
    def seed(self) -> str:
        """What a monitor's new store knows."""
        return "".join(self.keyrings.values())


def osds(host: str) -> range:
    """Their numbers."""
    first = HOSTS.index(host) * OSDS_EACH
    return range(first, first + OSDS_EACH)


def address(host: str) -> str:
    """On the switch."""
    return f"10.10.0.{11 + HOSTS.index(host)}"


def new_keys(folder: Path) -> Keys:
    """Made by Ceph's own tool, in ``folder``."""
    caps = {
        "mon.": {"mon": "allow *"},
        "client.admin": dict.fromkeys(("mon", "osd", "mgr", "mds"), "allow *"),
        f"mgr.{MANAGER}": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    }
    numbers = range(len(HOSTS) * OSDS_EACH)
    caps |= {f"osd.{n}": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"} for n in numbers}
    found = {}
    for name, given in caps.items():
        file = folder / f"ceph.{name}.keyring"
        words = [word for pair in given.items() for word in ("--cap", *pair)]
        argv = ["ceph-authtool", str(file), "--create-keyring", "--gen-key", "-n", name, *words]
        subprocess.run(argv, check=True, capture_output=True)
        found[name] = file.read_text()
    return Keys(str(uuid.uuid4()), found, tuple(str(uuid.uuid4()) for _ in numbers))


def conf(keys: Keys, **client: str) -> str:
    """``ceph.conf`` of a host; ``client``: of the client's."""
    everyone = {
        "fsid": keys.fsid,
        "mon_host": ",".join(f"[v2:{address(host)}:3300,v1:{address(host)}:6789]" for host in HOSTS),
        "public_network": _NETWORK,
        **QUIET,
        "osd_pool_default_size": "3",
        "osd_pool_default_min_size": "2",
        "osd_pool_default_pg_num": "16",
        "osd_pool_default_pg_autoscale_mode": "off",
        "mon_allow_pool_delete": "true",
        "mon_allow_pool_size_one": "true",
        "mon_warn_on_pool_no_redundancy": "false",
        "auth_allow_insecure_global_id_reclaim": "false",
        "ms_async_op_threads": "2",
    }
    sections = {
        "global": everyone,
        # the disk of a machine that develops is often nearly full
        "mon": {
            "mon_data_avail_warn": "1",
            "mon_data_avail_crit": "0",
            "mgr_initial_modules": "prometheus",
            "mon_auth_allow_insecure_key": "true",
        },
        "osd": {
            "admin_socket_mode": "0770",
            "osd_memory_target": str(1 << 30),
            "bluestore_cache_autotune": "false",
            "bluestore_cache_size": str(64 << 20),
            "osd_op_num_shards": "2",
            "osd_op_num_threads_per_shard": "1",
        },
        "client": client,
    }
    lines = (
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in of.items()) for name, of in sections.items()
    )
    return "\n".join(lines)


def install(host: Host, keys: Keys) -> None:
    """The configuration, and the monitor, started."""
    host.write("etc/ceph/ceph.conf", conf(keys))
    host.write("etc/ceph/seed", keys.seed)
    monitors = " ".join(f"--addv {each} '[v2:{address(each)}:3300,v1:{address(each)}:6789]'" for each in HOSTS)
    host.run(_MONITOR.format(fsid=keys.fsid, monitors=monitors, host=host.name))


def start_osds(host: Host, keys: Keys) -> None:
    """Made on their disks and started; the cluster knows their numbers."""
    for number, disk in host.disks.items():
        home = f"var/lib/ceph/osd/ceph-{number}"
        host.write(f"{home}/keyring", keys.keyrings[f"osd.{number}"])
        (host.inside.root / home / "block").symlink_to(f"/dev/{disk}")
        host.run(_OSD.format(number=number, uuid=keys.uuids[number]))


def admit(host: Host, keyring: str) -> None:
    """The daemon to the cluster, as docs/ceph.md says: each host has a monitor, so each asks for the map."""
    host.write("etc/ceph/ceph.client.plumbline.keyring", keyring)
    host.drop_in("ceph.conf")
    host.run("echo 'ceph: {keyring: credential:ceph-keyring}' >>/etc/plumbline/plumbline.yaml")
    host.run("systemctl daemon-reload; systemctl restart plumbline")


def fetch_bcrypt(folder: Path, suite: str) -> Path | None:
    """What Debian 13's manager can load (docs/ceph.md), from where this machine has its packages."""
    if suite != "trixie":
        return None
    where = folder / "bcrypt"
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(where), "-r", str(_BCRYPT)]
    subprocess.run(argv, check=True)
    return where


def start_manager(host: Host, keys: Keys, bcrypt: Path | None) -> None:
    """With its Prometheus module."""
    if bcrypt:
        packages = host.inside.root / "usr/lib/python3/dist-packages"
        shutil.rmtree(packages / "bcrypt")
        shutil.copytree(bcrypt, packages, dirs_exist_ok=True)
    home = f"var/lib/ceph/mgr/ceph-{MANAGER}"
    host.write(f"{home}/keyring", keys.keyrings[f"mgr.{MANAGER}"])
    host.run(f"chown -R ceph:ceph /{home}; systemctl start ceph-mgr@{MANAGER}")


def client(folder: Path, keys: Keys) -> CephClient:
    """The administrator, on this machine: ``folder`` has the keyrings."""
    mine = {"keyring": f"{folder}/$cluster.$name.keyring", "admin_socket": "", "log_file": f"{folder}/$name.log"}
    (folder / "ceph.conf").write_text(conf(keys, **mine))
    return CephClient(folder, osds=len(keys.uuids))


def first_commands(keys: Keys) -> Iterator[str]:
    """For a new cluster, before its first OSD starts."""
    for check in _CIPHER_CHECKS:
        yield f"health mute {check} --sticky"
    for number, each in enumerate(keys.uuids):
        yield f"osd new {each} {number}"
    yield "config set mgr mgr/devicehealth/enable_monitoring false --force"
    yield "config set mgr mgr/prometheus/exclude_perf_counters false --force"
