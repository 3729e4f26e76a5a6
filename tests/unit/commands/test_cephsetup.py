"""What is made in a cluster and what is left alone, from facts alone."""

from __future__ import annotations

import pytest

from plumbline.commands.ceph import admin as cephadmin
from plumbline.commands.ceph import setup as cephsetup
from plumbline.commands.ceph.setup import IMAGES, OBJECTS, Facts, PoolFacts, Requirements, first_foreign, groups_for
from plumbline.config.model import CephConfig

OURS = {"plumbline": {}}
OURS_RBD = {"rbd": {"plumbline": "probe"}}
USER = "client.plumbline"
KEYRING = f"/etc/ceph/ceph.{USER}.keyring"


def wanted(*classes: str, **more: object) -> Requirements:
    return cephadmin.requirements(CephConfig(), device_classes=classes, groups=32, **more)  # type: ignore[arg-type]


def complete(want: Requirements, **more: object) -> Facts:
    """A cluster that has it all."""
    pools = {
        pool.name: PoolFacts(OURS if pool.kind == OBJECTS else OURS_RBD, pool.rule or "replicated_rule")
        for pool in want.pools
    }
    facts: dict[str, object] = {
        "pools": pools,
        "rules": {"replicated_rule": "default", **{each.rule: f"default~{each.device_class}" for each in want.pools}},
        "users": {user: caps for user, (_, caps) in want.users.items()},
        "keyrings": {keyring: user for user, (keyring, _) in want.users.items()},
    }
    return Facts(**facts | more)  # type: ignore[arg-type]


def lines(plan: cephsetup.Plan) -> list[str]:
    return [" ".join(step.argv) for step in plan.steps]


def test_everything_in_an_empty_cluster() -> None:
    plan = cephsetup.setup(wanted("ssd"), Facts())
    assert lines(plan) == [
        "ceph osd pool create plumbline-probe 32 32 replicated --autoscale-mode=off",
        "ceph osd pool application enable plumbline-probe plumbline",
        "ceph osd crush rule create-replicated plumbline-ssd default host ssd",
        "ceph osd pool create plumbline-probe-ssd 32 32 replicated plumbline-ssd --autoscale-mode=off",
        "ceph osd pool application enable plumbline-probe-ssd plumbline",
        "ceph osd pool create plumbline-rbd 32 32 replicated",
        "ceph osd pool application enable plumbline-rbd rbd",
        "ceph osd pool application set plumbline-rbd rbd plumbline probe",
        "rbd pool init plumbline-rbd",
        "ceph auth get-or-create client.plumbline mon allow service mon r, allow service osd r"
        " osd allow rwx pool=plumbline-probe namespace=plumbline,"
        " allow rwx pool=plumbline-probe-ssd namespace=plumbline, profile rbd pool=plumbline-rbd",
    ]
    assert [step.keyring for step in plan.steps if step.keyring] == [KEYRING]


def test_nothing_in_a_complete_one() -> None:
    want = wanted("ssd", osd_bench=True)
    plan = cephsetup.setup(want, complete(want))
    assert (plan.steps, plan.foreign) == ((), ())
    assert set(plan.there) >= {"pool plumbline-probe", "pool plumbline-probe-ssd", f"user {USER}"}


def test_a_key_that_was_rotated_is_written_again() -> None:
    want = wanted(osd_bench=True)
    (step,) = cephsetup.setup(want, complete(want, outdated=frozenset({USER}))).steps
    assert (step.argv[:4], step.keyring) == (("ceph", "auth", "get-or-create", USER), KEYRING)
    assert step.why == "its key was changed; the new one replaces that in the file"


def test_a_class_more_gives_the_user_a_pool_more() -> None:
    before, after = wanted(), wanted("ssd")
    plan = cephsetup.setup(after, complete(before))
    assert plan.foreign == ()
    (caps,) = [step for step in plan.steps if step.argv[:3] == ("ceph", "auth", "caps")]
    assert caps.argv[4:] == ("mon", cephsetup.MON_CAPS, "osd", after.osd_caps)


def test_the_user_for_benches_is_made_only_when_asked_for() -> None:
    assert "bench" not in str(cephsetup.setup(wanted(), Facts()))
    (step,) = [each for each in cephsetup.setup(wanted(osd_bench=True), Facts()).steps if "bench" in each.argv[3]]
    assert step.argv[3:] == ("client.plumbline-bench", "mon", cephsetup.MON_CAPS, "osd", "allow *")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"pools": {"plumbline-probe": PoolFacts({"rgw": {}})}}, "pool plumbline-probe is used by rgw"),
        ({"pools": {"plumbline-probe": PoolFacts({})}}, "mark it: ceph osd pool application enable plumbline-probe"),
        ({"pools": {"plumbline-rbd": PoolFacts({"rbd": {}})}}, "pool plumbline-rbd is used by rbd"),
        ({"pools": {"plumbline-rbd": PoolFacts(OURS)}}, "pool plumbline-rbd is used by plumbline"),
        ({"pools": {"plumbline-probe": PoolFacts(OURS, foreign="x")}}, "holds an object that is not ours (x)"),
        ({"users": {USER: {"mon": "allow *"}}}, f"user {USER} has rights beyond ours (mon 'allow *')"),
        ({"users": {USER: {}}}, "has rights beyond ours (none)"),
        ({"keyrings": {KEYRING: ""}}, f"{KEYRING} holds other keys"),
        ({"keyrings": {KEYRING: "client.admin"}}, f"{KEYRING} holds other keys"),
        ({"rules": {"plumbline-ssd": "default~hdd"}}, "CRUSH rule plumbline-ssd takes default~hdd"),
    ],
)
def test_what_is_foreign_stops_it_all(facts: dict[str, object], said: str) -> None:
    want = wanted("ssd")
    plan = cephsetup.setup(want, Facts(**facts))  # type: ignore[arg-type]
    assert plan.steps == ()
    assert [said in line for line in plan.foreign] == [True]


