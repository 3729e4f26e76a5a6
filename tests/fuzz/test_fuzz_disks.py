"""Every parser of the disk sources is total: a value or ParseError, nothing else."""

from __future__ import annotations

import re
from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.collectors import disk
from plumbline.errors import ParseError
from plumbline.sources.ceph import ceph_osds
from plumbline.sources.disk.blocktree import BlockNode
from plumbline.sources.disk.diskstats import DiskStats, parse_diskstats
from plumbline.sources.disk.identity import device_class_of, parse_vpd_serial, transport_of
from plumbline.sources.disk.lvm import parse_metadata, tags_by_uuid, volume_of
from plumbline.sources.disk.udevdb import decode_enc, parse_udev_database
from plumbline.sources.kernel.mounts import parse_mount_id, parse_mountinfo, parse_swaps
from plumbline.sources.kernel.sysfs import clean, parse_number

any_text = st.text(st.characters(codec=None), max_size=200)  # lone surrogates too
words = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["sda", "-", "[", "]", '"', "\\", ",", "null", "true", "1e5", "1.0", "0:1", "\\040", "\ud800", ""]),
    st.text(max_size=5),
)
lines = st.lists(words, max_size=24).map(" ".join)
likely_text = st.lists(lines, max_size=5).map("\n".join)
count = st.integers(0, 2**64 - 1)


@given(st.one_of(any_text, likely_text))
@example('8 0 sda 1 2 3 4 5 6 7 8 9 10 11],["')
@example("8 0 a\\ 1 2 3 4 5 6 7 8 9 10 11")
def test_diskstats_of_any_text(text: str) -> None:
    with suppress(ParseError):
        for stats in parse_diskstats(text, keep=lambda _: True):
            assert all(stats_field is None or stats_field >= 0 for stats_field in _numbers(stats))
            assert list(disk.samples([stats]))


@given(st.lists(count, min_size=17, max_size=17), st.sampled_from([11, 15, 17]), st.text("abcdn0p-/", min_size=1))
def test_diskstats_of_every_kernel(numbers: list[int], columns: int, name: str) -> None:
    line = f"   8      16 {name} {' '.join(map(str, numbers[:columns]))}\n"
    (stats,) = parse_diskstats(line, keep=lambda _: True)
    assert stats.name == name
    assert _numbers(stats) == [*numbers[:columns], *[None] * (17 - columns)]


@given(st.lists(count, max_size=25))
def test_no_other_number_of_columns_passes(numbers: list[int]) -> None:
    line = f"   8      16 sdb {' '.join(map(str, numbers))}\n"
    try:
        parse_diskstats(line, keep=lambda _: True)
    except ParseError:
        assert len(numbers) not in (11, 15) and len(numbers) < 17  # noqa: PT018
    else:
        assert len(numbers) in (11, 15) or len(numbers) >= 17


def _numbers(stats: DiskStats) -> list[int | None]:
    return [getattr(stats, field) for field in stats.__struct_fields__[1:]]


@given(st.one_of(any_text, likely_text))
@example("1 0 0:1 / / rw - - - -")
def test_mountinfo(text: str) -> None:
    with suppress(ParseError):
        for mount in parse_mountinfo(text):
            assert mount.option("upperdir") is None or "upperdir=" in text.replace("\\075", "=")


@given(st.one_of(any_text, any_text.map("mnt_id:{}".format)))
def test_mount_id(text: str) -> None:
    with suppress(ParseError):
        parse_mount_id(text)


@given(st.binary(max_size=300))
def test_udev_database(data: bytes) -> None:
    for key, value in parse_udev_database(data).items():
        assert "=" not in key
        decode_enc(value)


@given(st.binary(max_size=100))
def test_device_texts_become_clean_labels(data: bytes) -> None:
    for text in (clean(data), parse_vpd_serial(data), parse_vpd_serial(b"\x00\x80\x00\x20" + data)):
        assert text is None or (text and text == text.strip() and text.isprintable() and "  " not in text)


@given(any_text)
def test_numbers(text: str) -> None:
    try:
        assert 0 <= parse_number(text, source="x") < 10**20
    except ParseError:
        assert not re.fullmatch("[0-9]{1,20}", text)


@given(any_text, any_text)
def test_any_link_has_some_transport_or_none(link: str, name: str) -> None:
    transport = transport_of(link, name)
    assert transport is None or re.fullmatch("[a-z]+", transport)
    assert device_class_of(transport, None, name, link) in (None, "nvme", "virtual")


lvm_words = st.sampled_from(
    ["vg", "id", "=", "{", "}", "[", "]", ",", '"', '"x"', "3", "#", "\\", "logical_volumes", "tags"]
)
lvm_texts = st.lists(lvm_words, max_size=60).map(" ".join)


@given(st.one_of(any_text, lvm_texts, lvm_texts.map("vg {{ {} }}".format)))
@example("a {" * 200)
@example('vg { id = "x" logical_volumes { lv { id = ["y"] tags = "z" } } }')
def test_lvm_metadata(text: str) -> None:
    with suppress(ParseError):
        for uuid, tags in tags_by_uuid(parse_metadata(text, source="x")).items():
            assert uuid.startswith("LVM-")
            ceph_osds.osd_by_tags(tags)


@given(st.lists(st.one_of(any_text, st.sampled_from(["ceph.osd_id=1", "ceph.type=block"])), max_size=6))
def test_any_tags_name_an_osd_or_none(tags: list[str]) -> None:
    found = ceph_osds.osd_by_tags(tags)
    assert found is None or re.fullmatch(r"osd\.\d+", found[1])


@given(any_text, any_text)
def test_any_dm_name_is_a_volume_or_none(name: str, lv: str) -> None:
    node = BlockNode("dm-0", "", "dm-0", dm_name=name, dm_uuid="LVM-" + 64 * "x")
    found = volume_of(node)
    assert found is None or found.volume
    assert ceph_osds.osd_by_name(lv, {}) is None or lv.startswith("osd-")
    assert ceph_osds.osd_by_mount_point(lv) is None or lv.startswith("/var/lib/ceph/")


@given(st.one_of(any_text, likely_text))
def test_swaps(text: str) -> None:
    with suppress(ParseError):
        assert all(swap.path for swap in parse_swaps(text))
