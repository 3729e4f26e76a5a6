"""Boots the hosts, makes their Ceph, watches it, and goes from fault to fault."""

from __future__ import annotations

import datetime
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lab import product
from lab.cluster import ceph, hosts, mitigations, table
from lab.cluster.scenarios import SCENARIOS, Lab, Scenario
from lab.cluster.watch import PEOPLE, Key, Told, Watch, key, watched
from support.canary_baseline import baseline
from support.ceph_client import CephClient
from support.ceph_probes import set_up
from support.daemon import write_config
from support.debian_host import BASES, made
from support.netns import namespace
from support.slow_osd import load

FOLDER = BASES / "lab-cluster"
IMAGES = "images"
WRITES_PER_S = 30
ALWAYS = {"PlumblineCephKeysInsecure"}
"""True of the lab's cluster all the time: its keys are of the kind that Ceph 20 no longer makes."""
CALM_WITHIN_S = 480.0
TOLD_WITHIN_S = 480.0
OVER_WITHIN_S = 480.0
SETTLES_S = 40.0
"""What else is sent on account of a fault comes by then."""

Say = Callable[[str], None]


def run(names: Sequence[str], suite: str, out: Path, say: Say) -> int:
    """The exit code: 0 when each fault's first notification was right."""
    chosen = [each for each in SCENARIOS if not names or each.name in names]
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with _lab(suite, say) as (lab, watch):
        for scenario in chosen:
            if int(lab.release.partition(".")[0]) < scenario.since:
                say(f"{scenario.name}: Ceph {lab.release} does not tell")
                continue
            say(f"{scenario.name}: {scenario.fault}")
            line = _take(lab, watch, scenario, say)
            text = table.written(out.read_text("utf-8"), [line], [each.fault for each in SCENARIOS])
            out.write_text(text, "utf-8")  # a run that ends before the last fault has taken none of these with it
            say(f"{scenario.name}: {line}")
            wrong += line.verdict != "right"
    say(f"{len(chosen)} faults, {wrong} not right: {out}; every notification: {watch.log}")
    return 1 if wrong else 0


def measure(suite: str, out: Path, say: Say) -> int:
    """What each step against a slow OSD does for clients. The exit code."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _lab(suite, say) as (lab, _):
        rows = mitigations.measure(lab, say)
    out.write_text(mitigations.written(out.read_text("utf-8"), rows), "utf-8")
    return 0


@contextmanager
def _lab(suite: str, say: Say) -> Iterator[tuple[Lab, Watch]]:
    deb = product.package(suite)
    keys = ceph.new_keys(FOLDER)
    say("starting the hosts (their Debian is made at the first run: minutes)")
    made(hosts.base(suite))
    bcrypt = ceph.fetch_bcrypt(FOLDER, suite)
    with ExitStack() as stack:
        network = stack.enter_context(namespace())
        network.enter()
        found = stack.enter_context(hosts.running(network, suite, deb, keys, FOLDER))
        cluster = ceph.client(FOLDER, keys)
        stack.callback(cluster.hang_up)
        _start(cluster, found, keys, bcrypt, say)
        users = stack.enter_context(set_up(cluster, timeout_s=20.0))
        for host in found.values():
            ceph.admit(host, cluster.keyring("client.plumbline").read_text("utf-8"))
        cluster.add_pool(IMAGES, size=3, pg_num=16, application="rbd")
        cluster.run("rbd", "create", "--size=128M", "--object-size=1M", f"{IMAGES}/{IMAGES}")
        stack.enter_context(load(cluster, IMAGES, "--rw=randwrite", "--iodepth=4", f"--rate_iops={WRITES_PER_S}"))
        config = _client({"conf": users.conf, "keyring": users.keyring, "timeout": "20s", "map": "always"})
        watch = stack.enter_context(watched(FOLDER, network.name, config))
        say("the canaries' baseline")
        accepted = FOLDER / "baseline.yaml"
        known = {("rados", operation) for operation in ("read", "write", "remove")}
        accepted.write_text(baseline(watch.prometheus, known) + "".join(hosts.SITE.splitlines(keepends=True)[2:]))
        write_config(FOLDER, config | {"baseline": {"files": [str(accepted)]}})  # it takes a changed file by itself
        yield Lab(found, cluster, watch.pause, _release(cluster)), watch


def _release(cluster: CephClient) -> str:
    """As in "18.2.7"."""
    return str(re.findall(r"ceph version (\S+)", "".join(cluster.ceph_json("versions")["mon"]))[0])


def _start(cluster: CephClient, found: dict[str, hosts.Host], keys: ceph.Keys, bcrypt: Path | None, say: Say) -> None:
    began = time.monotonic()
    asked = ("ceph", "--connect-timeout", "20", "-s")
    cluster.eventually(lambda: cluster.try_run(*asked).returncode == 0, "no quorum", ceph.WITHIN_S)
    cluster.ceph_all(*ceph.first_commands(keys))
    ceph.start_manager(found[ceph.HOSTS[0]], keys, bcrypt)
    for host in found.values():
        ceph.start_osds(host, keys)
    cluster.wait_healthy(ceph.WITHIN_S)
    say(f"Ceph is healthy after {time.monotonic() - began:.0f} s")


def _client(users: dict[str, Any]) -> dict[str, Any]:
    targets = [ceph.address(host) for host in ceph.HOSTS]
    probes = [
        {"type": "rtt", "name": "rtt", "targets": targets, **hosts.OFTEN},
        {"type": "rados-canary", "name": "objects", "osds": ["all"], "rate": 1},
    ]
    return {"ceph": users, "probes": probes}


def _take(lab: Lab, watch: Watch, scenario: Scenario, say: Say) -> table.Line:
    standing = _calm(lab, watch, say)
    earlier = len(watch.told)
    began = time.time()

    def new() -> list[Told]:
        watch.look()
        found: dict[Key, Told] = {}
        for each in watch.told[earlier:]:
            if each.what.receiver in PEOPLE and each.what.status == "firing" and key(each.what.labels) not in standing:
                found.setdefault(key(each.what.labels), each)
        return list(found.values())

    try:
        scenario.begin(lab)
        if scenario.alerts:
            began = time.time()
            _until(lambda: any(each.what.name in scenario.alerts for each in new()), TOLD_WITHIN_S)
        _until(lambda: False, SETTLES_S if scenario.alerts else scenario.quiet_s)
        sent = new()
    finally:
        lab.undo.close()
    mended = time.time()
    if not scenario.alerts:
        _until(lab.ceph.is_clean, CALM_WITHIN_S)
        _until(lambda: False, SETTLES_S)
        sent = new()  # what comes back is no news either
        informed = {each.what.name for each in watch.told[earlier:] if each.what.receiver not in PEOPLE}
        return quiet(scenario, lab.release, sent, informed, began)
    right = [each for each in sent if each.what.name in scenario.alerts]

    def over() -> bool:
        watch.look()
        ended = {key(each.what.labels) for each in watch.told[earlier:] if each.what.status == "resolved"}
        return all(key(each.what.labels) in ended for each in right)

    is_over = bool(right) and _until(over, OVER_WITHIN_S)
    return judged(scenario, lab.release, sent, began, f"{time.time() - mended:.0f} s" if is_over else "no")


def quiet(scenario: Scenario, release: str, sent: Sequence[Told], informed: set[str], began: float) -> table.Line:
    """The row of work: whom it told of what although it should not, and whether who reads was ``informed`` of it."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    others = ", ".join(sorted({f"{each.what.name} ({each.what.receiver})" for each in sent}))
    wrong = [f"people were told after {sent[0].at - began:.0f} s"] if sent else []
    wrong += [f"no {scenario.informs}"] if scenario.informs and scenario.informs not in informed else []
    told = f"{scenario.informs} (information)" if scenario.informs in informed else "none"
    verdict = f"not right: {'; '.join(wrong)}" if wrong else "right"
    return table.Line(scenario.fault, release, told, "-", "-", "-", "-", others, "-", verdict, today)


