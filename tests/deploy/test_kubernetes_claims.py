"""deploy/kubernetes/claims: what kustomize builds of it fits the program that runs there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline import cli
from plumbline.claims import claim, first_write
from plumbline.claims.claim_file import NAME
from plumbline.commands.shared import positive_duration
from support.metrics import ROOT

FOLDER = ROOT / "deploy" / "kubernetes" / "claims"
Object = dict[str, Any]


@pytest.fixture(scope="module", params=["standard", "rook-ceph-block"])
def objects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Object]:
    """By kind; also for a copy of the one class's file, as README.md says."""
    folder = tmp_path_factory.mktemp("claims") / "claims"
    shutil.copytree(FOLDER, folder)
    if (name := request.param) != "standard":
        text = (folder / "standard.yaml").read_text().replace("standard", name)
        (folder / "standard.yaml").unlink()
        (folder / f"{name}.yaml").write_text(text)
        kustomization = folder / "kustomization.yaml"
        kustomization.write_text(kustomization.read_text().replace("standard.yaml", f"{name}.yaml"))
    return {each["kind"]: each for each in built(folder)} | {"class": {"name": name}}


def built(folder: Path) -> list[Object]:
    program = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]
    if shutil.which(program[0]) is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    done = subprocess.run([*program, folder], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_the_program_takes_its_template_and_its_flags(objects: dict[str, Object]) -> None:
    name = objects["class"]["name"]
    job = objects["CronJob"]["spec"]["jobTemplate"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    parsed = cli._parser().parse_args([*container["command"][1:], *container["args"]])
    template = objects["PodTemplate"]
    assert (parsed.name, template["metadata"]["name"]) == (name, name)
    assert NAME.fullmatch(name)
    assert parsed.namespace == template["metadata"]["namespace"] == objects["Namespace"]["metadata"]["name"]
    assert str(parsed.storage_path) in {mount["mountPath"] for mount in container["volumeMounts"]}
    # the job lasts as long as a claim that is not bound, and its removal
    assert job["activeDeadlineSeconds"] > 2 * claim.GONE_WITHIN_S + positive_duration(parsed.timeout, "--timeout")
    assert objects["CronJob"]["spec"]["schedule"].split()[1:] == ["*/6", "*", "*", "*"]
    assert parsed.interval == "6h"
    spec = template["template"]["spec"]
    (volume,) = spec["volumes"]
    wanted = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert volume["name"] == claim.VOLUME
    assert wanted["storageClassName"] == name
    assert wanted["resources"]["requests"]["storage"] == claim.WANTED_SIZE
    (writer,) = spec["containers"]
    assert writer["command"][1:4] == ["-I", "-m", first_write.__name__]
    assert writer["command"][4] == writer["volumeMounts"][0]["mountPath"]
    assert writer.get("terminationMessagePath", "/dev/termination-log") == first_write.SAY_IN
    assert {container["image"], writer["image"]} == {"plumbline:0.1.0"}


def test_the_pod_that_claims_fits_the_restricted_standard(objects: dict[str, Object]) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    assert objects["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    spec = objects["PodTemplate"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    assert [volume.keys() - {"name"} for volume in spec["volumes"]] == [{"ephemeral"}]
    (writer,) = spec["containers"]
    assert writer["securityContext"]["allowPrivilegeEscalation"] is False
    assert writer["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["automountServiceAccountToken"] is False


def test_the_rights_are_those_of_one_namespace_and_no_more(objects: dict[str, Object]) -> None:
    role, binding, account = (objects[kind] for kind in ("Role", "RoleBinding", "ServiceAccount"))
    assert "ClusterRole" not in objects
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "plumbline-claims"
    (subject,) = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["metadata"]["name"], account["metadata"]["namespace"])
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    rights = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert rights == {
        ("podtemplates", "get"),
        *(("pods", verb) for verb in ("get", "list", "create", "delete")),
        ("persistentvolumeclaims", "get"),
        ("events", "list"),
    }
    spec = objects["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == account["metadata"]["name"]
    assert objects["CronJob"]["metadata"]["namespace"] == account["metadata"]["namespace"]


def test_it_runs_as_the_daemon_beside_it(objects: dict[str, Object]) -> None:
    daemon = yaml.safe_load((FOLDER.parent / "base" / "daemonset.yaml").read_text())["spec"]["template"]["spec"]
    spec = objects["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["securityContext"] == daemon["securityContext"]
    state = {volume["name"]: volume for volume in daemon["volumes"]}["state"]
    assert spec["volumes"] == [{"name": "state", "hostPath": state["hostPath"] | {"type": "Directory"}}]
    assert spec["nodeSelector"] == {"plumbline/claims": "true"}


@pytest.mark.parametrize("component", ["disk-latency", "devices"])
def test_beside_a_daemon_of_root_the_job_is_root_too(component: str, tmp_path: Path) -> None:
    """The patch that README.md says to uncomment."""
    copy = tmp_path / "claims"
    shutil.copytree(FOLDER, copy)
    file = copy / "kustomization.yaml"
    lines, inside = [], False
    for line in file.read_text("utf-8").splitlines():
        inside = (inside or line == "# patches:") and line.startswith("#")
        lines.append(line.removeprefix("# ") if inside else line)
    file.write_text("\n".join(lines), "utf-8")
    added = FOLDER.parent / "components" / component / "kustomization.yaml"
    daemon = yaml.safe_load(yaml.safe_load(added.read_text("utf-8"))["patches"][0]["patch"])["spec"]["template"]["spec"]
    (job,) = (each for each in built(copy) if each["kind"] == "CronJob")
    context = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["securityContext"]
    assert context == daemon["securityContext"] | {"seccompProfile": {"type": "RuntimeDefault"}}
