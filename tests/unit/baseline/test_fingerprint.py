"""What a baseline was measured on, and what counts as a change of it."""

import os
import re
from pathlib import Path

import msgspec
import pytest

from plumbline.background import fingerprint as fingerprinting
from plumbline.background.fingerprint import SETTINGS, disks, nics, parse_versions, read_fingerprint, tuning
from plumbline.baseline.files import Latencies
from plumbline.baseline.fingerprint import Change, Fingerprint, Part, changes, compared
from plumbline.baseline.record.text import format_record
from plumbline.baseline.site import SiteEntry, SiteFile, parse_site
from plumbline.baseline.units import Latency
from plumbline.config.model import CephConfig
from plumbline.core.roots import Roots
from plumbline.errors import BaselineError, ParseError
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.queuesettings import QueueSettings
from plumbline.sources.kernel.sysctl import SysctlReading
from plumbline.sources.net.ethtool import DriverInfo
from support.programs import need

FIXTURES = Path(__file__).parents[2] / "fixtures"

THEN = Fingerprint(
    ceph="18.2.4",
    kernel="6.1.0-28-amd64",
    fio="3.33",
    disks={"S1": "SAMSUNG MZ7LH960 904Q", "S2": "SAMSUNG MZ7LH960 904Q"},
    nics={"ens1f0": "mlx5_core 26.41.1000"},
    tuning="5d41402abc4b",
)


def test_nothing_changed():
    assert changes(THEN, THEN) == ()
    assert compared(THEN, THEN) == tuple(Part)


@pytest.mark.parametrize(
    ("part", "value", "expected"),
    [
        ("ceph", "19.2.3", Change(Part.CEPH, "18.2.4", "19.2.3")),
        ("kernel", "6.12.48-amd64", Change(Part.KERNEL, "6.1.0-28-amd64", "6.12.48-amd64")),
        ("tuning", "0123456789ab", Change(Part.TUNING, "5d41402abc4b", "0123456789ab")),
        (
            "disks",
            {"S1": "SAMSUNG MZ7LH960 904Q", "S2": "SAMSUNG MZ7LH960 HXT7"},
            Change(Part.DISKS, "S2 (SAMSUNG MZ7LH960 904Q)", "S2 (SAMSUNG MZ7LH960 HXT7)"),
        ),
        (
            "disks",
            {"S1": "SAMSUNG MZ7LH960 904Q", "S9": "another"},
            Change(Part.DISKS, "S2 (SAMSUNG MZ7LH960 904Q)", "S2 gone"),
        ),
    ],
)
def test_a_change_names_what_differs(part, value, expected):
    assert changes(THEN, msgspec.structs.replace(THEN, **{part: value})) == (expected,)


def test_one_more_disk_or_port_is_no_change():
    assert changes(THEN, msgspec.structs.replace(THEN, disks={**THEN.disks, "S3": "x"})) == ()
    assert changes(THEN, msgspec.structs.replace(THEN, nics={**THEN.nics, "ens1f1": "x"})) == ()


def test_what_is_not_known_is_not_compared():
    """A cluster that does not answer now, or a file without that part, is no change of the host."""
    assert changes(THEN, Fingerprint(kernel=THEN.kernel)) == ()
    assert changes(Fingerprint(), THEN) == ()
    assert compared(THEN, Fingerprint(kernel="x", fio="y")) == (Part.KERNEL, Part.FIO)


def test_a_recorded_file_carries_it_there_and_back():
    entry = SiteEntry(workload="randread-4k-qd1-j1", device_class="nvme", latency=Latencies(p50=Latency.of(84e-6)))
    file = SiteFile(schema_version=1, fingerprint=THEN, entries=(entry,))
    loaded = parse_site(format_record(file), where="f.yaml", host="h")
    assert loaded.file.fingerprint == THEN