def judged(scenario: Scenario, release: str, sent: Sequence[Told], began: float, over: str) -> table.Line:
    """The row of what was ``sent`` to people since the fault, the first one first; ``over``: when all of it was."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    if not sent:
        return table.Line(
            scenario.fault, release, "none", "-", "-", "-", "-", "-", "-", "not right: nobody was told", today
        )
    first = sent[0]
    says = set(re.findall(r"\w+(?:\.\w+)*", first.says()))
    host = {scenario.host} | (
        {ceph.address(scenario.host)} if scenario.host in ceph.HOSTS else set()
    )  # a ping's target
    named = {
        "host": not scenario.host or not says.isdisjoint(host),
        "device": not scenario.device or not says.isdisjoint(scenario.device.split("|")),
    }
    layer = first.what.labels.get("layer", "-")
    suspected = [alert for alert in scenario.alerts if alert in says and alert != first.what.name]
    if suspected:  # a page about what clients feel says what is to blame
        layer += f", suspected: {suspected[0]}"
    wrong = [] if first.what.name in scenario.alerts or suspected else ["another alert came first"]
    wrong += [f"no {what} named" for what, is_named in named.items() if not is_named]
    wrong += [] if layer in scenario.layers or suspected else ["another layer"]
    wrong += [] if over != "no" else [f"not over within {OVER_WITHIN_S:.0f} s"]
    return table.Line(
        scenario.fault,
        release,
        f"{first.what.name} ({first.what.receiver})",
        f"{max(0.0, first.at - began):.0f} s",
        (scenario.host or "-") if named["host"] else "no",
        layer,
        (scenario.device or "-") if named["device"] else "no",
        ", ".join(sorted({f"{each.what.name} ({each.what.receiver})" for each in sent[1:] if _other(each, first)})),
        over,
        "right" if not wrong else f"not right: {'; '.join(wrong)}",
        today,
    )


def _other(each: Told, first: Told) -> bool:
    return (each.what.name, each.what.receiver) != (first.what.name, first.what.receiver)


def _calm(lab: Lab, watch: Watch, say: Say) -> set[Key]:
    """Healthy, and nobody is told of anything. What is still under way then is of the fault before, and no news."""

    def calm() -> bool:
        # Alertmanager never says that an alert is over that was held back when it ended
        told = {dict(one)["alertname"] for one in watch.standing() & watch.under_way()}
        return told <= ALWAYS and lab.ceph.is_clean()

    if not _until(calm, CALM_WITHIN_S):
        known = sorted(dict(each)["alertname"] for each in watch.standing())
        say(f"not calm: {known}, {lab.ceph.ceph('health', 'detail')}")
    return {*watch.standing(), *watch.under_way()}


def _until(look: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(1)
    return found
