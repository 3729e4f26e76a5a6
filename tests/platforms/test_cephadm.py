"""deploy/cephadm as its page says, on a cluster that cephadm has made: one host, three OSDs on loop devices.

``make test-platforms`` (root) runs it on Ceph 16, with ``CEPH=18`` on 18. The tests follow the page
from the key to the removal, in its order, on the same cluster. In the place of Grafana is a container that waits.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cephadm_cluster import CEPH, MONITORING, OSDS, WITHIN_S, Cephadm, cephadm_cluster
from support.cephadm_page import GIVEN, IMAGE, PAGE, SERVICE, SPEC, uncommented, with_processes
from support.certificates import make_certificates
from support.daemon import eventually
from support.page_commands import ROOT, Page, flags
from support.podman import Podman
from support.systemd_host import ADDRESS, SHIPPED, Host, answered, differing

CONTAINER = Page.of("docs/container.md")
URL = "http://127.0.0.1:10047"
PROMETHEUS, ALERTMANAGER = "http://127.0.0.1:9095", "http://127.0.0.1:9093"

pytestmark = pytest.mark.timeout(3600)


@dataclass(frozen=True)
class Site:
    """The page's commands on the cluster's host."""

    cluster: Cephadm

    @property
    def host(self) -> Host:
        return self.cluster.host

    def placed(self, script: str) -> str:
        """With what the page leaves to the reader."""
        names = {"HOST": self.host.name, "FSID": self.cluster.fsid, "PROMETHEUS": "127.0.0.1"}
        return re.sub(r"\b(HOST|FSID|PROMETHEUS)\b", lambda found: names[found[1]], script)

    def run(self, script: str, *, terminal: bool = False) -> str:
        return self.host.run(self.placed(script), terminal=terminal)

    def container(self) -> str:
        """The id of ours, as long as there is one."""
        return self.host.run("podman ps -q --filter name=container.plumbline --filter name=container-plumbline").strip()

    def apply(self, spec: dict[str, Any]) -> None:
        """The page's command for a changed spec; the redeployment is the caller's."""
        self.host.write(f"{SHIPPED}/{SPEC}", yaml.safe_dump(spec, sort_keys=False))
        (argv,) = PAGE.below("2. The daemon").commands("ceph orch apply")
        self.run(shlex.join(argv))

    def redeployed(self, action: str) -> None:
        """Run what makes a new container of ours, and wait until there is one."""
        before = self.container()
        self.run(action)
        eventually(self.container, until=lambda now: now not in {"", before}, within_s=WITHIN_S, every_s=2)

    def file(self, name: str) -> str:
        """In our daemon's directory."""
        return f"/var/lib/ceph/{self.cluster.fsid}/{SERVICE}.{self.host.name}/{name}"


