"""The RADOS binding against a real cluster: objects, locks, refusals, and limits of time where nothing answers."""

from __future__ import annotations

import errno
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.errors import Unavailable
from plumbline.probes.ceph.librados import Access, Cluster, Pool, connect
from support.ceph_cluster import CephCluster
from support.daemon import eventually

pytestmark = [pytest.mark.integration, pytest.mark.ceph]

POOL, NAMESPACE, USER = "plumbline-probe", "plumbline", "client.plumbline"
CAPS = {"mon": "allow service mon r, allow service osd r", "osd": f"allow rwx pool={POOL} namespace={NAMESPACE}"}
"""The narrowest that let the user reach the pool, ask for health and mappings, work on its objects and lock."""
SHORT_S = 3
PROMPT = 20
"""So many times its own limit may a bounded wait take on a busy machine; what it waits for would never come."""


@pytest.fixture(scope="module")
def access(shared_ceph: CephCluster) -> Iterator[Access]:
    shared_ceph.add_pool(POOL)
    shared_ceph.add_pool("foreign")
    shared_ceph.run("rados", "-p", "foreign", "put", "secret", shared_ceph.conf)
    shared_ceph.run("rados", "-p", POOL, "put", "secret", shared_ceph.conf)
    keyring = shared_ceph.add_user(USER, CAPS)
    yield Access(USER, str(shared_ceph.conf), str(keyring), connect_timeout_s=60, operation_timeout_s=60)
    shared_ceph.remove_user(USER)
    shared_ceph.remove_pool(POOL)
    shared_ceph.remove_pool("foreign")


@pytest.fixture
def cluster(ceph: CephCluster, access: Access) -> Iterator[Cluster]:
    with connect(access) as made:
        yield made


@pytest.fixture
def pool(cluster: Cluster) -> Iterator[Pool]:
    with cluster.pool(POOL, namespace=NAMESPACE) as made:
        yield made
        for oid in list(made.objects()):
            made.remove(oid)


def timed(call: Callable[[], object], expected: type[Exception]) -> tuple[str, float]:
    """What it says when it fails as expected, and the seconds it took."""
    began = time.monotonic()
    with pytest.raises(expected) as raised:
        call()
    return str(raised.value), time.monotonic() - began


@pytest.mark.parametrize("size", [0, 1, 4096, 4 << 20])
def test_an_object_is_written_read_listed_and_removed(pool: Pool, size: int) -> None:
    data = os.urandom(size)
    pool.write_full("canary", data)
    assert pool.read("canary", size + 1) == data
    assert list(pool.objects()) == ["canary"]
    pool.write_full("canary", b"shorter")
    assert pool.read("canary", 100) == b"shorter"
    pool.remove("canary")
    assert list(pool.objects()) == []


def test_many_removals_at_a_time(pool: Pool) -> None:
    names = [f"object-{number}" for number in range(64)]
    for oid in names:
        pool.write_full(oid, b"x")
    for removal in [pool.start_remove(oid) for oid in names]:
        removal.result()
    assert list(pool.objects()) == []
    with pytest.raises(FileNotFoundError):
        pool.start_remove("object-0").result()


def test_a_missing_object_is_a_missing_file(pool: Pool) -> None:
    for call in (lambda: pool.read("x", 1), lambda: pool.remove("x")):
        with pytest.raises(FileNotFoundError) as raised:
            call()
        assert raised.value.filename == f"{POOL}/{NAMESPACE}/x"


def test_the_monitors_answer(ceph: CephCluster, cluster: Cluster) -> None:
    assert cluster.mon_command("health")["status"] == "HEALTH_OK"
    assert cluster.mon_command("quorum_status")["quorum_names"] == ["a"]
    assert {pool["pool_name"] for pool in cluster.mon_command("osd dump")["pools"]} >= {POOL, "foreign"}
    ours = {"pool": POOL, "object": "canary", "nspace": NAMESPACE}
    theirs = ceph.ceph_json("osd", "map", POOL, "canary", NAMESPACE)
    assert cluster.mon_command("osd map", ours)["acting_primary"] == theirs["acting_primary"]


def test_a_refused_command_says_why(cluster: Cluster) -> None:
    assert "access denied" in timed(lambda: cluster.mon_command("osd down", {"ids": ["0"]}), PermissionError)[0]
    assert "does not exist" in timed(lambda: cluster.mon_command("osd map", {"pool": "no", "object": "x"}), OSError)[0]
    assert "command not known" in timed(lambda: cluster.mon_command("make tea"), OSError)[0]


