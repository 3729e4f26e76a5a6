"""Every mistake in a configuration file is one line: file, key, value, reason."""

import pytest

from plumbline import __version__
from plumbline.config.model import DEFAULT_LISTEN_ADDRESS, Config, load, parse, split_address
from plumbline.config.probes.disk import CanaryConfig, FioConfig
from plumbline.config.types import Duration
from plumbline.errors import ConfigError

FIO = "probes: [{type: fio, name: f, workload: randread-4k-qd1-j1"

BAD = {
    "written for a newer release": (
        "schema_version: 2\nprobes: {of: another shape}",
        f"c.yaml: schema_version = 2: written for a newer Plumbline; this one ({__version__}) supports 1: upgrade, "
        "or restore the previous file",
    ),
    "a version that never was": ("schema_version: '1'", "c.yaml: schema_version = '1': expected 1"),
    "a credential without a name": (
        "ceph: {keyring: 'credential:'}",
        "c.yaml: ceph.keyring = 'credential:': expected credential:NAME, as LoadCredential= in the unit names it",
    ),
    "a credential that is a path": (
        "probes: [{type: s3, name: s, endpoint: 'http://h', bucket: abc, credentials_file: 'credential:../x'}]",
        "c.yaml: probes[0].credentials_file = 'credential:../x': expected credential:NAME, as LoadCredential= in "
        "the unit names it",
    ),
    "unknown key": ("colectors: {}", "c.yaml: colectors: no such key; see the configuration reference"),
    "unknown nested key": ("web: {port: 1}", "c.yaml: web.port: no such key; see the configuration reference"),
    "unknown key of a probe": (
        "probes: [{type: canary, name: c, direktory: /x}]",
        "c.yaml: probes[0].direktory: no such key; see the configuration reference",
    ),
    "wrong type": ("web: {listen_address: 5}", "c.yaml: web.listen_address = 5: expected `str`, got `int`"),
    "not a mapping": ("- a\n- b", "c.yaml: expected `object`, got `array`"),
    "a list for a mapping": (
        "collectors: [softnet]",
        "c.yaml: collectors = ['softnet']: expected `object`, got `array`",
    ),
    "address without port": (
        "web: {listen_address: localhost}",
        "c.yaml: web.listen_address = 'localhost': expected host:port, for example 127.0.0.1:10047 or [::1]:10047",
    ),
    "port out of range": (
        "web: {listen_address: '127.0.0.1:70000'}",
        "c.yaml: web.listen_address = '127.0.0.1:70000': expected host:port, for example 127.0.0.1:10047 or "
        "[::1]:10047",
    ),
    "bad IPv6": (
        "web: {listen_address: '[1::2::3]:80'}",
        "c.yaml: web.listen_address = '[1::2::3]:80': not an IPv6 address in []",
    ),
    "bare number as duration": (
        FIO + ", interval: 3600}]",
        "c.yaml: probes[0].interval = 3600: expected a duration such as 500ms, 15s, 5m, 6h or 1d",
    ),
    "decimal megabytes": (
        FIO + ", file_size: 64MB}]",
        "c.yaml: probes[0].file_size = '64MB': expected bytes or a size such as 64MiB or 1GiB (binary units only)",
    ),
    "a rate that would hurt": (
        "probes: [{type: canary, name: c, rate: 5000}]",
        "c.yaml: probes[0].rate = 5000: expected `float` <= 100.0",
    ),
    "a rate of nothing": (
        "probes: [{type: canary, name: c, rate: 0}]",
        "c.yaml: probes[0].rate = 0: expected `float` > 0.0",
    ),
    "a rate that fio can't be told": (
        FIO + ", rate_iops: 0.5}]",
        "c.yaml: probes[0].rate_iops = 0.5: expected `int | null`, got `float`",
    ),
    "unknown probe type": ("probes: [{type: dd, name: x}]", "c.yaml: probes[0].type = 'dd': invalid value 'dd'"),
    "probe without name": ("probes: [{type: canary}]", None),
    "unspeakable name": (
        "probes: [{type: canary, name: 'a b'}]",
        "c.yaml: probes[0].name = 'a b': use lower-case letters, digits, '.', '_' and '-'",
    ),
    "raw disks are not written": (
        "probes: [{type: fio, name: f, workload: randwrite-4k-qd1-j1, devices: [sdb]}]",
        "c.yaml: probes[0].workload = 'randwrite-4k-qd1-j1': raw devices are only read",
    ),
    "a raw canary has one read in flight": (
        "probes: [{type: raw-canary, name: r, workload: randread-4k-qd16-j1}]",
        "c.yaml: probes[0].workload = 'randread-4k-qd16-j1': "
        "the canary does single O_DIRECT operations: a disk workload with qd1-j1",
    ),
    "a raw disk by its kernel name": (
        "probes: [{type: raw-canary, name: r, devices: [/dev/sdb]}]",
        "c.yaml: probes[0].devices = '/dev/sdb': expected a kernel name such as sdb or nvme0n1, or osd",
    ),
    "an OSD by its number alone": (
        "probes: [{type: osd-bench, name: o, osds: ['3']}]",
        "c.yaml: probes[0].osds = '3': osd.N, or host",
    ),
    "a password in an address is not shown": (
        "probes: [{type: s3, name: s, endpoint: 'http://u:secret@h', bucket: abc, credentials_file: /x}]",
        "c.yaml: probes[0].endpoint: http:// or https:// with a host and nothing else",
    ),
    "the name of a file of ours": (
        "probes: [{type: canary, name: lock}]",
        "c.yaml: probes[0].name = 'lock': Plumbline has a file of this name; choose another",
    ),
    "a relative admin socket": (
        "ceph: {admin_sockets: [/run/a, run/b]}",
        "c.yaml: ceph.admin_sockets[1] = 'run/b': expected an absolute path; * is allowed, ** is not",
    ),
    "a health check in lower case": (
        "gates: {ignored_checks: [MON_DOWN, auth_insecure]}",
        "c.yaml: gates.ignored_checks[1] = 'auth_insecure': expected a health check's name such as MON_DOWN",
    ),
    "a name twice": (
        "probes: [{type: canary, name: c}, {type: canary, name: c}]",
        "c.yaml: probes[1].name = 'c': another probe has this name",
    ),
    "unknown workload": (
        "probes: [{type: fio, name: f, workload: randread-4k-qd1-j2}]",
        None,
    ),
    "a canary of queue depth 16": (
        "probes: [{type: canary, name: c, workloads: [randread-4k-qd16-j1]}]",
        "c.yaml: probes[0].workloads = 'randread-4k-qd16-j1': the canary does single O_DIRECT operations: a disk "
        "workload with qd1-j1",
    ),
    "a canary of no workload": (
        "probes: [{type: canary, name: c, workloads: []}]",
        "c.yaml: probes[0].workloads = []: name at least one workload",
    ),
    "a canary with two kinds of write": (
        "probes: [{type: canary, name: c, workloads: [randwrite-4k-qd1-j1, randwrite-4k-qd1-j1-dsync]}]",
        "c.yaml: probes[0].workloads = 'randwrite-4k-qd1-j1-dsync': two workloads with the same operation",
    ),
    "a timeout shorter than the run": (
        FIO + ", runtime: 30s, timeout: 20s}]",
        "c.yaml: probes[0].timeout = '20s': must be longer than runtime",
    ),
    "a probe that never rests": (
        FIO + ", interval: 1m, timeout: 50s}]",
        "c.yaml: probes[0].interval = '60s': must be at least twice the timeout, so that the probe pauses",
    ),
    "no interval and no timeout": (
        FIO + ", interval: 0s, timeout: 0s, runtime: 0s}]",
        "c.yaml: probes[0].interval = '0s': at least 1s",
    ),
    "an interval of a millisecond": (
        FIO + ", interval: 1ms, timeout: 0.1ms, runtime: 0s}]",
        "c.yaml: probes[0].interval = '0.001s': at least 1s",
    ),
    "a timeout within which nothing can answer": (
        FIO + ", timeout: 1ms, runtime: 0s}]",
        "c.yaml: probes[0].timeout = '0.001s': at least 100ms",
    ),
    "a run of no time": (
        FIO + ", runtime: 0s}]",
        "c.yaml: probes[0].runtime = '0s': at least 1s",
    ),
    "a canary that is always stuck": (
        "probes: [{type: canary, name: c, stuck_after: 0s}]",
        "c.yaml: probes[0].stuck_after = '0s': at least 1s",
    ),
    "packets without a gap": (
        "probes: [{type: rtt, name: r, targets: [h], gap: 0s}]",
        "c.yaml: probes[0].gap = '0s': at least 1ms",
    ),
    "a file smaller than a block": (
        "probes: [{type: fio, name: f, workload: write-4m-qd4-j4, file_size: 1MiB}]",
        "c.yaml: probes[0].file_size = 1048576: smaller than the workload's block",
    ),
    "an image smaller than a block": (
        "probes: [{type: rbd-bench, name: r, image_size: 512KiB}]",
        "c.yaml: probes[0].image_size = 524288: at least 1MiB",
    ),
    "a bench smaller than a block": (
        "probes: [{type: rbd-bench, name: r, total: 1KiB}]",
        "c.yaml: probes[0].total = 1024: smaller than the workload's block",
    ),
    "a disk's workload on an image": ("probes: [{type: rbd-fio, name: r, workload: randwrite-4k-qd1-j1}]", None),
    "not a regular expression": (
        "devices: {disk_exclude: '('}",
        "c.yaml: devices.disk_exclude = '(': not a regular expression: missing ), "
        "unterminated subpattern at position 0",
    ),
    "a key twice": ("web: {}\nweb: {}", "c.yaml:2: not valid YAML: duplicate key 'web'"),
    "not YAML": ("web: [", "c.yaml:2: not valid YAML: did not find expected node content"),
    "a control character": ("web: \x01", None),
    "a tag": ("web: !!python/object:os.system {}", None),
    "a cluster waited for too long": (
        "ceph: {timeout: 2m}",
        "c.yaml: ceph.timeout = '120s': 1s to 30s: a probe must not wait longer for a cluster that hangs",
    ),
    "a controller's node that is an option": (
        "devices: {controller_disks: {--all: ['megaraid,8']}}",
        "c.yaml: devices.controller_disks = {'--all': ('megaraid,8',)}: expected a node such as /dev/bus/0 or /dev/sg0",
    ),
    "a controller's disk that is none": (
        "devices: {controller_disks: {/dev/sda: [sat]}}",
        "c.yaml: devices.controller_disks = {'/dev/sda': ('sat',)}: expected a type such as megaraid,8 or cciss,0: "
        "3ware, aacraid, areca, cciss, hpt, megaraid or sssraid",
    ),
    "a controller's disk that smartctl asks by writing to it": (
        "devices: {controller_disks: {/dev/sda: ['jmb39x,0']}}",
        "c.yaml: devices.controller_disks = {'/dev/sda': ('jmb39x,0',)}: expected a type such as megaraid,8 or cciss,0"
        ": 3ware, aacraid, areca, cciss, hpt, megaraid or sssraid",
    ),
    "health asked too often": (
        "devices: {health_interval: 30s}",
        "c.yaml: devices.health_interval = '30s': at least 60s: each query interrupts the disk",
    ),
}


