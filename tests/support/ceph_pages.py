"""Pages of Ceph's exporters: read as captured, rewritten as other releases and producers have them, made into series.

A page is read line by line: prometheus_client's parser renames counters, and rules see what is written.
16.2, 18.2 and 20.2 are captured, the ceph-exporter's page of 20.2 alone. Pages of 17 and 19, and of other releases'
ceph-exporters, nobody captured: :func:`as_manager` and :func:`as_exporter` make them. What they change is what the
releases' documentation, sources and change requests say, and where there is a capture what that says:

==========================================================================  ================  =======================
what                                                                        since             said in
==========================================================================  ================  =======================
``ceph_bluestore_{commit,submit,throttle}_lat`` are called ``txc_…``        17                ceph/ceph#41557; 18.2.7
the manager leaves OSD counters to the ceph-exporter                        18; 17 has both   ceph/ceph#49248; 18.2.7
the ceph-exporter calls an OSD ``ceph-osd.0``                               17.2.6 only       ceph/ceph#52191, #52774
``ceph_daemon_socket_up``, where an OSD is ``ceph-osd.0`` to this day       late 18; here 19  ceph/ceph#60167; 20.2.4
``ceph_pool_metadata`` has a label ``application``                          here 19           20.2.4
``ceph_disk_occupation`` for LVM volumes (the cluster of 16.2 is on files)  16                mgr/prometheus; 18.2.7
==========================================================================  ================  =======================

Counters that newer releases add are not in pages made from 16.2: there is nothing to derive their values from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Labels = tuple[tuple[str, str], ...]
Page = dict[tuple[str, Labels], float]
"""(name, labels in the page's order) → value."""

FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURED = FIXTURES / "ceph-16.2-states"
NEWER = {18: FIXTURES / "ceph-18.2", 20: FIXTURES / "ceph-20.2"}
"""Releases with captures of their own → where."""
RELEASES = (17, 18, 19, 20)
STATES = ("load-1", "load-2")
MANAGER, WITH_COUNTERS, EXPORTER = "manager", "manager with counters", "ceph-exporter"
COUNTERS = ("ceph_osd_op", "ceph_bluestore")
LOAD_S = 75.0
"""Between load-1 and load-2. How long passed between 20.2's two pages of the ceph-exporter nobody wrote down."""

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:{(.*)})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_COUNTERS = re.compile(
    r"ceph_(osd_(op_(r|w|rw)_.*latency_|numpg$)|bluestore_((txc_)?(commit|submit|throttle)|kv_.+|read|state_.+)_lat_)"
)
"""What the ceph-exporter has of an OSD, as far as the rules or their tests look at it."""
_STATE = re.compile(
    r"ceph_(health|mon_quorum_status|osd_(metadata|up|in|(commit|apply)_latency_ms)|pool_(metadata|percent_used)|pg_|"
    r"num_objects_|daemon_health_metrics|healthcheck_slow_ops|prometheus_collect_duration_seconds)"
)
"""What the manager has of the cluster's state, likewise."""
_RENAMED = {"commit": "txc_commit", "submit": "txc_submit", "throttle": "txc_throttle"}
"""BlueStore's latencies, Ceph 16 → 17 (ceph/ceph#41557)."""
_VERSIONS = {17: "17.2.6", 18: "18.2.7", 19: "19.2.3"}
_NAMES = {17: "quincy", 18: "reef", 19: "squid"}


def parse(text: str) -> Page:
    """Every sample; a line that is none is a mistake in the page."""
    page: Page = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        assert found, line
        page[found[1], tuple(_LABEL.findall(found[2] or ""))] = float(found[3])
    return page


def captured(state: str) -> Page:
    """What the manager of the real 16.2.15 served in this state."""
    return parse((CAPTURED / state / "mgr-metrics.txt").read_text("utf-8"))


def served(release: int, page: str) -> Page:
    """What a real 18.2.7 or 20.2.4 served: ``mgr-metrics`` by default, ``mgr-metrics-counters`` without
    ``exclude_perf_counters``; of 20 ``exporter-metrics`` and, after more operations, ``exporter-metrics-load``.
    """
    return parse((NEWER[release] / f"{page}.txt").read_text("utf-8"))


def every_captured() -> dict[tuple[int, str], Page]:
    """(release, producer) → all samples captured of it; producers: manager, manager with counters, ceph-exporter.

    Before 18 a manager has counters anyway. Of several pages with one sample the last's value is there.
    """
    older: Page = {}
    for file in sorted([*CAPTURED.glob("*/mgr-metrics.txt"), FIXTURES / "ceph-16.2" / "mgr-metrics.txt"]):
        older |= parse(file.read_text("utf-8"))
    found = {(16, WITH_COUNTERS): older}
    for release in NEWER:
        found[release, MANAGER] = served(release, "mgr-metrics")
        found[release, WITH_COUNTERS] = served(release, "mgr-metrics-counters")
    found[18, WITH_COUNTERS] |= served(18, "mgr-metrics-gateways-1")  # of another run, which had RGW and an MDS
    for release in NEWER:  # every manager says what they are called; both default pages are of moments before that
        found[release, MANAGER] |= only(found[release, WITH_COUNTERS], ["ceph_rgw_metadata"])
    found[20, EXPORTER] = served(20, "exporter-metrics") | served(20, "exporter-metrics-load")
    return found