def test_the_confined_user_stays_in_its_namespace(ceph: CephCluster, cluster: Cluster, pool: Pool) -> None:
    for foreign in (cluster.pool(POOL), cluster.pool("foreign"), cluster.pool("foreign", namespace=NAMESPACE)):
        with foreign:
            attempts: tuple[Callable[[], object], ...] = (
                lambda at=foreign: at.read("secret", 1),  # type: ignore[misc]
                lambda at=foreign: at.write_full("secret", b""),  # type: ignore[misc]
                lambda at=foreign: at.remove("secret"),  # type: ignore[misc]
                lambda at=foreign: at.lock("secret", "heavy", cookie="a", lease_s=1),  # type: ignore[misc]
                lambda at=foreign: list(at.objects()),  # type: ignore[misc]
            )
            for attempt in attempts:
                with pytest.raises(PermissionError):
                    attempt()
    assert ceph.run("rados", "-p", "foreign", "get", "secret", "-") == ceph.conf.read_text()
    timed(lambda: cluster.mon_command("auth ls"), PermissionError)
    timed(lambda: cluster.mon_command("config-key ls"), PermissionError)


@pytest.mark.parametrize("cap", ["mon", "osd"])
def test_less_than_these_capabilities_do_not_suffice(ceph: CephCluster, access: Access, cap: str) -> None:
    """Without the map no pool can be opened; without class methods no lock can be taken."""
    less = CAPS | {"mon": "allow service mon r"} if cap == "mon" else CAPS | {"osd": CAPS["osd"].replace("rwx", "rw")}
    keyring = ceph.add_user("client.less", less)
    try:
        found = replace(access, user="client.less", keyring=str(keyring), operation_timeout_s=SHORT_S)
        with connect(found) as cluster:
            if cap == "mon":
                timed(lambda: cluster.pool(POOL), TimeoutError)
            else:
                with cluster.pool(POOL, namespace=NAMESPACE) as pool:
                    pool.write_full("canary", b"x")
                    pool.remove("canary")
                    timed(lambda: pool.lock("lock", "heavy", cookie="a", lease_s=1), PermissionError)
    finally:
        ceph.remove_user("client.less")


def test_a_lock_has_one_holder(access: Access, cluster: Cluster, pool: Pool) -> None:
    with connect(access) as other, other.pool(POOL, namespace=NAMESPACE) as theirs:
        assert pool.lockers("lock", "heavy") == ()
        assert pool.lock("lock", "heavy", cookie="a", description="fio on osd.1", lease_s=600)
        (holder,) = theirs.lockers("lock", "heavy")
        assert re.fullmatch(r"client\.\d+", holder.client)
        assert holder.cookie == "a"
        assert "127.0.0.1" in holder.address
        assert not theirs.lock("lock", "heavy", cookie="a", lease_s=600)
        assert not theirs.renew("lock", "heavy", cookie="a", lease_s=600)
        assert not theirs.unlock("lock", "heavy", cookie="a")
        assert pool.renew("lock", "heavy", cookie="a", lease_s=600)
        assert pool.unlock("lock", "heavy", cookie="a")
        assert not pool.unlock("lock", "heavy", cookie="a")
        assert not pool.renew("lock", "heavy", cookie="a", lease_s=600)
        assert theirs.lock("lock", "heavy", cookie="b", lease_s=600)
        assert theirs.unlock("lock", "heavy", cookie="b")
        assert pool.lockers("lock", "heavy") == ()
    with pytest.raises(ValueError, match="without an end"):
        pool.lock("lock", "heavy", cookie="a", lease_s=0)


HOLDER = """
import sys, time
from plumbline.probes.ceph.librados import Access, connect
conf, user, keyring, pool, namespace = sys.argv[1:]
held = connect(Access(user, conf, keyring)).pool(pool, namespace=namespace)
assert held.lock("lock", "heavy", cookie="a", lease_s=8)
print("held", flush=True)
time.sleep(600)
"""


def test_the_lease_of_a_killed_holder_ends(access: Access, pool: Pool) -> None:
    argv = [sys.executable, "-c", HOLDER, access.conf, USER, access.keyring, POOL, NAMESPACE]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            assert len(pool.lockers("lock", "heavy")) == 1
        finally:
            holder.kill()
    began = time.monotonic()
    assert not pool.lock("lock", "heavy", cookie="b", lease_s=60), "a dead holder's lease still runs"
    eventually(lambda: pool.lock("lock", "heavy", cookie="b", lease_s=60), within_s=8 * PROMPT)
    assert time.monotonic() - began > 1
    (now,) = pool.lockers("lock", "heavy")
    assert now.cookie == "b"


