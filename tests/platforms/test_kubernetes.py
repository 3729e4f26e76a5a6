"""deploy/kubernetes as its page says, on a cluster of one node: Kubernetes' own programs, a real kubelet, containerd.

``make test-platforms`` (root, Go) builds Kubernetes at the first run and keeps it. There is no Prometheus operator and
no Grafana: their objects are only taken by the API server. Rook's definitions can't be had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
import yaml

from support.certificates import make_certificates
from support.daemon import eventually
from support.kubernetes import IMAGE, NODE, Cluster
from support.kubernetes_page import (
    FOLDER,
    PAGE,
    ROLLED_OUT,
    URL,
    WITHIN_S,
    base_applied,
    first_lines,
    is_ready,
    pod,
    with_components,
)
from support.page_commands import ROOT
from support.systemd_host import ADDRESS, differing

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def base(cluster: Cluster) -> Iterator[Cluster]:
    with base_applied(cluster):
        yield cluster


def test_it_runs_and_has_no_rights(base: Cluster) -> None:
    assert is_ready(base)
    held = base.status("daemonset/plumbline")
    assert held["Uid"].split()[0] == held["Gid"].split()[0] == "65534"
    assert {int(held[f"Cap{which}"], 16) for which in ("Eff", "Prm", "Bnd")} == {0}
    assert (held["NoNewPrivs"], held["Seccomp"]) == ("1", "2")
    inside = "kubectl -n plumbline exec daemonset/plumbline -- sh -c"
    assert base.host.call(f"{inside} 'touch /x'").returncode
    assert base.host.run(f"{inside} 'ls /var/run/secrets 2>/dev/null || echo none'") == "none\n"
    assert "plumbline" in base.host.run(first_lines()[5])


def test_it_has_the_series_of_a_process_outside(base: Cluster) -> None:
    base.host.scrape(URL)
    base.host.run(f"podman create --name outside {IMAGE}")
    configuration = f"--config.file={FOLDER}/base/config/plumbline.yaml"
    try:
        with base.host.outside("outside", configuration, user=65534, port=10049) as outside:
            # which listens on loopback alone
            eventually(
                lambda: {each for each in differing(base.host, outside, URL) if "plumbline_web_info" not in each},
                until=lambda found: not found, within_s=WITHIN_S, every_s=2,
            )  # fmt: skip
    finally:
        base.host.run("podman rm outside")
    page = base.host.scrape(URL)
    assert {sample.value for sample in page.series("plumbline_collector_success")} == {1.0}
    print(len(page.samples), "series")


def test_doctor_says_what_is_missing(base: Cluster) -> None:
    said = base.host.call(first_lines()[6].replace("PROMETHEUS", "127.0.0.1")).stdout
    assert re.search(r"(?m)^ok +is the daemon up", said), said


def test_a_recorded_baseline_outlives_its_pod(base: Cluster) -> None:
    before = pod(base)["metadata"]["name"]
    script = PAGE.below("Privileges of the pod").script("baseline record").replace("POD", before)
    said = base.host.run(f"{script.rstrip()} --force", timeout_s=900)  # this machine is not quiet
    base.host.run(f"kubectl -n plumbline rollout restart daemonset/plumbline; {ROLLED_OUT}")
    assert pod(base)["metadata"]["name"] != before
    page = base.host.scrape(URL)
    assert page.series("plumbline_baseline_measured_timestamp_seconds", source="measured"), said


def test_latency_histograms_and_the_way_back(base: Cluster) -> None:
    def histograms() -> tuple[int, float | None]:
        page = base.host.scrape(URL)
        return len(page.series("plumbline_disk_latency_seconds_bucket")), page.get(
            "plumbline_finding", check="disk.latency-histograms"
        )

    with with_components(base, "disk-latency"):
        eventually(histograms, until=lambda seen: seen[0] > 0 and not seen[1], within_s=WITHIN_S, every_s=2)
        held = base.status("daemonset/plumbline")
        assert held["Uid"].split()[0] == "0"
        assert int(held["CapEff"], 16) == 0
    assert base.status("daemonset/plumbline")["Uid"].split()[0] == "65534"
    assert histograms()[0] == 0


def test_devices_are_read(base: Cluster) -> None:
    with with_components(base, "devices"):
        page = base.host.scrape(URL)
        assert page.get("plumbline_collector_success", collector="health") == 1.0
        assert page.get("plumbline_finding", check="host.privileges") in {None, 0.0}
        read = "head -c 512 /host/dev/$(ls /sys/block | head -1) | wc -c"
        assert base.host.run(f"kubectl -n plumbline exec daemonset/plumbline -- sh -c '{read}'").strip() == "512"


def test_tls_and_a_password(base: Cluster, tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    made.sign("node", f"IP:{ADDRESS}")
    web = {
        "tls_server_config": {"cert_file": "tls.crt", "key_file": "tls.key"},
        "basic_auth_users": {"prometheus": bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()},
    }
    files = {"tls.crt": made.crt("node"), "tls.key": made.key("node"), "ca.crt": made.crt("ca")}
    for name, path in files.items():
        base.host.write(f"/root/web/{name}", path.read_text())
    base.host.write("/root/web/web.yaml", yaml.safe_dump(web))
    text = (ROOT / "deploy/kubernetes/components/web-config/kustomization.yaml").read_text("utf-8")
    (create,) = re.findall(r"^# +(kubectl .*)$", text, re.MULTILINE)
    base.host.run(f"cd /root/web; {create}")
    with with_components(base, "web-config"):
        secure, trusted = URL.replace("http:", "https:"), ("--cacert", "/root/web/ca.crt")
        assert base.host.scrape(secure, *trusted, "--user", "prometheus:right").samples
        assert base.host.get(f"{secure}/metrics", *trusted, "--user", "prometheus:wrong") is None
        assert base.host.get(f"{URL}/metrics") is None
        assert is_ready(base)
    base.host.run("kubectl -n plumbline delete secret plumbline-web")


def test_a_network_policy_is_taken_and_this_network_ignores_it(base: Cluster) -> None:
    with with_components(base, "network-policy"):
        (policy,) = base.look("networkpolicies")["items"]
        assert policy["spec"]["ingress"][0]["ports"] == [{"port": "metrics", "protocol": "TCP"}]
        assert base.host.scrape(URL).samples
    base.host.run("kubectl -n plumbline delete networkpolicy plumbline")


def test_a_lease_around_a_node_that_is_drained(base: Cluster) -> None:
    """With Rook its namespace is another; the daemon is left where it is. A lease holds once a scrape has seen it."""
    script = PAGE.below("Maintenance of a node").script("drain").replace("rook-ceph", "plumbline")
    before = pod(base)["metadata"]["name"]
    scrapes = f"while sleep 2; do curl -sS -o /dev/null {URL}/metrics; done & trap 'kill %1' EXIT"
    said = base.page(f"{scrapes}\nPOD={before}\n{script.replace('node2', NODE)}")
    assert f"maintenance of {NODE} until" in said
    assert f"node/{NODE} uncordoned" in said
    assert pod(base)["metadata"]["name"] == before
