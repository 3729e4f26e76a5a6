"""deploy/kubernetes: what kustomize builds of it, and that each thing that is named is there."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.kubernetes import render

from plumbline import cli
from plumbline.commands.ceph.setup import IMAGES, MON_CAPS, OBJECTS, Pool, Requirements
from plumbline.core.keyfiles import read_secret
from support.metrics import ROOT
from support.rulefiles import load

FOLDER = ROOT / "deploy" / "kubernetes"
Object = dict[str, Any]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as README.md leaves it: rendered."""
    copy = tmp_path_factory.mktemp("kubernetes") / "kubernetes"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("generated", "__pycache__"))
    assert render.main(["--out", str(copy / "components")]) == 0
    return copy


@functools.cache
def build(tree: Path, folder: str) -> list[Object]:
    """By kustomize itself, as a user calls it."""
    if shutil.which("kustomize"):
        argv = ["kustomize", "build"]
    elif shutil.which("kubectl"):
        argv = ["kubectl", "kustomize"]
    else:
        pytest.skip("neither kustomize nor kubectl is installed")
    done = subprocess.run([*argv, tree / folder], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.load_all(done.stdout, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def with_components(tree: Path, base: str, *components: str) -> list[Object]:
    folder = tree / "overlays" / "-".join(("own", *components))
    folder.mkdir(exist_ok=True)
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"../../{base}"],
        "components": [f"../../components/{name}" for name in components],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(content))
    return build(tree, f"overlays/{folder.name}")


def one(objects: list[Object], kind: str) -> Object:
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def pod(objects: list[Object]) -> Object:
    spec: Object = one(objects, "DaemonSet")["spec"]["template"]["spec"]
    return spec


def daemon(objects: list[Object]) -> Object:
    (found,) = pod(objects)["containers"]
    return found


# -- what the files say, without kustomize


def kustomizations() -> list[Path]:
    return sorted(FOLDER.rglob("kustomization.yaml"))


@pytest.mark.parametrize("file", [path for path in kustomizations() if "generated" not in path.parts],
                         ids=lambda path: path.parent.name)  # fmt: skip
def test_every_file_that_is_named_is_there(file: Path, tree: Path) -> None:
    here = tree / file.parent.relative_to(FOLDER)
    content = yaml.safe_load(file.read_text("utf-8"))
    named = [*content.get("resources", []), *content.get("components", [])]
    named += [patch["path"] for patch in content.get("patches", []) if "path" in patch]
    for generator in content.get("configMapGenerator", []):
        named += generator["files"]
    assert [name for name in named if not (here / name).exists()] == []
    mentioned = {(here / name).resolve() for name in named}
    beside = {path.resolve() for path in here.glob("*.yaml")} - {(here / "kustomization.yaml").resolve()}
    assert beside - mentioned == set()


