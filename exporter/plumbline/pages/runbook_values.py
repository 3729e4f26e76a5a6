"""The labels of one alert, filled into the scripts of its runbook.

A script of a runbook begins with examples (``DEVICE=sdg``). An alert links its runbook with its labels as a query, so
that the page has the device, node and OSD that the alert is about. Somebody copies these lines into a shell, and who
wrote the link is not known: only values are filled in that mean nothing to a shell and are no option. ``ssh HOST 'cmd
…'`` is parsed twice, and the second time by the remote shell without our quotes, so quotes can't help: no character of
a value is a pattern there. Only an IPv6 address has brackets; it is used on this side alone.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlencode

_SAFE = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_.:/@+-]{0,252}")
_IPV6_INSTANCE = re.compile(r"\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,200})(:[0-9]{1,5})?(/[A-Za-z0-9_./-]{0,200})?")
_ASSIGNED = re.compile(r"([A-Z]+)=([\w.:/@+\[\]-]+)(?:( +)#.*)?")
_FENCED = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUNBOOK = re.compile(r"\]\((Plumbline\w+\.md)\)")
_HOST = "${INSTANCE%:*}"
_IPV6 = re.compile(r"\[([0-9A-Fa-f:.]+)\]")
"""What ssh is told of an instance in brackets: the address without them."""
_LABELS = {
    "INSTANCE": ("instance",),
    "PROMETHEUS": ("prometheus", "instance"),
    "ALERTMANAGER": ("instance",),
    "NODE": ("hostname",),
    "DEVICE": ("device",),
    "DISK": ("device",),
    "SLAVE": ("slave",),
    "PROBE": ("probe",),
    "TARGET": ("target",),
    "POOL": ("pool",),
    "ROLE": ("role",),
    "ADDRESS": ("pci_address",),
    "MOUNTPOINT": ("mountpoint",),
    "DAEMON": ("ceph_daemon",),
    "OSD": ("ceph_daemon", "target"),
}
"""Variable of a script → the labels that it may be, the first that the alert has and that looks like the example."""


def usable(given: Mapping[str, str]) -> dict[str, str]:
    """The labels that a runbook can use, with values that are safe in a shell; of a query, the others are left out."""
    known = {label for labels in _LABELS.values() for label in labels} | {"cluster", "layer"}
    kept = {label: value for label, value in given.items() if label in known}
    url = kept.pop("prometheus", "").rstrip("/")
    # of a path, no name leads upwards: commands write below some of them
    safe = {
        label: value
        for label, value in kept.items()
        if (_SAFE.fullmatch(value) and not {".", ".."} & set(value.split("/")))
        or (label == "instance" and _IPV6_INSTANCE.fullmatch(value))
    }
    return safe | ({"prometheus": url} if _URL.fullmatch(url) else {})


def filled(markdown: str, labels: Mapping[str, str]) -> str:
    """The runbook with the examples replaced by ``labels`` (as :func:`usable` gives them) and marked. Its links to
    other runbooks carry the labels on."""
    if not labels:
        return markdown
    text = _FENCED.sub(lambda block: "\n".join(_line(line, labels) for line in block[0].split("\n")), markdown)
    return _RUNBOOK.sub(lambda link: f"]({link[1]}?{urlencode(labels)})", text)


def _line(line: str, labels: Mapping[str, str]) -> str:
    if address := _IPV6.match(labels.get("instance", "")):
        line = line.replace(_HOST, address[1])
    match = _ASSIGNED.fullmatch(line)
    if match is None:
        return line
    name, example = match[1], match[2]
    value = next((value for value in _values(name, example, labels) if value), "")
    if not value:
        return line
    text = f"{name}={value}"
    # where the line's own comment began, in a column with those below
    return text.ljust(max(len(line.partition("#")[0]), len(text) + 2)) + "# from the alert"


def _values(name: str, example: str, labels: Mapping[str, str]) -> list[str]:
    """What may replace the example, best first."""
    given = [labels[label] for label in _LABELS.get(name, ()) if label in labels]
    if name == "PROMETHEUS":
        return [word for word in given if word.startswith("http") == example.startswith("http")]
    if name == "OSD":
        # of a canary the OSD is the end of the probe's name
        osds = [word.rpartition("/")[2] for word in (*given, labels.get("probe", ""))]
        numbers = [osd.removeprefix("osd.") for osd in osds if re.fullmatch(r"osd\.\d+", osd)]
        return [f"osd.{number}" if example.startswith("osd.") else number for number in numbers]
    return given
