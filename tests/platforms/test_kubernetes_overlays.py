"""The overlays of deploy/kubernetes, on the cluster of ``test_kubernetes.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from support.daemon import eventually
from support.kubernetes import Cluster
from support.kubernetes_page import FOLDER, OURS, PAGE, ROLLED_OUT, ROOKS, URL, WITHIN_S, first_lines, pod
from support.page_commands import ROOT

pytestmark = pytest.mark.timeout(1800)

MONITORS = "a=192.0.2.21:6789,b=192.0.2.22:6789"


@pytest.fixture(scope="module")
def operators(cluster: Cluster) -> Iterator[Cluster]:
    """The page's first script, where the operator's definitions are."""
    render, cd, image, apply, *_ = first_lines()
    cluster.page("kubectl apply --server-side -f /opt/kubernetes/definitions")
    cluster.page("kubectl wait --for=condition=Established crd --all --timeout=60s")
    cluster.page("\n".join([render, cd, image, apply, ROLLED_OUT]))
    yield cluster
    cluster.host.call("kubectl delete namespace plumbline --ignore-not-found --timeout=120s")


def test_the_api_server_takes_monitor_rules_and_dashboards(operators: Cluster) -> None:
    (monitor,) = operators.look("servicemonitors")["items"]
    assert monitor["spec"]["jobLabel"] == "app.kubernetes.io/name"
    rules = operators.look("prometheusrules")["items"]
    stored = {group["name"]: len(group["rules"]) for each in rules for group in each["spec"]["groups"]}
    files = [yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "alerts" / "out").glob("*.yaml")]
    assert stored == {group["name"]: len(group["rules"]) for file in files for group in file["groups"]}
    pages = operators.look("configmaps", f"--selector={OURS}")["items"]
    assert len(pages) == len(list((ROOT / "dashboards" / "out").glob("plumbline-*.json")))


def test_nothing_is_unknown_to_the_definitions(operators: Cluster) -> None:
    """A field that a definition does not have is dropped without a word, unless it is asked for."""
    operators.host.run(
        f"cd {FOLDER}/overlays/prometheus-operator; kubectl apply --dry-run=server --validate=strict -k ."
    )


def without_its_user(cluster: Cluster) -> str:
    """The overlay for Rook as kustomize builds it, without the object whose definition only Rook has."""
    script = f"cd {FOLDER}/overlays/rook; {first_lines()[2]}; kubectl kustomize ."
    built = list(yaml.safe_load_all(cluster.page(script)))
    assert [each["kind"] for each in built].count("CephClient") == 1
    return yaml.safe_dump_all(each for each in built if each["kind"] != "CephClient")


def test_beside_rook_and_beside_the_other_overlay(operators: Cluster) -> None:
    """Both on one node; the pod waits for the key, as the page says."""
    host = operators.host
    host.run("kubectl create namespace rook-ceph")
    try:
        without = without_its_user(operators)
        operators.page("kubectl apply --server-side -f -", given=without)
        host.run(f"kubectl -n rook-ceph create configmap rook-ceph-mon-endpoints --from-literal=data={MONITORS}")
        waiting = "kubectl -n rook-ceph get events --field-selector reason=FailedMount"
        eventually(
            lambda: host.call(waiting).stdout, until=lambda said: "rook-ceph-client-plumbline" in said,
            within_s=WITHIN_S, every_s=2,
        )  # fmt: skip
        assert pod(operators, "rook-ceph")["status"]["phase"] == "Pending"
        host.run("kubectl -n rook-ceph create secret generic rook-ceph-client-plumbline --from-literal=plumbline=a-key")
        operators.page(ROLLED_OUT.replace("-n plumbline", "-n rook-ceph"))
        held = operators.status("daemonset/plumbline", namespace="rook-ceph")
        assert held["Uid"].split()[0] == "167"
        read = "kubectl -n rook-ceph exec daemonset/plumbline -c plumbline -- cat /run/plumbline-ceph/"
        assert "mon_host = 192.0.2.21:6789,192.0.2.22:6789\n" in host.run(f"{read}ceph.conf")
        assert host.run(f"{read}key/keyring") == "[client.plumbline]\nkey = a-key\n"
        (setup,) = re.findall(r"^ +(kubectl .* --blind) \|$", PAGE.below("Rook").text, re.MULTILINE)
        assert "\ntimeout 120 ceph osd pool create plumbline-probe " in operators.page(setup)
        assert host.scrape(ROOKS).samples
        assert host.scrape(URL).samples
        owners = host.run("stat -c %u /var/lib/plumbline /var/lib/plumbline-rook").split()
        assert owners == ["65534", "167"]
    finally:
        host.run("kubectl delete namespace rook-ceph --timeout=120s")


def test_removal_leaves_the_state(operators: Cluster) -> None:
    assert "kubectl delete -k" in PAGE.below("Remove").text
    operators.page(f"cd {FOLDER}/overlays/prometheus-operator; kubectl delete -k . --timeout=120s")
    kinds = "all,configmaps,servicemonitors,prometheusrules"
    assert not operators.look(kinds, f"--all-namespaces --selector={OURS}")["items"]
    assert operators.host.run("ls /var/lib/plumbline")
    assert operators.host.get(f"{URL}/metrics") is None