@pytest.mark.parametrize(
    ("osd", "ours"),
    [
        ("allow rwx pool=plumbline-probe namespace=plumbline", True),
        ("allow rwx pool=plumbline-probe-hdd namespace=plumbline, profile rbd pool=plumbline-rbd", True),
        ("allow rwx pool=plumbline-probe, allow *", False),
        ("allow rwx pool=plumbline-prober namespace=plumbline", False),
        ("allow rwx pool=vms", False),
        ("allow rwx", False),
        ("", False),
    ],
)
def test_whose_a_user_is(osd: str, ours: bool) -> None:
    want = wanted()
    facts = complete(want, users={USER: {"mon": cephsetup.MON_CAPS, "osd": osd}})
    assert (not cephsetup.setup(want, facts).foreign) is ours
    assert (("ceph", "auth", "rm", USER) in [step.argv for step in cephsetup.remove(want, facts).steps]) is ours


def test_all_is_taken_back() -> None:
    want = wanted("ssd", osd_bench=True)
    assert lines(cephsetup.remove(want, complete(want))) == [
        "ceph osd pool delete plumbline-probe plumbline-probe --yes-i-really-really-mean-it",
        "ceph osd pool delete plumbline-probe-ssd plumbline-probe-ssd --yes-i-really-really-mean-it",
        "ceph osd pool delete plumbline-rbd plumbline-rbd --yes-i-really-really-mean-it",
        "ceph osd crush rule rm plumbline-ssd",
        "ceph auth rm client.plumbline",
        f"rm {KEYRING}",
        "ceph auth rm client.plumbline-bench",
        "rm /etc/ceph/ceph.client.plumbline-bench.keyring",
    ]
    assert lines(cephsetup.remove(want, Facts())) == []


def test_what_is_foreign_stays_and_the_rest_goes() -> None:
    want = wanted("ssd")
    facts = complete(want)
    pools = {
        **facts.pools,
        "plumbline-probe": PoolFacts({"rgw": {}}),
        "plumbline-probe-ssd": PoolFacts(OURS, "plumbline-ssd", foreign="x"),
        "vms": PoolFacts({"rbd": {}}, "replicated_rule"),
    }
    plan = cephsetup.remove(want, complete(want, pools=pools, keyrings={KEYRING: ""}))
    assert lines(plan) == [
        "ceph osd pool delete plumbline-rbd plumbline-rbd --yes-i-really-really-mean-it",
        "ceph auth rm client.plumbline",
    ]
    assert len(plan.foreign) == 3


def test_a_rule_that_another_pool_uses_stays() -> None:
    want = wanted("ssd")
    pools = {**complete(want).pools, "fast": PoolFacts({"rbd": {}}, "plumbline-ssd")}
    assert "ceph osd crush rule rm plumbline-ssd" not in lines(cephsetup.remove(want, complete(want, pools=pools)))


@pytest.mark.parametrize(("osds", "groups"), [(0, 8), (1, 8), (3, 16), (8, 32), (9, 64), (100, 512), (1000, 4096)])
def test_groups_reach_nearly_every_osd(osds: int, groups: int) -> None:
    assert groups_for(osds) == groups


@pytest.mark.parametrize(
    ("kind", "listing", "foreign"),
    [
        (OBJECTS, ["plumbline\tx", "plumbline\theavy-probe"], ""),
        (OBJECTS, ["plumbline\tx", "\tsecret"], "secret"),
        (OBJECTS, ["other\tsecret"], "other/secret"),
        (OBJECTS, [], ""),
        (IMAGES, ["\trbd_directory", "\trbd_info", "\trbd_id.plumbline-a", "\trbd_data.1.0", "\tjournal.1"], ""),
        (IMAGES, ["\trbd_id.vm-disk"], "rbd_id.vm-disk"),
        (IMAGES, ["ns\trbd_id.vm-disk"], "ns/rbd_id.vm-disk"),
        (IMAGES, ["\tbackup.tar"], "backup.tar"),
    ],
)
def test_whose_objects_they_are(kind: str, listing: list[str], foreign: str) -> None:
    assert first_foreign(kind, listing) == foreign