@pytest.mark.parametrize(
    ("line", "key"), [("{tuning: xyz}", "fingerprint.tuning"), ("{kernle: 6.1}", "fingerprint.kernle")]
)
def test_a_mistake_in_it_is_named(line, key):
    text = f"schema_version: 1\nfingerprint: {line}\nentries: []\n"
    with pytest.raises(BaselineError, match=re.escape(key)):
        parse_site(text, where="f.yaml", host="h")


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ({"osd": {"ceph version 19.2.3 (c92aebb) squid (stable)": 3}, "overall": {}}, "19.2.3"),
        ({"osd": {"ceph version 19.2.3 (a) squid": 1, "ceph version 18.2.4 (b) reef": 2}}, "18.2.4, 19.2.3"),
        ({"osd": {}, "overall": {"ceph version 16.2.15 (618f440) pacific (stable)": 4}}, "16.2.15"),
    ],
)
def test_the_version_of_the_osds(said, version):
    assert parse_versions(said) == version


@pytest.mark.parametrize("said", [None, [], {}, {"osd": 3}, {"osd": {"something": 1}}, {"osd": {}, "overall": 7}])
def test_an_answer_that_is_none_is_refused(said):
    with pytest.raises(ParseError, match="ceph versions"):
        parse_versions(said)


def test_disks_by_serial_and_ports_without_the_kernels_version():
    found = disks(
        [
            BlockDevice("sda", 8, 0, 1, model="HGST HUS726", serial="N8GX", firmware="A5GNT920"),
            BlockDevice("vda", 254, 0, 1),
        ]
    )
    assert found == {"N8GX": "HGST HUS726 A5GNT920", "vda": "unknown"}
    ports = [
        ("ens1f0", DriverInfo("mlx5_core", "26.41.1000", "", 0, "6.12.48-amd64")),
        ("ens2f0", DriverInfo("ice", "4.40", "", 0, "1.14.9")),
        ("odd0", DriverInfo("", "", "", 0)),
    ]
    assert nics(ports, kernel="6.12.48-amd64") == {"ens1f0": "mlx5_core 26.41.1000", "ens2f0": "ice 1.14.9 4.40"}


def _tuned(*queues, **settings):
    numbers = {
        "net.core.rmem_max": (4194304,),
        **{name.replace("__", "."): (value,) for name, value in settings.items()},
    }
    devices = [BlockDevice(each.device, 8, 0, 1, device_class="ssd") for each in queues if each.device != "loop0"]
    return tuning(SysctlReading(numbers, {}), queues, devices)


def test_tuning_follows_settings_and_not_names_or_numbers_of_disks():
    one = _tuned(QueueSettings("sda", scheduler="none", requests=256))
    assert re.fullmatch("[0-9a-f]{12}", one)
    assert _tuned(QueueSettings("sdb", scheduler="none", requests=256)) == one
    assert _tuned(*(QueueSettings(name, scheduler="none", requests=256) for name in ("sda", "sdb"))) == one
    assert _tuned(QueueSettings("sda", scheduler="none", requests=256), QueueSettings("loop0")) == one
    assert _tuned(QueueSettings("sda", scheduler="none", requests=64)) != one
    assert _tuned(QueueSettings("sda", scheduler="none", requests=256), net__core__rmem_max=212992) != one


def test_the_settings_are_those_that_checks_look_at():
    root = Path(fingerprinting.__file__).parents[1] / "checks"
    judged = {
        name
        for file in root.rglob("*.py")
        for name in re.findall(r'"((?:net|vm|kernel|fs)\.[a-z0-9_.-]+)"', file.read_text())
    }
    assert set(SETTINGS) == judged - {"kernel.numa_balancing"}


def test_this_host_tells_something():
    need("fio")
    found = read_fingerprint(Roots.under(Path("/")), environment=os.environ, ceph=CephConfig(conf="/nowhere/ceph.conf"))
    assert found.kernel == os.uname().release
    assert found.fio
    assert re.fullmatch("[0-9a-f]{12}", found.tuning)


def test_a_part_that_fails_or_hangs_leaves_the_others(monkeypatch):
    import threading

    never = threading.Event()
    monkeypatch.setattr(fingerprinting, "WITHIN_S", 1.0)
    monkeypatch.setattr(fingerprinting, "_real_disks", lambda _roots: never.wait(30) and ())
    found = read_fingerprint(Roots.under(Path("/")), environment=os.environ)
    never.set()
    assert found.kernel == os.uname().release
    assert found.disks == {}
    assert found.tuning == ""
