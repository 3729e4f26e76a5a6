"""Kubernetes for the tests of platforms: its own programs, and a cluster of one node on a host with systemd.

The programs are built of Kubernetes' module in the Go proxy and kept; etcd, containerd and the network's plug-ins are
Debian's. There is no kube-proxy: of all Services pods only ask the API server's, and its address and port are the
node's own as well. Pods have control groups of the container that is the host, and end with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .daemon import eventually
from .debian_host import BASES
from .loops import Loops
from .page_commands import Page
from .podman import Podman
from .systemd_host import ADDRESS, DISK, Host, systemd_host

VERSION = "34.4"
"""Of Kubernetes 1, and of its libraries 0."""
PROGRAMS = ("kube-apiserver", "kubelet", "kube-controller-manager", "kube-scheduler", "kubectl")
KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
DEFINITIONS = "example/prometheus-operator-crd"
"""Of the operator's objects, in its module."""

NODE = "kube01"
IMAGE = "registry.example/plumbline:0.1.0"
"""As deploy/kubernetes/README.md names it."""
SERVER = "10.96.0.1"
"""The first address of Services, which is the API server's: https://kubernetes.io/docs/reference/networking/"""
FILES = "/etc/kubernetes"
PLACES = ("/var/lib/plumbline", "/var/lib/plumbline-rook", "/var/lib/kubelet", "/var/lib/containerd")
"""On this machine's disk."""
UP_S = 240.0
READY_S = 300.0
USERS = {
    "admin": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    f"system:node:{NODE}": "system:nodes",
}
"""Who may do what is in Kubernetes' own roles."""

