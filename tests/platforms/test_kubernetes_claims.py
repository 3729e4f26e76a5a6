"""deploy/kubernetes/claims as its page says, with volumes of a real kubelet and of Kubernetes' own controllers.

``standard`` is a class of local volumes (https://kubernetes.io/docs/concepts/storage/volumes/#local): a disk that the
kubelet formats, mounts and gives to the pod's group, and which is bound once the pod is scheduled. ``network`` is a
directory behind SSH that the kubelet mounts by a driver of its FlexVolume kind, because this machine's kernel knows
neither NFS nor a disk that a network brings. ``host-path`` has the provisioner that Kubernetes' controllers bring
along: it makes a directory of root's for each claim.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from support.daemon import eventually
from support.kubernetes import NODE, Cluster
from support.kubernetes_page import FOLDER, PAGE, URL, WITHIN_S, base_applied, with_components
from support.scraped import Scrape
from support.systemd_host import ADDRESS

pytestmark = pytest.mark.timeout(1800)

CLAIMS = PAGE.below("Claims of volumes")
OPERATIONS = {"bind", "mount", "write", "total"}
CLASSES: Mapping[str, Mapping[str, Any]] = {
    "standard": {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
    "network": {"provisioner": "kubernetes.io/no-provisioner"},
    "host-path": {"provisioner": "kubernetes.io/host-path"},
}
SERVED = "/var/lib/containers/served"
DRIVER = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/plumbline.example~sshfs/sshfs"
MOUNTS = """\
#!/bin/sh
# https://github.com/kubernetes/community/blob/main/contributors/devel/sig-storage/flexvolume.md
exec 3>&1 >&2
case $1 in
  init) echo '{"status": "Success", "capabilities": {"attach": false}}' >&3; exit ;;
  mount) mkdir -p "$2" && sshfs -o allow_other,default_permissions "$(printf %s "$3" | jq -r .source)" "$2" 3>&- ;;
  unmount) umount "$2" ;;
  *) echo '{"status": "Not supported"}' >&3; exit 1 ;;
esac && echo '{"status": "Success"}' >&3
"""


@pytest.fixture(scope="module")
def base(cluster: Cluster) -> Iterator[Cluster]:
    """The daemon and the jobs, as the page's script starts them, but for the job of now."""
    for name, settings in CLASSES.items():
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
        apply(cluster, kind | dict(settings))
    with base_applied(cluster):
        label, cd, image, apply_k, _ = CLAIMS.script("kubectl label").splitlines()
        cluster.page("\n".join([label.replace("NODE", NODE), cd, image, apply_k]))
        yield cluster
        cluster.page(f"cd {FOLDER}/claims; kubectl delete -k . --timeout=120s")


def copied(cluster: Cluster, name: str) -> None:
    """The job of another class, as the page says."""
    assert "copy the file, replace that word, and list the copy" in CLAIMS.text.replace("\n", " ")
    cluster.page(
        f"cd {FOLDER}/claims; sed s/standard/{name}/g standard.yaml > {name}.yaml\n"
        f"kustomize edit add resource {name}.yaml; kubectl apply -k ."
    )


def apply(cluster: Cluster, content: Mapping[str, Any]) -> None:
    cluster.page("kubectl apply -f -", given=json.dumps(content))


def volume(cluster: Cluster, name: str, source: Mapping[str, Any]) -> None:
    """A new one of a class."""
    cluster.page(f"kubectl delete persistentvolume {name} --ignore-not-found")
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    spec = {
        "storageClassName": name,
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    content = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec | dict(source)}
    apply(cluster, content)


def disk(cluster: Cluster) -> None:
    """A volume of the class ``standard``: the node's disk, empty."""
    cluster.page(f"wipefs --all {cluster.disk}")
    volume(cluster, "standard", {"local": {"path": cluster.disk, "fsType": "ext4"}})


def measured(cluster: Cluster, name: str = "standard") -> str:
    """What the job says, which is started as the page does; nothing is left of what it made."""
    *_, create = CLAIMS.script("kubectl label").splitlines()
    job = f"now-{name}"
    cluster.page(create.replace("claim-standard", f"claim-{name}").replace("claim-now", job))

    def ended() -> bool:
        status = cluster.look("job", job)["status"]
        return bool(status.get("succeeded") or status.get("failed"))

    eventually(ended, within_s=WITHIN_S, every_s=1)
    said = cluster.page(f"kubectl -n plumbline logs job/{job}; kubectl -n plumbline delete job {job}")
    for kind in ("pods", "persistentvolumeclaims"):
        assert not cluster.look(kind, namespace="plumbline-claims")["items"], said
    return said


def shown(cluster: Cluster, name: str = "standard") -> tuple[str, Scrape]:
    """What a measurement says, and the daemon's page once it has the result."""

    def runs(page: Scrape) -> float:
        return page.total("plumbline_probe_runs_total", probe=f"claim/{name}")

    before = runs(cluster.host.scrape(URL))
    said = measured(cluster, name)
    page = eventually(
        lambda: cluster.host.scrape(URL), until=lambda page: runs(page) > before, within_s=WITHIN_S, every_s=2
    )
    return said, page


def works(cluster: Cluster, name: str = "standard") -> None:
    """A measurement, as the daemon shows it."""
    said, page = shown(cluster, name)
    assert page.get("plumbline_probe_success", probe=f"claim/{name}") == 1, said
    latencies = page.series("plumbline_probe_latency_seconds", probe=f"claim/{name}", statistic="mean")
    assert {each.labels["operation"] for each in latencies} == OPERATIONS
    assert {each.labels["device_class"] for each in latencies} == {name}
    assert all(0 < each.value < WITHIN_S for each in latencies)
    print(name, {each.labels["operation"]: round(each.value, 3) for each in latencies})


def test_a_disk_is_bound_formatted_mounted_and_written(base: Cluster) -> None:
    disk(base)
    works(base)


def test_a_directory_behind_a_network(base: Cluster) -> None:
    base.host.write(DRIVER, MOUNTS)
    base.page(
        f"chmod 755 {DRIVER}; mkdir -p {SERVED} /root/.ssh; ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519\n"
        f"cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys; ssh-keyscan {ADDRESS} > /root/.ssh/known_hosts"
    )
    source = {"driver": "plumbline.example/sshfs", "options": {"source": f"root@{ADDRESS}:{SERVED}"}}
    volume(base, "network", {"flexVolume": source})
    copied(base, "network")
    works(base, "network")


def test_a_class_that_makes_directories_of_roots(base: Cluster) -> None:
    """The pod is not root, and fsGroup does not reach a host's path."""
    copied(base, "host-path")
    said, page = shown(base, "host-path")
    assert page.get("plumbline_probe_success", probe="claim/host-path") == 0
    assert "Permission denied" in said


def test_beside_a_daemon_of_root(base: Cluster) -> None:
    """Refused before anything is claimed; with the patch that the file has, it runs."""
    with with_components(base, "disk-latency"):
        assert "user 0" in measured(base)
        base.page(
            f"cd {FOLDER}/claims; sed -i '/^# patches:/,/^images:/ s/^# //' kustomization.yaml; kubectl apply -k ."
        )
        disk(base)
        works(base)