@pytest.mark.parametrize("case", BAD, ids=[case.replace(" ", "-") for case in BAD])
def test_a_mistake_is_one_line(case):
    text, message = BAD[case]
    with pytest.raises(ConfigError) as caught:
        parse(text, where="c.yaml")
    said = str(caught.value)
    assert said.startswith("c.yaml")
    assert "\n" not in said
    if message is not None:
        assert said == message


@pytest.mark.parametrize(
    "kind", ["megaraid,8", "sat+megaraid,8", "3ware,2", "areca,3/1", "hpt,1/2/3", "scsi+cciss,0", "aacraid,0,0,3"]
)
def test_what_smartctl_takes_for_a_disk_behind_a_controller(kind: str) -> None:
    parsed = parse(f"devices: {{controller_disks: {{/dev/sg0: ['{kind}']}}}}", where="c")
    assert parsed.devices.controller_disks == {"/dev/sg0": (kind,)}


def test_an_unknown_workload_names_its_neighbours():
    with pytest.raises(ConfigError, match=r"similar: .*randread-4k-qd2-j1"):
        parse("probes: [{type: fio, name: f, workload: randread-4k-qd2}]", where="c")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "{}"])
def test_nothing_is_the_default(text):
    config = parse(text, where="c.yaml")
    assert config == Config()
    assert config.web.listen_address == DEFAULT_LISTEN_ADDRESS
    assert [type(probe) for probe in config.probes] == [CanaryConfig, FioConfig, FioConfig]
    assert parse("probes: []", where="c").probes == ()


