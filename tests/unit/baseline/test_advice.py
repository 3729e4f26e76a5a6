"""What is comparable with which document, why, and the probes that measure the same."""

from __future__ import annotations

from plumbline.baseline.advice import Advice, Subject, Via, advise, chosen, probes
from plumbline.baseline.model import Target
from plumbline.config.model import parse
from plumbline.config.workloads import load_catalogue
from support.documented import PROFILES

CATALOGUE = load_catalogue()


def advised(subject: Subject, *targets: Target) -> dict[str, Advice]:
    return {one.profile: one for one in advise([subject], PROFILES, targets)}


def measuring(workload: str, device_class: str, device: str) -> Target:
    found = CATALOGUE.by_id[workload]
    return Target(
        f"mine/{device}", found.layer, device_class, workload, found.operations[0], found.config_hash(), device=device
    )


def disks(via: Via, device_class: str, *names: str) -> Subject:
    return Subject(via, "disk", device_class, names or ("sdb",))


def test_the_cheapest_row_of_each_document_is_advised() -> None:
    found = advised(disks(Via.FILES, "ssd"))
    assert list(found) == ["infn-2025", "unnoba-2020"]
    assert [(each.comparable, each.workload) for each in found.values()] == [
        (True, "randread-4k-qd1-j8"), (True, "randread-4k-qd1-j1"),
    ]  # fmt: skip
    assert found["unnoba-2020"].figure == "mean 84\xa0µs"
    # of rotational disks only a deeper queue has a latency
    assert advised(disks(Via.RAW, "hdd"))["unnoba-2020"].workload == "randread-4k-qd4-j1"


def test_what_has_no_comparable_row_says_why() -> None:
    def why(subject: Subject, profile: str = "") -> str:
        one = advised(subject)[profile]
        assert not one.comparable
        assert one.probe is None
        return one.why

    assert why(disks(Via.FILES, "virtual")) == (
        "no document has figures of this class; of the layer disk they have hdd, intel-910, nvme, ssd"
    )
    assert (
        why(disks(Via.FILES, "nvme"), "unnoba-2020")
        == "rows of this layer and class: 1 measured through the page cache"
    )
    doubt = "that contradict themselves or are a maker's promise, and so never judge"
    assert why(disks(Via.FILES, "intel-910"), "fujitsu-2013") == f"rows of this layer and class: 6 {doubt}"
    pool = why(Subject(Via.POOL, "rados", "ssd", ("plumbline-probe",)), "infn-2025")
    assert "measured by fio on objects, which no probe does" in pool


def test_what_is_measured_already_needs_no_probe() -> None:
    target = measuring("randread-4k-qd1-j1", "ssd", "sdb")
    whole = advised(disks(Via.RAW, "ssd", "sdb"), target)["unnoba-2020"]
    assert (whole.measured_by, whole.probe) == ("mine/sdb", None)
    # of two disks one is not measured yet
    half = advised(disks(Via.RAW, "ssd", "sdb", "sdc"), target)["unnoba-2020"]
    assert half.probe is not None
    assert (half.measured_by, half.probe["devices"]) == ("", ["sdc"])


def test_the_profile_that_judges_is_the_configured_then_the_preferred_then_the_one_with_most_rows() -> None:
    advice = advise([disks(Via.FILES, "ssd")], PROFILES, ())
    assert chosen(advice, {}) == {"ssd": "unnoba-2020"}
    assert chosen(advice, {}, "infn-2025") == {"ssd": "infn-2025"}
    assert chosen(advice, {}, "pwr-2017") == {"ssd": "unnoba-2020"}
    assert chosen(advice, {"ssd": "infn-2025"}, "unnoba-2020") == {"ssd": "infn-2025"}


EVERYTHING = (
    disks(Via.FILES, "ssd", "sda"),
    disks(Via.RAW, "ssd", "sdb", "sdc"),
    disks(Via.RAW, "hdd", "sdd"),
    Subject(Via.PEER, "network", "10g", ("10.0.0.12", "10.0.0.13")),
    Subject(Via.OSD, "osd", "ssd", ("osd.1",)),
    Subject(Via.POOL, "rados", "hdd", ("plumbline-probe",)),
    Subject(Via.IMAGE, "rbd", "ssd", ("plumbline-rbd",)),
)


def test_the_loader_takes_every_probe_and_none_takes_a_used_name() -> None:
    advice = advise(EVERYTHING, PROFILES, ())
    for preferred in ("unnoba-2020", "infn-2025"):
        judge = chosen(advice, {}, preferred)
        light = probes(advice, judge, {"documented-randread-4k-qd1-j1"}, heavy=False)
        found = probes(advice, judge, {"documented-randread-4k-qd1-j1"}, heavy=True)
        assert [each for each in found if each in light] == light
        assert {each["type"] for each in light} == {"fio", "rtt"}
        # of INFN's no probe runs objects, and it has neither OSDs nor a network
        heavy = {"osd-bench", "rados-bench", "rbd-bench"} if preferred == "unnoba-2020" else {"rbd-fio"}
        assert {each["type"] for each in found} >= {"fio", *heavy}
        config = parse(str({"probes": found}), where="advice")
        assert len(config.probes) == len(found)
        assert "documented-randread-4k-qd1-j1" not in {each.name for each in config.probes}


def test_a_disk_whose_class_was_given_keeps_it_in_the_probe() -> None:
    subject = Subject(Via.FILES, "disk", "ssd", ("vda",), given=True)
    (probe,) = probes(advise([subject], PROFILES, ()), {"ssd": "unnoba-2020"}, (), heavy=False)
    assert probe["device_class"] == "ssd"
    assert probe["file_size"] == "1024MiB"
