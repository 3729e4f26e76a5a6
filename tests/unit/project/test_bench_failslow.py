"""The traces of the fail-slow benchmark become what the exporter would have shown. The lines are made up here."""

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed; it comes with requirements/dev.txt")

from bench import failslow  # noqa: E402

LINES = [
    '"ts","disk_id","throughput","latency"',
    '1000000030,"disk2",81920,200',
    '1000000000,"disk1",40960,100',
    '1000000015,"disk1",81920,50',
    '1000000030,"disk1",NA,NA',
    '1000000045,"disk1",40960,100',
    '1000000060,"disk1",40960,400',
]


def by_name(trace):
    found = {}
    for each in failslow.series(trace):
        labels = dict(each.labels)
        found[labels["__name__"] + labels.get("le", "")] = each
    return found


def test_lines_become_counters_that_hold_the_same_means():
    one, two = sorted(failslow.read_traces("cluster_Z", "host_3", LINES), key=lambda trace: trace.drive)
    assert (one.drive, two.drive) == (("cluster_Z", "host_3", "disk1"), ("cluster_Z", "host_3", "disk2"))
    found = by_name(one)
    total, count = found["plumbline_disk_latency_seconds_sum"], found["plumbline_disk_latency_seconds_count"]
    # a sample of every fourth line; 150, 300, none, 150 and 150 operations of 4 KiB
    assert count.times_ms.tolist() == [1_000_000_000_000, 1_000_000_060_000]
    assert count.values.tolist() == [150, 750]
    assert np.diff(total.values)[0] == pytest.approx(300 * 50e-6 + 150 * 100e-6 + 150 * 400e-6)
    assert found["plumbline_disk_latency_seconds_bucket6.4e-05"].values.tolist() == [0, 300]
    assert found["plumbline_disk_latency_seconds_bucket+Inf"].values.tolist() == count.values.tolist()
    assert np.diff(found["plumbline_disk_io_bytes_total"].values)[0] == 600 * failslow.SIZE_BYTES
    # an OSD that waits for its disk alone
    for name in ("ceph_bluestore_read_lat", "ceph_osd_op_r_latency", "ceph_osd_op_r_prepare_latency"):
        assert found[name + "_sum"].values.tolist() == total.values.tolist()
        assert found[name + "_count"].values.tolist() == count.values.tolist()
        assert dict(found[name + "_sum"].labels)["ceph_daemon"] == "osd.301"
    assert dict(found["plumbline_disk_info"].labels)["osd"] == "osd.301"
    assert dict(found["ceph_osd_metadata"].labels)["hostname"] == "host_3"
    labels = dict(count.labels)
    assert (labels["cluster"], labels["instance"], labels["device"]) == ("cluster_Z", "host_3:10047", "disk1")


def test_a_minute_has_the_mean_of_its_operations():
    one = min(failslow.read_traces("cluster_Z", "host_3", LINES), key=lambda trace: trace.drive)
    assert np.exp(failslow.minutes(one)) == pytest.approx([75e-6, 400e-6])


def test_labels_and_files(tmp_path):
    lines = ["cluster,host_name,workload,disk_id,", "cluster_Z,host_3,block,disk1,"]
    assert failslow.read_slow(lines) == {("cluster_Z", "host_3", "disk1")}
    for name in ("host_3/2022-01-01.csv", "host_3/._2022-01-01.csv", "host_synth1/2022-01-01.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(LINES))
    assert [str(path.relative_to(tmp_path)) for path in failslow._files(tmp_path)] == ["host_3/2022-01-01.csv"]
