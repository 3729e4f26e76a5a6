"""What this daemon runs in, and so which commands mend it: a container has neither systemctl nor a package to install.

cephadm sets ``CONTAINER_IMAGE`` and ``NODE_NAME`` in every container that it starts
(https://github.com/ceph/ceph/blob/v16.2.15/src/cephadm/cephadm, ``CephContainer.run_cmd``); Kubernetes sets the address
of its API in every pod (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.sources.kernel.vantage import Vantage, read_vantage


class Need(StrEnum):
    """What the daemon lacks, or what is to be done with it."""

    RESTART = "restart"
    LOG = "log"
    LATENCY = "latency"  # the capabilities for the histograms of disks
    HEALTH = "health"  # what asks disks for their health, and may


class Installation(StrEnum):
    HOST = "host"  # a package or a virtual environment, started by systemd
    CONTAINER = "container"
    POD = "pod"
    CEPHADM = "cephadm"

    def step(self, need: Need) -> str:
        """For a shell; a comment where it takes a change of a file. :class:`KeyError` for what each fix words itself on
        a host."""
        return _STEPS[self][need]


_STEPS = {
    Installation.HOST: {
        Need.RESTART: "systemctl restart plumbline.service",
        Need.LOG: "systemctl status plumbline; journalctl -u plumbline -n 20",
    },
    Installation.CONTAINER: {
        Need.RESTART: "podman restart plumbline",
        Need.LOG: "podman logs plumbline",
        Need.LATENCY: "# start it with the flags for latency histograms: docs/container.md",
        Need.HEALTH: "# start it with the flags for SMART and NVMe: docs/container.md",
    },
    Installation.POD: {
        Need.RESTART: "kubectl -n plumbline rollout restart daemonset/plumbline",
        Need.LOG: "kubectl -n plumbline logs daemonset/plumbline",
        Need.LATENCY: "# add the component disk-latency: deploy/kubernetes/README.md",
        Need.HEALTH: "# add the component devices: deploy/kubernetes/README.md",
    },
    Installation.CEPHADM: {
        Need.RESTART: "ceph orch restart container.plumbline",
        Need.LOG: "cephadm logs --name container.plumbline.$(hostname -s)",
        Need.LATENCY: "# change the service as for disk latency histograms: deploy/cephadm/README.md",
        Need.HEALTH: "# change the service as for SMART: deploy/cephadm/README.md",
    },
}


def read_installation(roots: Roots, *, environment: Mapping[str, str], root: Path = Path("/")) -> Installation:
    """``root`` is this process' root directory. A container in which systemd runs (LXC) is a host here."""
    if os.path.isdir(root / "run/systemd/system"):  # noqa: PTH112  (sd_booted(3))
        return Installation.HOST
    if "KUBERNETES_SERVICE_HOST" in environment:
        return Installation.POD
    if {"CONTAINER_IMAGE", "NODE_NAME"} <= environment.keys():
        return Installation.CEPHADM
    vantage, _ = read_vantage(roots, root=root, environment=environment)
    return Installation.CONTAINER if vantage is Vantage.CONTAINER else Installation.HOST