def from_zero(page: Page) -> Page:
    """The page as when its daemons started: counters of OSDs at zero, all else as it is."""
    return {key: 0.0 if key[0].startswith(COUNTERS) else value for key, value in page.items()}


def as_manager(page: Page, release: int, *, counters: bool) -> Page:
    """The manager's page of a release; ``counters``: with ``exclude_perf_counters`` off, as before reef."""
    kept = {key: value for key, value in page.items() if _STATE.match(key[0])}
    osds = sorted(dict(labels)["ceph_daemon"] for name, labels in page if name == "ceph_osd_metadata")
    for number, osd in enumerate(osds):
        kept["ceph_disk_occupation", _occupation(osd, number)] = 1.0
    kept = relabelled(kept, lambda name, labels: _state_labels(release, name, labels))
    return kept | (_renamed(page) if counters else {})


def as_exporter(page: Page, release: int, hostname: str, *, early: bool = False) -> Page:
    """The page of a ceph-exporter; ``early``: 17.2.6, which calls an OSD "ceph-osd.0"."""

    def named(_: str, labels: dict[str, str]) -> dict[str, str]:
        return {**labels, "ceph_daemon": ("ceph-" if early else "") + labels["ceph_daemon"]}

    osds = sorted({dict(labels)["ceph_daemon"] for name, labels in page if name == "ceph_osd_numpg"})
    up: Page = {}
    if release >= 19:  # in some 18.2, too: the metric is optional everywhere
        up = {("ceph_daemon_socket_up", (("ceph_daemon", f"ceph-{osd}"), ("hostname", hostname))): 1.0 for osd in osds}
    return up | relabelled(_renamed(page), named)


def relabelled(page: Page, change: Callable[[str, dict[str, str]], Mapping[str, str]]) -> Page:
    """The page with other labels; a sample that ends as another is a mistake."""
    changed = {(name, tuple(change(name, dict(labels)).items())): value for (name, labels), value in page.items()}
    assert len(changed) == len(page)
    return changed


def scraped(page: Page, **target: str) -> Page:
    """With the labels that a scrape adds."""
    return relabelled(page, lambda _, labels: {**target, **labels})


def text_of(page: Page, what: str) -> str:
    """The page as text."""
    lines = [f"# {what}"]
    for (name, labels), value in sorted(page.items()):
        inside = ",".join(f'{label}="{text}"' for label, text in labels)
        lines.append(f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}")
    return "\n".join(lines) + "\n"


# -- promtool's series


def series_name(name: str, labels: Labels) -> str:
    """A selector as promtool writes its input."""
    inside = ",".join(f'{label}="{text}"' for label, text in labels)
    return f"{name}{{{inside}}}" if inside else name


def growing(first: Page, last: Page, apart_s: float, interval_s: float, samples: int) -> list[dict[str, str]]:
    """Series that go on as they went from one page to the other; what is only in one of them stands."""
    found = []
    for (name, labels), value in last.items():
        before = first.get((name, labels), value)
        step = (value - before) / apart_s * interval_s
        found.append({"series": series_name(name, labels), "values": f"{before!r}{step:+.17g}x{samples}"})
    return found


def held(page: Page, interval_s: float, samples: int) -> list[dict[str, str]]:
    """Series that stand, but for the manager's collections: one each 15 s, as they come."""
    found = []
    for (name, labels), value in page.items():
        step = interval_s / 15 if name == "ceph_prometheus_collect_duration_seconds_count" else 0.0
        found.append({"series": series_name(name, labels), "values": f"{value!r}{step:+.17g}x{samples}"})
    return found


def only(page: Page, names: Iterable[str]) -> Page:
    """The samples of these metrics."""
    wanted = set(names)
    return {key: value for key, value in page.items() if key[0] in wanted}


def _renamed(page: Page) -> Page:
    counters: Page = {}
    for (name, labels), value in page.items():
        if _COUNTERS.match(name) and dict(labels).get("ceph_daemon", "").startswith("osd."):
            new = re.sub(
                r"^ceph_bluestore_(commit|submit|throttle)_lat",
                lambda found: f"ceph_bluestore_{_RENAMED[found[1]]}_lat",
                name,
            )
            counters[new, labels] = value
    return counters


def _state_labels(release: int, name: str, labels: dict[str, str]) -> dict[str, str]:
    if "ceph_version" in labels:
        version = f"ceph version {_VERSIONS[release]} ({'0' * 40}) {_NAMES[release]} (stable)"
        labels = {**labels, "ceph_version": version}
    if name == "ceph_pool_metadata" and release >= 19:
        labels = {**labels, "application": "plumbline"}
    return labels


def _occupation(osd: str, number: int) -> Labels:
    return (
        ("ceph_daemon", osd), ("device", f"/dev/dm-{number}"), ("db_device", ""), ("wal_device", ""),
        ("instance", "vm"), ("devices", f"vd{chr(ord('b') + number)}"), ("device_ids", ""),
    )  # fmt: skip