def test_the_defaults_pass_their_own_checks():
    text = "probes: [{type: canary, name: canary}, {type: fio, name: f, workload: randwrite-4k-qd1-j1}]"
    assert len(parse(text, where="c").probes) == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("15s", 15), ("5m", 300), ("6h", 21600), ("1d", 86400), ("1w", 604800)]
)
def test_durations(text, seconds):
    assert Duration.parse(text) == seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        (":10047", ("", 10047)),
        ("[::1]:1", ("::1", 1)),
        ("node7.example:9", ("node7.example", 9)),
    ],
)
def test_addresses(text, expected):
    assert split_address(text) == expected


def test_files_that_cant_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"c\.yaml: can't be read: No such file or directory"):
        load(tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"storage_path: /caf\xe9\n")
    with pytest.raises(ConfigError, match="is not UTF-8 at byte 18"):
        load(tmp_path / "latin.yaml")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('storage_path: "/var/lib/a\\0b"', "storage_path"),
        ('web: {config_file: "/etc/\\0"}', "web.config_file"),
        ('baseline: {files: ["/a", "/b\\0"]}', "baseline.files[1]"),
        ('ceph: {keyring: "/etc/\\0"}', "ceph.keyring"),
        ('probes: [{type: canary, name: canary, directory: "/srv/\\0"}]', "probes[0].directory"),
        ('collectors: {"a\\0": true}', "collectors.a"),
    ],
)
def test_a_nul_is_refused_with_its_key(text: str, key: str) -> None:
    with pytest.raises(ConfigError, match="contains a NUL") as refused:
        parse(text, where="f")
    assert str(refused.value).startswith(f"f: {key}")
    assert "\n" not in str(refused.value)
