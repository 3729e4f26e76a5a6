"""The text of a recorded baseline, for a person to read, check and sign.

Layers come bottom-up, each under a line that says what was measured; every figure has its unit and four digits. The
text is YAML, and :func:`plumbline.baseline.site.parse_site` reads it back.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec
import yaml

from plumbline.baseline.site import SiteEntry, SiteFile, encode
from plumbline.config.workloads import LAYERS, load_catalogue
from plumbline.core.units import count_text

_WIDTH = 118
_LAYERS = {
    "network": "between this host and its peers",
    "disk": "the disks of this host, raw and in Plumbline's own files",
    "osd": "single OSDs, without the network (ceph tell osd.N bench)",
    "rados": "objects in Plumbline's own pool",
    "rbd": "Plumbline's own images, through librbd",
    "filesystem": "Plumbline's own directories on mounted file systems",
    "object": "objects in Plumbline's own bucket, through S3",
    "client": "as a client sees it",
}


def format_record(file: SiteFile) -> str:
    return "".join(_parts(file))


def _parts(file: SiteFile) -> Iterator[str]:
    yield _comment(_head(file))
    whole = msgspec.to_builtins(file, enc_hook=encode)
    yield from _keys(whole, ("schema_version", "source", "name"))
    yield "\n" + _comment(["Where, when, by whom and with what."])
    yield from _keys(
        whole, ("host", "fleet_class", "hosts", "recorded", "recorded_by", "kernel", "tools", "fingerprint", "devices")
    )
    if file.notes:
        yield "\n" + _comment(["Read these notes before you sign."])
        yield from _keys(whole, ("notes",))
    yield "\nentries:\n"
    layers = sorted(file.entries, key=_layer)
    for layer, group in groupby(layers, key=_layer):
        entries = list(group)
        yield "\n" + _comment([f"--- {LAYERS[layer]}: {_LAYERS[LAYERS[layer]]} ({_count(entries, file.source)})"])
        for entry in entries:
            plain = msgspec.to_builtins(entry, enc_hook=encode)
            yield _yaml([{name: value for name, value in plain.items() if value != {}}])


def _head(file: SiteFile) -> list[str]:
    when = "" if file.recorded is None else f"{file.recorded:%Y-%m-%d %H:%M %Z}"
    by = f" by {file.recorded_by}" if file.recorded_by else ""
    if file.source == "class":
        return [
            f"Accepted figures of class {file.fleet_class}, accepted {when}{by}.",
            "Each is the median of the nodes in hosts. They judge a node of the class until its own baseline is in"
            " place; runs says how many nodes have the figure, mad_ratio and spread_ratio how far they differ.",
        ]
    return [
        f"Baseline of {file.host or file.name}, recorded {when}{by}.",
        "What this host's devices achieved when it was known to be good. Live figures are compared with these;"
        " tolerance_ratio is the accepted deviation, p50_of_runs shows how far the runs differed.",
        "Latency percentiles are over the operations of all runs, or the median of the runs if a tool reports no"
        " distribution. MB is 1,000,000 bytes.",
        "Accepted by: ______________________________  on: ______________",
    ]


def _comment(lines: Sequence[str]) -> str:
    wrapped = (part for line in lines for part in textwrap.wrap(line, _WIDTH - 2))
    return "".join(f"# {line}\n" for line in wrapped)


def _keys(whole: Mapping[str, object], names: Sequence[str]) -> Iterator[str]:
    """One line for each plain value and each note; a mapping or a list of mappings goes on one line if it fits."""
    for name in names:
        if name in whole:
            plain = name == "notes" or isinstance(whole[name], str | int)
            yield _yaml({name: whole[name]}, flow=None if not plain else False)


def _yaml(data: object, *, flow: bool | None = None) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=flow))


def _layer(entry: SiteEntry) -> int:
    return LAYERS.index(load_catalogue().by_id[entry.workload].layer)


def _count(entries: Sequence[SiteEntry], source: str) -> str:
    runs = sorted({entry.runs for entry in entries if entry.runs})
    what = "nodes" if source == "class" else "runs"
    runs_text = f", {' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} {what} each" if runs else ""
    return count_text(len(entries), "figure set") + runs_text
