"""The maps' layout: what Python and C both have to know, and the arithmetic on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.sources.disk import latencymaps
from plumbline.sources.disk.latencymaps import BUCKETS, SLOT_BYTES, STATE_BYTES, Histogram, Sizes

SET_BYTES = 64
SOURCE = Path(latencymaps.__file__).parents[2] / "bpf" / "disk_latency.bpf.c"


def empty_state() -> memoryview:
    return memoryview(bytearray(STATE_BYTES)).cast("Q")


def test_the_program_has_the_same_constants() -> None:
    text = SOURCE.read_text()
    defined = dict(re.findall(r"^#define (\w+) (\d+)\b", text, re.MULTILINE))
    operations = int(defined["OPERATIONS"])
    assert operations == len(latencymaps.OPERATIONS)
    assert int(defined["BUCKETS"]) == BUCKETS
    assert operations * (2 + 2 * BUCKETS) * 8 == SLOT_BYTES
    assert (int(defined["DEVICE_BITS"]), int(defined["PROBES"])) == (latencymaps._DEVICE_BITS, latencymaps._PROBES)
    assert int(defined["WAYS"]) * 16 == SET_BYTES


@pytest.mark.parametrize(
    ("cpus", "disks", "sizes"),
    [
        (1, 0, Sizes(1, 16, 1024)),
        (6, 12, Sizes(8, 40, 4096)),
        (256, 90, Sizes(64, 196, 32768)),
        (64, 400, Sizes(32, 816, 65536)),
        (8192, 10_000, Sizes(32, 1024, 65536)),
    ],
)
def test_sizes_follow_the_host_up_to_a_limit(cpus: int, disks: int, sizes: Sizes) -> None:
    assert latencymaps.sizes_for(cpus=cpus, disks=disks) == sizes


def test_the_memory_of_a_large_node() -> None:
    sizes = latencymaps.sizes_for(cpus=128, disks=60)
    memory = sizes.histogram_entries * SLOT_BYTES + STATE_BYTES + sizes.sets * SET_BYTES
    assert memory / 2**20 == pytest.approx(16.4, abs=0.1)


def test_a_name_is_found_where_it_was_put_and_stays_there() -> None:
    state = empty_state()
    assert latencymaps.register(state, "sda", 0)
    assert latencymaps.register(state, "nvme1c0n1", 1)
    before = bytes(state)
    assert latencymaps.register(state, "sda", 0)
    assert bytes(state) == before
    assert sorted(state[index] for index in range(10, len(state), 4) if state[index]) == [1, 2]


def test_ten_thousand_names_fill_the_table_and_a_place_given_back_is_taken() -> None:
    state, names = empty_state(), [f"d{number}" for number in range(10_000)]
    fitting = {name: slot for slot, name in enumerate(names) if latencymaps.register(state, name, slot)}
    assert 700 < len(fitting) <= 1024
    full = bytes(state)
    assert all(latencymaps.register(state, name, slot) for name, slot in fitting.items())
    refused = [name for name in names if name not in fitting]
    assert not any(latencymaps.register(state, name, 0) for name in refused[:500])
    assert bytes(state) == full
    for slot in fitting.values():
        latencymaps.release(state, slot)
    again = [name for number, name in enumerate(refused[:500]) if latencymaps.register(state, name, number)]
    assert len(again) > 450
    assert latencymaps.unnoted_slots(state) == set()


def test_a_name_behind_a_place_given_back_is_still_found() -> None:
    state, names = empty_state(), [f"d{number}" for number in range(900)]
    fitting = {name: slot for slot, name in enumerate(names) if latencymaps.register(state, name, slot)}
    gone = [name for number, name in enumerate(fitting) if number % 2]
    for name in gone:
        latencymaps.release(state, fitting.pop(name))
    before = bytes(state)
    assert all(latencymaps.register(state, name, slot) for name, slot in fitting.items())
    assert bytes(state) == before


def test_what_another_disk_left_in_a_slot_is_not_counted() -> None:
    sizes = Sizes(lanes=2, slots=3, sets=1024)
    memory = memoryview(bytearray(sizes.histogram_entries * SLOT_BYTES))
    words = memory.cast("Q")
    per_slot, per_lane = SLOT_BYTES // 8, 3 * SLOT_BYTES // 8
    for lane in range(2):
        for slot in range(3):
            words[lane * per_lane + slot * per_slot] = 100 * (slot + 1) + lane
    before = {1: latencymaps.slot_total(memory, sizes, 1)}
    words[per_slot] += 7
    total = latencymaps.sum_lanes(memory, sizes, 3, before)
    assert [total[slot * per_slot] for slot in range(3)] == [201, 7, 601]
    assert latencymaps.sum_lanes(memory, sizes, 1, before)[0] == 201


def test_disks_whose_issues_nobody_notes() -> None:
    state = empty_state()
    assert latencymaps.register(state, "sda", 0)
    assert latencymaps.register(state, "sdb", 1, unnoted_since_ns=7)
    assert latencymaps.unnoted_slots(state) == {1}
    assert latencymaps.register(state, "sdb", 1)  # stays
    assert latencymaps.register(state, "sda", 0, unnoted_since_ns=9)
    assert latencymaps.unnoted_slots(state) == {0, 1}


def test_the_header_of_the_state() -> None:
    state = empty_state()
    state[1:5] = memoryview(b"".join(n.to_bytes(8, "little") for n in (1, 2, 3, 4))).cast("Q")
    assert latencymaps.untimed(state) == (1, 2, 3, 4)
    assert not latencymaps.begun(state)
    latencymaps.begin(state, 5)
    assert latencymaps.begun(state)
    assert state[0] == 5


@pytest.mark.parametrize("own_notes", [True, False])
def test_the_program_s_constants(own_notes: bool) -> None:
    words = memoryview(Sizes(8, 40, 4096).constants(own_notes=own_notes)).cast("I").tolist()
    assert words == [40, 7, 52, own_notes]


@given(st.lists(st.from_regex(r"[a-z]{1,6}[0-9]{0,9}", fullmatch=True), unique=True, max_size=400))
def test_names_never_share_a_place(names: list[str]) -> None:
    state = empty_state()
    placed = [slot for slot, name in enumerate(names) if latencymaps.register(state, name, slot)]
    assert sorted(state[index] - 1 for index in range(10, len(state), 4) if state[index]) == placed


def test_a_full_neighbourhood_refuses() -> None:
    state = empty_state()
    refused = [slot for slot in range(1100) if not latencymaps.register(state, f"sd{slot}", slot)]
    assert refused


def test_lanes_are_added_up_word_by_word() -> None:
    sizes = Sizes(lanes=4, slots=3, sets=1024)
    memory = memoryview(bytearray(sizes.histogram_entries * SLOT_BYTES))
    words = memory.cast("Q")
    for lane in range(4):
        slot = (lane * 3 + 1) * SLOT_BYTES // 8
        words[slot + 58] = 2**61  # write: device ns
        words[slot + 58 + 2 + 27] = lane  # above 67 s
        words[slot + 58 + 2 + 28] = 1  # queue, up to 1 µs
    found = latencymaps.parse_slot(latencymaps.sum_lanes(memory, sizes, 2), 1)
    assert found["write"].device == Histogram((0,) * 27 + (6,), 2**63)
    assert found["write"].queue == Histogram((4,) + (0,) * 27, 0)
    assert found["read"] == found["flush"] == found["discard"]


def test_nothing_named_is_nothing_read() -> None:
    sizes = Sizes(2, 16, 1024)
    assert len(latencymaps.sum_lanes(memoryview(bytearray(2 * 16 * SLOT_BYTES)), sizes, 0)) == 0


@pytest.mark.parametrize(
    ("text", "misses"),
    [
        ("pos:\t0\nrun_cnt:\t7\nrecursion_misses:\t12\nverified_insns:\t281\n", 12),
        ("pos:\t0\nprog_id:\t103\n", 0),  # before 5.12
        ("", 0),
    ],
)
def test_misses(text: str, misses: int) -> None:
    assert latencymaps.parse_misses(text) == misses


def test_a_disk_whose_name_is_no_utf8() -> None:
    """As ``os.fsdecode`` has it; the kernel's own bytes are what its requests know it by."""
    state = empty_state()
    assert latencymaps.register(state, "sd\udcff", 3)
    assert b"sd\xff\0" in state.tobytes()
