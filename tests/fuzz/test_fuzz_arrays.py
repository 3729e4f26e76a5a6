"""The parsers of arrays are total, and whatever is known of them can be judged."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumbline.checks.array import CHECKS, ArrayFacts, ZfsPool
from plumbline.checks.model import judge
from plumbline.collectors import array as metrics
from plumbline.errors import ParseError
from plumbline.sources.disk import md
from plumbline.sources.disk.multipath import DiskPath, MultipathDisk
from plumbline.sources.disk.zfs import PoolStatus, Vdev, ZfsReading, parse_count, parse_kstat, parse_text

TEXT = (Path(__file__).parents[1] / "fixtures" / "arrays-storage-node" / "zpool_status.txt").read_text()


@pytest.mark.parametrize("parse", [md.parse_disks, md.parse_progress])
@given(text=st.text(max_size=30) | st.from_regex(r"[0-9]{0,22}( \([0-9]+\)| / [0-9]{1,22}|)"))
@example(text="٣ / ٤")
def test_md_values(parse: Callable[..., object], text: str) -> None:
    with contextlib.suppress(ParseError):
        value = parse(text, source="fuzz")
        assert value is None or isinstance(value, int | tuple)


rows = st.lists(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(("hits", "misses", "c_max", "")),
        st.sampled_from(("4", "3", "7", "")),
        st.sampled_from(("12", "-5", "x")) | st.text("0123456789", max_size=30),
    ),
    max_size=6,
)


@given(st.text(max_size=60) | rows.map(lambda each: "\n".join(["1 1", "name type data", *each])))
def test_kstat(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert all(value >= 0 for value in parse_kstat(text, source="fuzz").values())


@given(st.text(max_size=20) | st.from_regex(r"[0-9]{0,25}(\.[0-9]{0,5})?[KMGTPEZ]?"))
@example("1e9")
def test_counts(text: str) -> None:
    with contextlib.suppress(ParseError):
        count = parse_count(text)
        assert count is None or count >= 0


def holds(pools: tuple[PoolStatus, ...]) -> None:
    """What a parser gave becomes samples, each once, that are no nonsense."""
    reading = ZfsReading({pool.name: "" for pool in pools}, None)
    last_of_each = {pool.name: pool for pool in pools}
    samples = list(metrics.zfs_samples(reading, last_of_each.values()))
    series = [(spec.name, labels) for spec, labels, _ in samples]
    assert len(set(series)) == len(series)
    assert all(isinstance(value, int) and value >= 0 for _, _, value in samples)


lines = st.lists(
    st.sampled_from(TEXT.splitlines()) | st.text("\t ONLIEsda0139.K-:", max_size=30) | st.text(max_size=20), max_size=25
).map("\n".join)


@given(lines)
@example(TEXT)
def test_zpool_text(text: str) -> None:
    with contextlib.suppress(ParseError):
        holds(parse_text(text))


@settings(deadline=None)
@given(st.integers(0, len(TEXT)), st.integers(0, 40), st.text(max_size=10))
def test_zpool_text_with_a_hole(at: int, length: int, instead: str) -> None:
    with contextlib.suppress(ParseError):
        holds(parse_text(TEXT[:at] + instead + TEXT[at + length :]))


NAMES = st.text(st.characters(exclude_characters="\0\n", exclude_categories=("Cs",)), min_size=1, max_size=12)
NUMBERS = st.integers(0, 2**40)
FACTS = st.builds(
    ArrayFacts,
    st.lists(
        st.builds(
            md.MdArray,
            NAMES,
            st.sampled_from(("raid0", "raid1", "raid5", "raid6", "raid10", "container", "")),
            st.sampled_from(("active", "clean", "inactive", "broken", "clear")),
            st.none() | NUMBERS,
            st.none() | NUMBERS,
            st.none() | NUMBERS,
            st.sampled_from(("", "idle", "recover", "check")),
            st.none() | NUMBERS,
            st.none() | NUMBERS,
            st.none(),
            st.none() | NUMBERS,
            st.lists(
                st.builds(md.MdMember, NAMES, st.sampled_from(("faulty", "in_sync", "spare")), NAMES, st.none()),
                max_size=3,
            ).map(tuple),
        ),
        max_size=3,
        unique_by=lambda raid: raid.device,
    ).map(tuple),
    st.lists(
        st.builds(
            ZfsPool,
            NAMES,
            st.sampled_from(("ONLINE", "DEGRADED", "FAULTED", "SUSPENDED")),
            st.none() | NUMBERS,
            st.none()
            | st.lists(st.builds(Vdev, NAMES, st.just("ONLINE"), NUMBERS, st.none(), st.none()), max_size=6).map(tuple),
            st.none() | st.lists(NAMES, max_size=6).map(tuple),
        ),
        max_size=3,
        unique_by=lambda pool: pool.name,
    ).map(tuple),
    st.lists(
        st.builds(
            MultipathDisk,
            NAMES,
            NAMES,
            st.lists(
                st.builds(DiskPath, NAMES, st.sampled_from(("running", "offline", "unknown")), st.just(""), NAMES),
                max_size=4,
            ).map(tuple),
        ),
        max_size=3,
        unique_by=lambda disk: disk.device,
    ).map(tuple),
)


@settings(deadline=None)
@given(FACTS)
def test_any_array_can_be_judged(facts: ArrayFacts) -> None:
    found = judge(CHECKS, facts)
    series = [(each.check, each.subject) for each in found]
    assert len(set(series)) == len(series)
    for each in found:
        assert each.met == (each.fix is None)
        assert each.actual
        assert each.expected
        if each.fix is not None:
            assert shlex.split(each.fix.now)  # quotes are balanced, whatever the names