def test_rules_and_dashboards_arrive_whole(tree: Path) -> None:
    for path in (ROOT / "alerts" / "out").glob("*.yaml"):
        parts = sorted(
            (tree / "components/prometheus-operator/generated").glob(f"{path.stem}*.yaml"), key=lambda x: len(x.name)
        )
        made = [load(part) for part in parts]
        assert {part["kind"] for part in made} == {"PrometheusRule"}
        assert [part["metadata"]["name"] for part in made] == [part.stem for part in parts]
        assert [group for part in made for group in part["spec"]["groups"]] == load(path)["groups"]
    pages = {path.stem: path for path in (ROOT / "dashboards" / "out").glob("plumbline-*.json")}
    made = {path.stem: path for path in (tree / "components/dashboards/generated").glob("plumbline-*.yaml")}
    assert made.keys() == pages.keys()
    for name, path in made.items():
        content = load(path)
        assert content["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((file, text),) = content["data"].items()
        assert file == f"{name}.json"
        assert json.loads(text) == json.loads(pages[name].read_text("utf-8"))


def test_what_is_too_large_for_kubernetes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plumbline-x.json").write_text(json.dumps({"title": "x" * render.APPLIED_MAX}))
    with pytest.raises(render.RenderError, match=r"plumbline-x\.yaml: \d+ bytes"):
        render.rendered(ROOT / "alerts" / "out", tmp_path)
    with pytest.raises(render.RenderError, match="no rules"):
        render.rendered(tmp_path, tmp_path)


def test_rook_gives_the_user_what_setup_would() -> None:
    pools = (Pool("plumbline-probe", OBJECTS, 32), Pool("plumbline-rbd", IMAGES, 32))
    wanted = Requirements(pools=pools, user="client.plumbline", keyring="")
    client = yaml.safe_load((FOLDER / "components/rook/cephclient.yaml").read_text("utf-8"))
    assert client["spec"]["caps"] == {"mon": MON_CAPS, "osd": wanted.osd_caps}
    assert f"client.{client['metadata']['name']}" == wanted.user


def test_the_toolbox_makes_the_pools_and_leaves_the_user_to_rook(capsys: pytest.CaptureFixture[str]) -> None:
    # as in the pod, where this is /etc/plumbline/plumbline.yaml: the toolbox has another ceph.conf
    configuration = FOLDER / "overlays/rook/config/plumbline.yaml"
    assert cli.main(["ceph", "setup", "--blind", "--config.file", str(configuration)]) == 0
    # README.md's pipe: grep -v 'ceph auth'
    lines = [line for line in capsys.readouterr().out.splitlines() if "ceph auth" not in line]
    commands = [line for line in lines if line and not line.startswith("#")]
    # without an OSD, `rbd pool init` waits for ever
    assert {tuple(line.split()[:3]) for line in commands} == {("timeout", "120", "ceph"), ("timeout", "120", "rbd")}
    for pool in ("plumbline-probe", "plumbline-rbd"):
        assert any(line.startswith(f"timeout 120 ceph osd pool create {pool} ") for line in commands)
    subprocess.run(["sh", "-n"], input="\n".join(lines), text=True, check=True, timeout=30)


@pytest.mark.parametrize(
    "endpoints", ["a=10.0.0.1:6789,b=10.0.0.2:6789", "a=10.0.0.1:3300", "mon-a=[2001:db8::1]:6789"]
)
def test_rooks_objects_become_cephs_files(endpoints: str, tmp_path: Path) -> None:
    patch = yaml.safe_load((FOLDER / "components/rook/daemonset-patch.yaml").read_text("utf-8"))
    (init,) = (each for each in patch["spec"]["template"]["spec"]["initContainers"] if each["name"] == "ceph")
    (tmp_path / "data").write_text(endpoints)
    (tmp_path / "plumbline").write_text("AQBsecret==")
    script = init["args"][0]
    for path in ("/etc/rook/mon", "/etc/rook/key", "/run/plumbline-ceph"):
        assert path in script
        script = script.replace(path, str(tmp_path))
    subprocess.run(["sh", "-ec", script], check=True, timeout=30)
    hosts = re.sub(r"[^,=]+=", "", endpoints)
    assert (tmp_path / "ceph.conf").read_text() == f"[global]\nmon_host = {hosts}\n"
    assert read_secret(tmp_path / "key/keyring", 1000) == b"[client.plumbline]\nkey = AQBsecret==\n"
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    (tmp_path / "data").write_text("")
    done = subprocess.run(["sh", "-ec", script], check=False, timeout=30, capture_output=True, text=True)
    assert done.returncode == 1
    assert "rook-ceph-mon-endpoints" in done.stderr


@pytest.mark.parametrize("config", sorted(FOLDER.glob("*/**/plumbline.yaml")), ids=lambda path: path.parts[-3])
def test_the_daemon_takes_its_configuration(config: Path) -> None:
    assert cli.main(["config", "check", str(config)]) == 0


# -- what kustomize makes of them

OVERLAYS = ["base", "overlays/prometheus-operator", "overlays/rook"]


@pytest.fixture(scope="module", params=OVERLAYS)
def objects(request: pytest.FixtureRequest, tree: Path) -> list[Object]:
    return build(tree, request.param)


def test_one_namespace_and_no_name_twice(objects: list[Object]) -> None:
    spaces = {each["metadata"].get("namespace") for each in objects if each["kind"] != "Namespace"}
    assert len(spaces) == 1
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(names) == len(set(names))


def test_what_refers_to_something_finds_it(objects: list[Object]) -> None:
    spec = pod(objects)
    labels = one(objects, "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    assert one(objects, "Service")["spec"]["selector"].items() <= labels.items()
    assert one(objects, "ServiceAccount")["metadata"]["name"] == spec["serviceAccountName"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounted = [
        mount["name"] for each in (*spec["initContainers"], *spec["containers"]) for mount in each["volumeMounts"]
    ]
    assert set(mounted) == volumes.keys()
    maps = {each["metadata"]["name"]: each for each in objects if each["kind"] == "ConfigMap"}
    assert "plumbline.yaml" in maps[volumes["config"]["configMap"]["name"]]["data"]
    ports = {port["name"]: port["containerPort"] for port in daemon(objects)["ports"]}
    (port,) = one(objects, "Service")["spec"]["ports"]
    assert ports[port["targetPort"]] == port["port"] == int(arguments(objects)[2].rpartition(":")[2])
    for each in (each for each in objects if each["kind"] == "ServiceMonitor"):
        assert each["spec"]["selector"]["matchLabels"].items() <= one(objects, "Service")["metadata"]["labels"].items()
        assert [end["port"] for end in each["spec"]["endpoints"]] == [port["name"]]
        # the rules' plumblineSelector
        assert one(objects, "Service")["metadata"]["labels"][each["spec"]["jobLabel"]] == "plumbline"


def test_two_overlays_on_one_node_share_no_port_and_no_state(tree: Path) -> None:
    both = [build(tree, folder) for folder in ("overlays/prometheus-operator", "overlays/rook")]
    assert [[port["hostPort"] for port in daemon(each)["ports"]] for each in both] == [[10047], [10048]]
    states = [next(volume for volume in pod(each)["volumes"] if volume["name"] == "state") for each in both]
    assert [state["hostPath"]["path"] for state in states] == ["/var/lib/plumbline", "/var/lib/plumbline-rook"]


def test_by_default_nothing_is_root_and_nothing_can_be_written(objects: list[Object]) -> None:
    spec = pod(objects)
    assert spec["automountServiceAccountToken"] is False
    assert one(objects, "ServiceAccount")["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] != 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = daemon(objects)["securityContext"]
    assert own == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    for each in spec["initContainers"]:
        context = each["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"]["drop"] == ["ALL"]
        assert context.get("runAsUser") in ({0} if each["name"] == "state" else {None})
    (state,) = (each for each in spec["initContainers"] if each["name"] == "state")
    assert state["env"] == [
        {"name": "OWNER", "value": f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}"}
    ]
    writable = {mount["name"] for mount in daemon(objects)["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"state", "tmp"}


def arguments(objects: list[Object]) -> list[str]:
    container = daemon(objects)
    assert container["command"] == ["plumbline", "serve"]
    return ["serve", *(each.replace("$(HOST_IP)", "192.0.2.1") for each in container["args"])]


def test_the_daemon_knows_its_flags(objects: list[Object]) -> None:
    parsed = cli._parser().parse_args(arguments(objects))
    mounts = {mount["mountPath"] for mount in daemon(objects)["volumeMounts"]}
    for path in (parsed.path_procfs, parsed.path_sysfs, parsed.path_udev):
        assert str(path) in mounts


def every_component(tree: Path) -> Iterator[str]:
    yield from sorted(path.parent.name for path in tree.glob("components/*/kustomization.yaml"))


def test_components_add_exactly_what_they_say(tree: Path) -> None:
    base = pod(build(tree, "base"))
    latency = pod(with_components(tree, "base", "disk-latency"))
    context = latency["containers"][0]["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"], "add": ["BPF", "PERFMON"]}
    assert "privileged" not in context
    assert latency["volumes"] == base["volumes"]
    devices = pod(with_components(tree, "base", "devices"))
    assert devices["containers"][0]["securityContext"]["privileged"] is True
    assert {each["name"] for each in devices["volumes"]} - {each["name"] for each in base["volumes"]} == {"dev"}
    for each in (latency, devices):
        assert each["securityContext"]["runAsUser"] == 0
        assert each["initContainers"][0]["env"] == [{"name": "OWNER", "value": "0:0"}]
    web = with_components(tree, "base", "web-config")
    assert daemon(web)["args"][-1] == "--web.config.file=/etc/plumbline-web/web.yaml"
    assert set(daemon(web)["livenessProbe"]) >= {"tcpSocket"}
    assert "httpGet" not in daemon(web)["livenessProbe"]
    assert pod(web)["securityContext"] == base["securityContext"]
    policy = one(with_components(tree, "base", "network-policy"), "NetworkPolicy")
    assert policy["spec"]["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "plumbline"}


def test_all_components_together_on_rook(tree: Path) -> None:
    already = {"prometheus-operator", "dashboards", "rook"}
    wanted = [name for name in every_component(tree) if name not in already]
    objects = with_components(tree, "overlays/rook", *wanted)
    # in whichever order they are listed
    assert sorted(arguments(objects)) == sorted(arguments(with_components(tree, "overlays/rook", *reversed(wanted))))
    assert str(cli._parser().parse_args(arguments(objects)).path_devfs) == "/host/dev"
    assert {"/run/plumbline-ceph", "/var/lib/rook/exporter", "/host/dev", "/etc/plumbline-web"} <= {
        mount["mountPath"] for mount in daemon(objects)["volumeMounts"]
    }


@pytest.mark.parametrize("component", ["disk-latency", "devices"])
def test_a_component_that_needs_root_has_it_beside_rook(tree: Path, component: str) -> None:
    """As README.md says: taken into the overlay's own list, where Rook's user would win if it came last."""
    overlay = tree / "overlays" / f"rook-{component}"
    shutil.copytree(tree / "overlays/rook", overlay)
    file = overlay / "kustomization.yaml"
    file.write_text(file.read_text().replace(f"# - ../../components/{component}", f"- ../../components/{component}"))
    spec = pod(build(tree, f"overlays/{overlay.name}"))
    assert spec["securityContext"]["runAsUser"] == 0
    assert spec["securityContext"]["runAsNonRoot"] is False
    assert spec["initContainers"][0]["env"] == [{"name": "OWNER", "value": "0:0"}]


def test_rooks_prometheus_selects_them(tree: Path) -> None:
    objects = build(tree, "overlays/rook")
    assert one(objects, "ServiceMonitor")["metadata"]["labels"]["team"] == "rook"
    rules = [each["metadata"]["labels"] for each in objects if each["kind"] == "PrometheusRule"]
    assert len(rules) == 3  # kubectl takes no object as large as all alerts
    assert all(each["role"] == "alert-rules" and each["prometheus"] == "rook-prometheus" for each in rules)
    assert [each for each in objects if each["kind"] == "Namespace"] == []


def test_the_values_for_alertmanager_are_our_routes_and_inhibition_rules(tmp_path: Path) -> None:
    """The README's command, as kube-prometheus-stack reads its output."""
    (line,) = [each for each in (FOLDER / "README.md").read_text("utf-8").splitlines() if "alertmanager-values" in each]
    command = line.replace("alertmanager-values.yaml", str(tmp_path / "values.yaml"))
    subprocess.run(["sh", "-c", command], cwd=ROOT, check=True)
    values = yaml.safe_load((tmp_path / "values.yaml").read_text("utf-8"))
    assert values == {"alertmanager": {"config": load(ROOT / "alerts/alertmanager/alertmanager.yaml")}}
    assert len(values["alertmanager"]["config"]["inhibit_rules"]) > 30