_NETWORK = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.244.0.0/24"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
    ],
}
_CONTAINERD = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
"""
_SETTINGS = f"""
for place in {" ".join(PLACES)}; do mkdir -p {DISK}$place $place; mount --bind {DISK}$place $place; done
ip address add {SERVER}/32 dev lo
mkdir /run/settings; mount -t proc proc /run/settings
echo 1 > /run/settings/sys/net/ipv4/ip_forward   # of this network alone, and /proc/sys can't be written to
umount /run/settings
umount /sys/fs/cgroup/hugetlb || true   # systemd's, and without a group of this host, which a kubelet asks for
mkdir -p {FILES}/pki
openssl genrsa -out {FILES}/pki/accounts.key 2048
# what a kubelet sets, and what it would fail for, because these settings are this machine's
mkdir /run/kubelets; cd /run/kubelets; echo 1 > overcommit_memory; echo 10 > panic; echo 1 > panic_on_oops
for file in vm/overcommit_memory kernel/panic kernel/panic_on_oops; do mount --bind ${{file#*/}} /proc/sys/$file; done
tar -C /usr/bin -c catatonit | podman import --change 'ENTRYPOINT ["/catatonit","-P"]' - localhost/pause:1
"""


def programs() -> Path:
    """Their folder, kept: the first time half an hour of Go's compiler, and more. CalledProcessError: it failed."""
    folder = BASES.resolve() / f"kubernetes-1.{VERSION}"
    missing = [name for name in PROGRAMS if not (folder / name).exists()]
    if missing:
        module = folder / "module"
        module.mkdir(parents=True, exist_ok=True)
        _of_kubernetes(module)
        for name in missing:
            _go(module, "build", "-p=2", f"-ldflags={_linked()}", "-o", str(folder), f"k8s.io/kubernetes/cmd/{name}")
    if not (folder / "kustomize").exists():
        _go(folder, "install", "-ldflags=-s -w", KUSTOMIZE)
    if not (folder / "definitions").exists():
        downloaded = json.loads(_go(folder, "mod", "download", "-json", OPERATOR))
        shutil.copytree(Path(downloaded["Dir"], DEFINITIONS), folder / "definitions")
    return folder


def _of_kubernetes(module: Path) -> None:
    """Its libraries are in its own repository, so what requires it has to say which release of each."""
    (module / "go.mod").write_text("module plumbline.example/kubernetes\n")
    downloaded = json.loads(_go(module, "mod", "download", "-json", f"k8s.io/kubernetes@v1.{VERSION}"))
    own = json.loads(_go(module, "mod", "edit", "-json", downloaded["GoMod"]))
    libraries = [each["Old"]["Path"] for each in own["Replace"] if each["New"]["Path"].startswith("./staging/")]
    replaced = [f"-replace={path}={path}@v0.{VERSION}" for path in libraries]
    _go(module, "mod", "edit", f"-go={own['Go']}", f"-require=k8s.io/kubernetes@v1.{VERSION}", *replaced)


def _linked() -> str:
    """The linker's flags: no symbols, and the version, without which kubelet and API server say 0."""
    major, minor = "1", VERSION.partition(".")[0]
    said = {"gitVersion": f"v1.{VERSION}", "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(["-s -w", *(f"-X {each}.{name}={value}" for each in packages for name, value in said.items())])


def _go(folder: Path, *argv: str) -> str:
    """Go's standard output; what it says else is seen."""
    flags = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -trimpath -buildvcs=false", "GOBIN": str(folder)}
    done = subprocess.run(
        ["go", *argv], cwd=folder, env=os.environ | flags, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


@dataclass(frozen=True, slots=True)
class Cluster:
    """Its node is Ready, ``kubectl`` and ``kustomize`` are on its host's path; ``disk``: an empty one of the node's."""

    host: Host
    disk: str

    def look(self, kind: str, name: str = "", namespace: str = "plumbline") -> dict[str, Any]:
        """An object, or the list of all of a kind."""
        found: dict[str, Any] = json.loads(self.host.run(f"kubectl -n {namespace} get {kind} {name} -o json"))
        return found

    def status(self, name: str, namespace: str = "plumbline") -> dict[str, str]:
        """A container's first process, as its kernel has it: ``/proc/PID/status``, word → rest of the line."""
        said = self.host.run(f"kubectl -n {namespace} exec {name} -- cat /proc/1/status")
        return {word: rest.strip() for word, _, rest in (line.partition(":") for line in said.splitlines())}

    def page(self, script: str, *, given: str | None = None) -> str:
        """A script of a page; AssertionError with what it and Kubernetes say when it fails."""
        done = self.host.call(script, given=given)
        if done.returncode:
            why = self.host.call(
                "kubectl get pods --all-namespaces -o wide; kubectl get events --all-namespaces"
            ).stdout
            raise AssertionError(f"{script}: {done.stdout[-2000:]}{done.stderr[-2000:]}{why[-5000:]}")
        return done.stdout


@contextlib.contextmanager
def kubernetes_cluster(podman: Podman, folder: Path) -> Iterator[Cluster]:
    """Of one node, with our image, as the page calls it, on it; ``folder`` is on a disk."""
    (built,) = (words[words.index("-t") + 1] for words in Page.of("docs/container.md").commands("podman build"))
    podman.run("tag", built, IMAGE)
    shared = [f"{programs()}:/opt/kubernetes:ro"]
    loops = Loops(folder)
    try:
        disk = f"/dev/{loops.sparse(1)}"  # before the host starts: a device that comes later is none of its own
        with systemd_host(podman, NODE, target="kubernetes", shared=shared) as host:
            host.run(f"ln -s /opt/kubernetes/kube* /opt/kubernetes/kustomize /usr/local/bin; {_SETTINGS}")
            _control(host)
            _node(host)
            made = Cluster(host, disk)
            eventually(lambda: _ready(made), within_s=READY_S, every_s=2)
            yield made
    finally:
        loops.close()


def _control(host: Host) -> None:
    """API server, controllers and scheduler; each user has a token of its own. etcd is there with Debian's settings."""
    tokens = {name: os.urandom(16).hex() for name in USERS}
    lines = [f'{tokens[name]},{name},{name},"{group}"' for name, group in USERS.items()]
    host.write(f"{FILES}/pki/tokens.csv", "".join(f"{line}\n" for line in lines))
    for name, token in tokens.items():
        host.write(f"{FILES}/{name.rpartition(':')[2]}.json", json.dumps(_access(token)))
    _unit(
        host, "kube-apiserver", etcd_servers="http://127.0.0.1:2379", secure_port="443", advertise_address=ADDRESS,
        cert_dir=f"{FILES}/pki", service_account_key_file=f"{FILES}/pki/accounts.key",
        service_account_signing_key_file=f"{FILES}/pki/accounts.key",
        service_account_issuer="https://kubernetes.default.svc", token_auth_file=f"{FILES}/pki/tokens.csv",
        authorization_mode="Node,RBAC", enable_admission_plugins="NodeRestriction", allow_privileged="true",
        service_cluster_ip_range="10.96.0.0/16", kubelet_preferred_address_types="InternalIP",
    )  # fmt: skip
    host.run(f"mkdir -p /root/.kube; ln -s {FILES}/admin.json /root/.kube/config")
    eventually(lambda: host.call("kubectl get --raw /readyz").stdout == "ok", within_s=UP_S, every_s=1)
    _unit(
        host, "kube-controller-manager", kubeconfig=f"{FILES}/kube-controller-manager.json",
        service_account_private_key_file=f"{FILES}/pki/accounts.key", root_ca_file=f"{FILES}/pki/apiserver.crt",
        use_service_account_credentials="true", enable_hostpath_provisioner="true", leader_elect="false",
    )  # fmt: skip
    _unit(host, "kube-scheduler", kubeconfig=f"{FILES}/kube-scheduler.json", leader_elect="false")


def _access(token: str) -> Mapping[str, Any]:
    """A kubeconfig: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/"""
    server = {"server": f"https://{ADDRESS}:443", "certificate-authority": f"{FILES}/pki/apiserver.crt"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": server}],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "here",
    }


def _node(host: Host) -> None:
    """containerd with the two images, and the kubelet."""
    group = host.run("sed -n 's/^.*:cpuset://p' /proc/1/cgroup").strip()
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},  # nobody else is in this network
        "address": ADDRESS,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": group,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "oomScoreAdj": 0,
        "evictionHard": dict.fromkeys(("nodefs.available", "imagefs.available", "nodefs.inodesFree"), "0%"),
    }
    host.write("/etc/cni/net.d/pods.conflist", json.dumps(_NETWORK))
    host.write("/etc/containerd/config.toml", _CONTAINERD)
    host.write(f"{FILES}/kubelet-configuration.json", json.dumps(kubelet))
    host.run("systemctl restart containerd")
    for image in (IMAGE, "localhost/pause:1"):
        host.run(f"podman save {image} | ctr --namespace k8s.io images import -")
    _unit(
        host, "kubelet", config=f"{FILES}/kubelet-configuration.json", kubeconfig=f"{FILES}/{NODE}.json",
        hostname_override=NODE, node_ip=ADDRESS,
    )  # fmt: skip


def _unit(host: Host, program: str, **flags: str) -> None:
    """A unit of systemd of the program's name; its words are in the journal."""
    argv = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    host.run(f"systemd-run --unit=test-{program} $(command -v {program}) {shlex.join(argv)}")


def _ready(cluster: Cluster) -> bool:
    """Whether the node is, and pods of the default account can be made."""
    nodes = cluster.look("nodes")["items"]
    conditions = [each for node in nodes for each in node["status"]["conditions"]]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