@pytest.fixture(scope="module")
def site(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    podman.run("tag", "localhost/plumbline:0.1.0", IMAGE)
    with cephadm_cluster(podman, tmp_path_factory.mktemp("osds")) as cluster:
        yield Site(cluster)


def redeploy() -> str:
    return "ceph orch redeploy container.plumbline"


def another_user() -> tuple[str, str, str]:
    """The page's ``chown`` for root, the one for the way back, and what follows."""
    text = PAGE.below("2. The daemon").text
    chown, then = PAGE.below("2. The daemon").script("chown -R 0:0").splitlines()
    (back,) = re.findall(r"# the way back: (\d+:\d+)", text)
    assert then == redeploy()
    return chown.strip(), chown.replace("0:0", back).strip(), then


def test_user_pools_and_key(site: Site) -> None:
    site.run(PAGE.below("1. User, pools, key").script())
    pools = json.loads(site.host.run("ceph osd pool ls --format json"))
    assert {"plumbline-probe", "plumbline-rbd"} <= set(pools)

    def key() -> str:
        return site.host.call("stat --format '%u:%g %a' /etc/ceph/ceph.client.plumbline.keyring").stdout.strip()

    eventually(key, until=lambda seen: seen == "167:167 400", within_s=WITHIN_S)


def test_the_daemon_runs_and_is_shown(site: Site) -> None:
    site.run(PAGE.below("2. The daemon").script("/etc/tmpfiles.d"))
    apply, ps, logs = PAGE.below("2. The daemon").script("orch ps").splitlines()
    site.run(apply)
    page = site.host.scrape(within_s=WITHIN_S)
    assert {sample.value for sample in page.series("plumbline_collector_success")} == {1.0}
    eventually(lambda: site.run(ps), until=lambda said: "running" in said, within_s=WITHIN_S, every_s=3)
    assert "plumbline" in site.run(logs)
    pid = site.host.run(f"podman inspect --format '{{{{ .State.Pid }}}}' {site.container()}").strip()
    status = dict(line.partition(":\t")[::2] for line in site.host.run(f"cat /proc/{pid}/status").splitlines())
    assert status["Uid"].split()[0] == "167"
    assert {int(status[f"Cap{which}"], 16) for which in ("Eff", "Prm", "Bnd")} == {0}


def wait_for_all_osds(site: Site, name: str) -> None:
    """Until the daemon shows this series of each."""
    wanted = {f"osd.{number}" for number in range(OSDS)}
    eventually(
        lambda: site.host.scrape().labels(name, "ceph_daemon"), until=lambda seen: seen == wanted,
        within_s=WITHIN_S, every_s=2,
    )  # fmt: skip


def test_it_asks_for_the_clusters_map(site: Site) -> None:
    """``ceph.map`` is ``auto``, and this host has a monitor."""
    wait_for_all_osds(site, "plumbline_ceph_osd_in")


def test_it_reads_the_osds_admin_sockets(site: Site) -> None:
    wait_for_all_osds(site, "plumbline_osd_socket_up")
    top = site.host.run(f"cephadm enter --name {SERVICE}.{site.host.name} -- plumbline ceph top", terminal=True)
    assert {f"osd.{number}" for number in range(OSDS)} <= set(re.findall(r"osd\.\d", top)), top


def outside(site: Site) -> AbstractContextManager[str]:
    """The same daemon outside its container; it listens on the same addresses, which is a series."""
    # cephadm gives the cluster's directory to the user of what it deployed last, whoever that is
    site.host.run(f"install --mode=644 {site.file('etc/plumbline.yaml')} /etc/plumbline-outside.yaml")
    return site.host.outside(site.container(), "--config.file=/etc/plumbline-outside.yaml", user=167, listen="[::]")


def test_it_has_the_series_of_a_process_outside(site: Site) -> None:
    """But for those that need the OSDs' process numbers."""
    with outside(site) as other:

        def missing() -> set[str]:
            return {each for each in differing(site.host, other, URL) if "plumbline_osd_connection" not in each}

        eventually(missing, until=lambda found: not found, within_s=WITHIN_S, every_s=3)
    print(len(site.host.scrape().samples), "series")


def test_it_has_all_of_them_with_the_hosts_processes(site: Site) -> None:
    site.apply(with_processes(GIVEN))
    site.redeployed(redeploy())
    with outside(site) as other:
        eventually(
            lambda: differing(site.host, other, URL), until=lambda found: not found, within_s=WITHIN_S, every_s=3
        )
    seen = site.host.scrape().labels("plumbline_osd_connections", "ceph_daemon")
    assert seen == {f"osd.{number}" for number in range(OSDS)}


def test_the_canary_in_rados_judges_each_osd(site: Site) -> None:
    site.apply(uncommented(GIVEN))
    site.redeployed(redeploy())
    wanted = {f"objects/osd.{number}" for number in range(OSDS)}
    eventually(
        lambda: site.host.scrape().labels("plumbline_canary_latency_seconds_count", "probe") - {"canary"},
        until=lambda seen: seen == wanted, within_s=WITHIN_S, every_s=3,
    )  # fmt: skip
    assert site.host.scrape().get("plumbline_config_last_reload_successful") == 1.0


def as_root(spec: dict[str, Any], row: str) -> dict[str, Any]:
    """The row's changes in the spec."""
    column = PAGE.row(row)
    assert all(words in PAGE.row("disk latency histograms") for words in ("`--user=0:0`", "`uid: 0`", "`gid: 0`"))
    args = [each for each in spec["spec"]["args"] if not each.startswith("--user=")]
    added = [*flags(PAGE.row("disk latency histograms")), "--security-opt=seccomp=/etc/plumbline-seccomp.json"]
    added += [flag for flag in flags(column) if flag not in added]
    return {**spec, "spec": {**spec["spec"], "uid": 0, "gid": 0, "args": [*args, *added]}}


@pytest.fixture
def way_back(site: Site) -> Iterator[None]:
    yield
    _, chown, then = another_user()
    site.apply(GIVEN)
    site.run(chown)
    site.redeployed(then)
    site.host.scrape(within_s=WITHIN_S)


def histograms(site: Site) -> tuple[int, float | None]:
    """Buckets of disks, and what the finding about them says: 1, they are missing."""
    page = site.host.scrape()
    return len(page.series("plumbline_disk_latency_seconds_bucket")), page.get(
        "plumbline_finding", check="disk.latency-histograms"
    )


@pytest.mark.usefixtures("way_back")
def test_histograms_of_root_once_the_state_is_given(site: Site) -> None:
    chown, _, then = another_user()
    site.host.run(f"python3 -c {shlex.quote(CONTAINER.written())} > /etc/plumbline-seccomp.json")
    site.apply(as_root(GIVEN, "disk latency histograms"))
    site.run(then)
    (_, _, logs) = PAGE.below("2. The daemon").script("orch ps").splitlines()
    eventually(
        lambda: site.host.call(site.placed(logs)).stdout,
        until=lambda said: "belongs to user 167" in said, within_s=WITHIN_S, every_s=3,
    )  # fmt: skip
    site.run(chown)
    site.run(then)
    eventually(lambda: site.host.get(URL), within_s=WITHIN_S, every_s=2)
    eventually(lambda: histograms(site), until=lambda seen: seen[0] > 0 and not seen[1], within_s=WITHIN_S, every_s=2)
    sockets = site.host.scrape().labels("plumbline_osd_socket_up", "ceph_daemon")
    assert len(sockets) == OSDS


@pytest.mark.usefixtures("way_back")
def test_smart_and_raw_disks(site: Site) -> None:
    chown, _, then = another_user()
    disk = site.cluster.disks[0]
    spec = as_root(GIVEN, "SMART and raw disks")
    args = [each.replace("/dev/sda", disk) for each in spec["spec"]["args"]]
    assert f"--device={disk}:r" in args
    site.apply({**spec, "spec": {**spec["spec"], "args": args}})
    site.run(chown)
    site.redeployed(then)
    page = site.host.scrape(within_s=WITHIN_S)
    assert page.get("plumbline_collector_success", collector="health") == 1.0
    read = f"podman exec {site.container()} python3 -c \"print(len(open('{disk}', 'rb').read(512)))\""
    assert site.host.run(read) == "512\n"


def test_tls(site: Site, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    (flag,) = flags(PAGE.row("TLS and passwords"))
    files = {
        **GIVEN["spec"]["files"],
        "etc/web.yaml": ["tls_server_config:", "  cert_file: server.crt", "  key_file: server.key"],
        "etc/server.crt": certificates.crt("server").read_text().splitlines(),
        "etc/server.key": certificates.key("server").read_text().splitlines(),
    }
    serve = [*GIVEN["extra_entrypoint_args"], flag]
    site.apply({**GIVEN, "extra_entrypoint_args": serve, "spec": {**GIVEN["spec"], "files": files}})
    site.redeployed(redeploy())
    site.host.write("/root/ca.crt", certificates.crt("ca").read_text())
    site.host.scrape("https://127.0.0.1:10047", "--cacert", "/root/ca.crt", within_s=WITHIN_S)
    assert site.host.get(URL) is None
    site.apply(GIVEN)
    site.redeployed(redeploy())
    site.host.scrape(within_s=WITHIN_S)


def targets(site: Site) -> dict[str, tuple[str, str]]:
    """cephadm's Prometheus: job → its last target's ``instance`` and health."""
    said = json.loads(site.host.get(f"{PROMETHEUS}/api/v1/targets") or "{}")
    found = said.get("data", {}).get("activeTargets", [])
    return {each["labels"]["job"]: (each["labels"]["instance"], each["health"]) for each in found}


THEIRS = {"ceph": (f"{ADDRESS}:9283" if CEPH == "16" else "ceph_cluster", "up"), "node": ("stor01", "up")}


def test_prometheus_and_alertmanager_take_ours(site: Site) -> None:
    for kind in MONITORING:
        site.cluster.running(kind)
    site.host.run("cp alerts/alertmanager/alertmanager.yaml my-alertmanager.yaml")
    site.run(PAGE.below("3. Prometheus and Alertmanager").script("render.py"))
    wanted = {**THEIRS, "plumbline": ("stor01", "up")}
    eventually(lambda: targets(site), until=lambda seen: seen == wanted, within_s=WITHIN_S, every_s=3)

    def told() -> set[str]:
        alerts = json.loads(site.host.get(f"{ALERTMANAGER}/api/v2/alerts") or "[]")
        return {each["labels"]["alertname"] for each in alerts}

    eventually(told, until=lambda seen: "PlumblineWatchdog" in seen, within_s=WITHIN_S, every_s=3)
    routes = json.loads(site.host.get(f"{ALERTMANAGER}/api/v2/status") or "{}")["config"]["original"]
    assert "ceph-dashboard" in routes


def test_grafana_is_given_the_dashboards(site: Site) -> None:
    site.cluster.running("grafana")
    site.host.run("mkdir -p /etc/plumbline; cp -r /root/plumbline/dashboards /etc/plumbline/")
    text = (ROOT / "deploy/cephadm/grafana.yaml").read_text("utf-8")
    (commands,) = re.findall(r"^#   (ceph orch apply .*)$", text, re.MULTILINE)
    site.host.run(f"cd deploy/cephadm; {commands}")
    (given,) = yaml.safe_load(text)["custom_configs"]
    inside = f"cat {given['mount_path']}; cat /var/lib/plumbline-dashboards/*.json | wc -l"
    wanted = f"{given['content']}{len(list((ROOT / 'dashboards/out').glob('plumbline-*.json')))}\n"
    # as the container's own user
    read = f"podman exec $(podman ps -q --filter name=grafana) sh -c {shlex.quote(inside)}"
    eventually(
        lambda: site.host.call(read).stdout, until=lambda said: said == wanted, within_s=WITHIN_S, every_s=3
    )  # fmt: skip


def test_doctor_looks_at_all_of_it(site: Site) -> None:
    (command,) = re.findall(r"`(cephadm enter [^`]*doctor[^`]*)`", PAGE.below("Is it complete").text)
    done = site.host.call(site.placed(command), terminal=True)
    states = answered(done.stdout)
    asked = ("is the daemon up", "do all collectors work", "is it scraped", "do rules see it", "does Ceph answer")
    for question in (*asked, "does an Alertmanager get its alerts"):
        assert states[question] == "ok", done.stdout + done.stderr


def test_a_lease(site: Site) -> None:
    start, _, _, end = PAGE.below("Maintenance of a host").script("maintenance start").splitlines()
    ours = f"OURS={SERVICE}.{site.host.name}\n"
    assert "maintenance of stor02 until" in site.run(ours + start, terminal=True)
    held = site.host.scrape().labels("plumbline_maintenance_until_timestamp_seconds", "host")
    assert "stor02" in held
    site.run(ours + end, terminal=True)


def test_it_is_removed(site: Site) -> None:
    lines = PAGE.below("Remove").scripts()[0].splitlines()
    assert lines[-1].startswith("plumbline ceph remove")  # where a package is installed
    site.run("\n".join(lines[:-1]))
    eventually(site.container, until=lambda now: not now, within_s=WITHIN_S, every_s=2)
    eventually(lambda: targets(site), until=lambda seen: seen == THEIRS, within_s=WITHIN_S, every_s=3)
    assert "Plumbline" not in (site.host.get(f"{PROMETHEUS}/api/v1/rules") or "Plumbline")
    key = "ls /etc/ceph | grep plumbline || true"
    eventually(lambda: site.host.run(key), until=lambda seen: not seen, within_s=WITHIN_S, every_s=3)
    site.host.run("ceph config set mon mon_allow_pool_delete true")
    site.run(PAGE.below("Remove").scripts()[1])
    assert "plumbline" not in site.host.run("ceph osd pool ls; ceph auth ls; ls /var/lib/ceph/*")