def test_a_wrong_key_is_refused_at_once(ceph: CephCluster, access: Access, tmp_path: Path) -> None:
    foreign = tmp_path / "keyring"
    foreign.write_text(ceph.keyring("osd.0").read_text().replace("[osd.0]", f"[{USER}]"))
    foreign.chmod(0o600)
    said, took = timed(lambda: connect(replace(access, keyring=str(foreign))), Unavailable)
    assert said.startswith(f"{access.conf} as {USER}: the monitors refuse it; does the keyring hold this user's key")
    assert took < access.connect_timeout_s


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"conf": "/no/ceph.conf"}, "/no/ceph.conf: not there"),
        ({"keyring": "/no/keyring"}, "/no/keyring: not there"),
        ({"user": "plumbline"}, "not a user's name"),
        ({"user": "client.nobody"}, "does the keyring hold this user's key"),
        # librados 20 takes any file and finds no key in it
        ({"keyring": __file__}, f"{__file__} is not a keyring|does the keyring hold this user's key"),
    ],
)
def test_what_is_not_there_is_named(access: Access, change: dict[str, str], expected: str) -> None:
    said, _ = timed(lambda: connect(replace(access, **change)), Unavailable)  # type: ignore[arg-type]
    assert re.search(expected, said)


def test_a_configuration_without_monitors(access: Access, tmp_path: Path) -> None:
    empty = tmp_path / "ceph.conf"
    empty.write_text("[global]\n")
    said, took = timed(lambda: connect(replace(access, conf=str(empty), connect_timeout_s=SHORT_S)), Unavailable)
    assert str(empty) in said
    assert "monitors" in said
    assert took < SHORT_S * PROMPT


def test_no_pool_of_that_name(cluster: Cluster) -> None:
    assert "no pool 'nowhere'" in timed(lambda: cluster.pool("nowhere"), Unavailable)[0]


def test_a_silent_monitor_bounds_every_wait(ceph: CephCluster, access: Access) -> None:
    """And objects are still served: the monitors are not in their way."""
    short = replace(access, connect_timeout_s=SHORT_S, operation_timeout_s=SHORT_S)
    with connect(short) as cluster, cluster.pool(POOL, namespace=NAMESPACE) as pool:
        pool.write_full("canary", b"before")
        ceph.freeze("mon.a")
        said, took = timed(lambda: connect(short), Unavailable)
        assert f"no monitor answered within {SHORT_S} s" in said
        assert SHORT_S * 0.9 < took < SHORT_S * PROMPT
        assert SHORT_S * 0.9 < timed(lambda: cluster.mon_command("health"), TimeoutError)[1] < SHORT_S * PROMPT
        assert pool.read("canary", 10) == b"before"
        ceph.thaw("mon.a")
        eventually(lambda: cluster.mon_command("quorum_status")["quorum_names"] == ["a"])
        pool.remove("canary")


def test_a_dead_monitor_bounds_the_wait(ceph: CephCluster, access: Access) -> None:
    ceph.kill_mon()
    said, took = timed(lambda: connect(replace(access, connect_timeout_s=SHORT_S)), Unavailable)
    assert f"no monitor answered within {SHORT_S} s" in said
    assert took < SHORT_S * PROMPT


def test_a_silent_osd_bounds_its_objects_and_no_others(ceph: CephCluster, access: Access) -> None:
    with (
        connect(replace(access, operation_timeout_s=SHORT_S)) as cluster,
        cluster.pool(POOL, namespace=NAMESPACE) as pool,
    ):
        acting = {
            oid: cluster.mon_command("osd map", {"pool": POOL, "object": oid, "nspace": NAMESPACE})["acting"]
            for oid in (f"object-{number}" for number in range(64))
        }
        stuck = next(oid for oid, osds in acting.items() if osds[0] == 0)
        free = next(oid for oid, osds in acting.items() if 0 not in osds)
        pool.write_full(free, b"free")
        ceph.freeze_osd(0)
        began = pool.start_remove(stuck)
        assert SHORT_S * 0.9 < timed(lambda: pool.write_full(stuck, b"stuck"), TimeoutError)[1] < SHORT_S * PROMPT
        assert timed(began.result, TimeoutError)
        assert pool.read(free, 10) == b"free"
    ceph.heal()


def test_a_full_pool_is_an_error_not_a_hang(ceph: CephCluster, access: Access, cluster: Cluster) -> None:
    ceph.add_pool("small")
    try:
        keyring = ceph.add_user("client.small", CAPS | {"osd": "allow rwx pool=small"})
        with (
            connect(replace(access, user="client.small", keyring=str(keyring), operation_timeout_s=SHORT_S)) as other,
            other.pool("small") as pool,
        ):
            pool.write_full("first", b"x")
            ceph.ceph("osd", "pool", "set-quota", "small", "max_objects", "1")
            eventually(lambda: "POOL_FULL" in ceph.ceph_json("health")["checks"], within_s=120)

            names = (f"another-{number}" for number in itertools.count())

            def refused() -> bool:
                try:
                    pool.write_full(next(names), b"x")  # an object that is there already may be written over
                except OSError as error:
                    return error.errno in (errno.EDQUOT, errno.ENOSPC)
                return False  # the OSD has not heard of it yet

            eventually(refused, within_s=120)
            assert pool.read("first", 10) == b"x"
            pool.remove("first")
    finally:
        ceph.remove_user("client.small")
        ceph.remove_pool("small")
