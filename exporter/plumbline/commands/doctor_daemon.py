"""What ``plumbline doctor`` asks the daemon: is it up, do its collectors work, is there a baseline. And Ceph."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from plumbline.commands.node import Node
from plumbline.config import web
from plumbline.config.model import Config, split_address
from plumbline.core.foreign import MOST
from plumbline.core.words import first_few
from plumbline.errors import PlumblineError, ProbeRefused, Unavailable
from plumbline.probes.ceph.ceph_access import NO_CLUSTER, SETUP
from plumbline.probes.ceph.cluster import CephGuard
from plumbline.sources.http import read_page
from plumbline.sources.kernel.installation import Installation, Need
from plumbline.sources.prometheus.access import Access

RELOADED_AT = "plumbline_config_last_reload_success_timestamp_seconds"
"""When this daemon read its configuration: a value that no other daemon has, whatever its labels are in Prometheus."""
_RELOAD_OK, _SUCCESS = "plumbline_config_last_reload_successful", "plumbline_collector_success"
_MISSING, _WEB = "plumbline_baseline_missing", "plumbline_web_info"


class State(StrEnum):
    WELL = "ok"
    MISSING = "missing"
    NOT_ASKED = "not asked"


class Answer(Struct, frozen=True):
    """The answer to one question. ``mend``: the command or step that mends it; empty if all is well."""

    question: str
    state: State
    says: str
    mend: str = ""


Samples = Mapping[str, Sequence[Sample]]


def address_of(config: Config) -> str:
    """The URL at which this host reaches the daemon that this configuration starts."""
    host, port = split_address(config.web.listen_address)
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (not bound to)
    file = config.web.config_file
    tls = file is not None and web.load(Path(file)).tls_server_config is not None
    return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def ask_daemon(
    url: str, *, timeout_s: float, access: Access, installation: Installation
) -> tuple[list[Answer], Samples | None]:
    """Whether it is up and its page whole; and the samples of its page, if there is one."""
    up, log = "is the daemon up", installation.step(Need.LOG)
    try:
        ready = read_page(f"{url}/-/ready", timeout_s=timeout_s, access=access, proxies=False)
        if ready.status in (401, 403):
            return [
                Answer(up, State.MISSING, f"{url}: it requires credentials", "--daemon.http.config.file FILE")
            ], None
        if ready.status != 200:
            return [Answer(up, State.MISSING, f"{url}: {ready.status} {_first_line(ready.text)}", log)], None
        page = read_page(f"{url}/metrics", timeout_s=timeout_s, access=access, proxies=False)
    except Unavailable as error:
        mend = f"{installation.step(Need.RESTART)}; {log}; where it listens elsewhere: --daemon URL"
        return [Answer(up, State.MISSING, str(error), mend)], None
    samples = samples_of(page.text)
    if page.status != 200 or "plumbline_build_info" not in samples:
        says = f"{url}/metrics is not Plumbline's page ({page.status})"
        return [Answer(up, State.MISSING, says, "--daemon URL")], None
    version = samples["plumbline_build_info"][0].labels.get("version", "")
    return [Answer(up, State.WELL, f"version {version} at {url}"), _whole(samples, log), _configured(samples)], samples


def samples_of(text: str) -> Samples:
    """The finite samples of a page in the text format, by name; none of a page that is something else."""
    samples: dict[str, list[Sample]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in filter(lambda sample: abs(sample.value) <= MOST, family.samples):
                samples.setdefault(sample.name, []).append(sample)
    except (ValueError, LookupError, TypeError):
        return {}
    return samples


def _whole(samples: Samples, log: str) -> Answer:
    question, collectors = "do all collectors work", samples.get(_SUCCESS, ())
    failing = [collector.labels.get("collector", "") for collector in collectors if not collector.value]
    if failing:
        return Answer(question, State.MISSING, f"collectors that fail: {first_few(failing)}", f"the status page; {log}")
    return Answer(question, State.WELL, f"{len(collectors)} collectors, none fails")


def _configured(samples: Samples) -> Answer:
    question = "is the configuration file in force"
    if any(not sample.value for sample in samples.get(_RELOAD_OK, ())):
        mend = "plumbline config check /etc/plumbline/plumbline.yaml"
        return Answer(question, State.MISSING, "the file was refused; an older configuration is in force", mend)
    return Answer(question, State.WELL, "the last reload succeeded")


def only_loopback(samples: Samples) -> bool:
    return any(sample.labels.get("reach") == "loopback" for sample in samples.get(_WEB, ()))


def ask_baseline(samples: Samples) -> Answer:
    """Whether each probe has a baseline that judges it."""
    question, targets = "is there a baseline", samples.get(_MISSING, ())
    if not targets:
        return Answer(question, State.MISSING, "no probe runs, so nothing is measured", "probes: docs/probes.md")
    without = {target.labels.get("probe", "") for target in targets if target.value}
    judged = {target.labels.get("probe", "") for target in targets} - without
    if not without:
        return Answer(question, State.WELL, f"every probe is judged: {first_few(sorted(judged))}")
    says = f"no baseline judges: {first_few(sorted(without))}"
    return Answer(question, State.MISSING, says, "plumbline baseline record, or plumbline baseline advise")


def ask_ceph(node: Node) -> Answer:
    """Whether the cluster answers with the rights that this user has."""
    question = "does Ceph answer"
    user = f"client.{node.config.ceph.user}"
    with closing(CephGuard(node.config.ceph, node.config.gates, host=node.host)) as guard:
        try:
            view = guard.look()
        except ProbeRefused as error:
            if error.reason == NO_CLUSTER:
                return Answer(question, State.NOT_ASKED, str(error))
            return Answer(question, State.MISSING, str(error), SETUP)
        except PlumblineError as error:
            return Answer(question, State.MISSING, str(error), SETUP)
    if not view.reachable:
        return Answer(question, State.MISSING, f"{user}: {view.message}", f"ceph -s --name {user}; {SETUP}")
    closed = "; ".join(f"{gate}: {why}" for gate, why in view.closed.items())
    return Answer(question, State.WELL, f"as {user}" + (f"; no probe of it runs now ({closed})" if closed else ""))


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:160]
