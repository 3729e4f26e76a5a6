"""LVM volumes without any LVM command: from device-mapper and udev, and the tags from LVM's own backups.

A volume's dm uuid is ``LVM-`` + 32 characters of its group + 32 of its own (+ ``-`` and a layer such as ``real`` for
LVM's internal devices). Its dm name is group and volume joined by a hyphen, with hyphens inside doubled.

Tags exist only in the metadata on the disks and in ``/etc/lvm/backup/<group>``, which LVM writes after every change
(lvm.conf: ``backup``), in the metadata's own format. Only root may read it, and a node whose LVM commands run in
containers (cephadm) has none; so tags are optional. A raw device is never read, because that can hang.
https://man7.org/linux/man-pages/man8/vgcfgbackup.8.html, lib/format_text of LVM2.

    ceph-1b2c {
        id = "zZqXCg-bhpS-3nFZ-m9T0-1GyD-lGVw-qDWBwl"
        logical_volumes {
            osd-block-5d6e {
                id = "cGXC1P-…"
                tags = ["ceph.osd_id=71", "ceph.type=block"]
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec import Struct

from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.disk.blocktree import BlockNode
from plumbline.sources.kernel.sysfs import entries, read_bytes

_UUID = re.compile(r"LVM-[0-9A-Za-z]{64}")  # nothing after it: a volume, not a layer of one
# lvm(8), "Valid names": volumes that LVM creates inside others for its own use
_INTERNAL = re.compile(
    r".*_(?:[rm]image|rmeta|mlog|[ct]data|[ct]meta|corig|wcorig|cvol|cpool|vorigin|vdata|pmspare|iorig|imeta)(?:_\d+)?"
)
_TOKEN = re.compile(r'\s+|#[^\n]*|(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\]=,])|(?P<word>[^\s{}\[\]=,"#]+)')
_MAX_DEPTH = 12

Section = dict[str, "str | list[str] | Section"]


class LogicalVolume(Struct, frozen=True):
    """A volume's names."""

    group: str
    volume: str

    @property
    def name(self) -> str:
        """``group/volume``, as the LVM commands take it."""
        return f"{self.group}/{self.volume}"


def volume_of(node: BlockNode) -> LogicalVolume | None:
    """The logical volume of a dm device; ``None`` for other devices and for LVM's own layers."""
    if not _UUID.fullmatch(node.dm_uuid):
        return None
    group, volume = node.property("DM_VG_NAME"), node.property("DM_LV_NAME")
    if not (group and volume):
        group, _, volume = re.sub(r"(?<!-)-(?!-)", "/", node.dm_name).replace("--", "-").partition("/")
    return None if not volume or _INTERNAL.fullmatch(volume) else LogicalVolume(group, volume)


def parse_metadata(text: str, *, source: str) -> Section:
    """Parse LVM's text format into nested dictionaries with text values; :class:`ParseError` when malformed."""
    top: Section = {}
    open_sections = [top]
    tokens = _tokens(text, source)
    for line, mark, key in tokens:
        if mark == "}" and len(open_sections) > 1:
            open_sections.pop()
            continue
        _, follows, _ = next(tokens, (line, "", ""))
        if mark or follows not in ("{", "="):
            raise ParseError(source, f"not LVM metadata: {(mark or key)[:40]!r}", line=line)
        if follows == "=":
            open_sections[-1][key] = _value(tokens, key, line, source)
            continue
        open_sections.append({})
        open_sections[-2][key] = open_sections[-1]
        if len(open_sections) > _MAX_DEPTH:
            raise ParseError(source, "sections are nested too deeply", line=line)
    if len(open_sections) > 1:
        raise ParseError(source, "the last section has no end")
    return top


def tags_by_uuid(metadata: Section) -> Mapping[str, tuple[str, ...]]:
    """dm uuid → tags, for every logical volume in the metadata of one or more groups."""
    tags_of: dict[str, tuple[str, ...]] = {}
    for group in metadata.values():
        if not isinstance(group, dict):
            continue
        volumes = group.get("logical_volumes", {})
        for volume in volumes.values() if isinstance(volumes, dict) else ():
            if isinstance(volume, dict):
                ids, tags = (group.get("id"), volume.get("id")), volume.get("tags", [])
                uuid = "LVM-" + "".join(part.replace("-", "") for part in ids if isinstance(part, str))
                if _UUID.fullmatch(uuid) and isinstance(tags, list):
                    tags_of[uuid] = tuple(tags)
    return tags_of


def read_tags(roots: Roots) -> Mapping[str, tuple[str, ...]]:
    """dm uuid → tags, from LVM's backups; empty where they can't be read. Damaged backups are skipped."""
    tags: dict[str, tuple[str, ...]] = {}
    directory = roots.etc / "lvm" / "backup"
    for name in entries(directory):
        text = (read_bytes(directory / name, TABLE) or b"").decode("utf-8", "replace")
        with suppress(ParseError):
            tags |= tags_by_uuid(parse_metadata(text, source=str(directory / name)))
    return tags


def _value(tokens: Iterator[tuple[int, str, str]], key: str, line: int, source: str) -> str | list[str]:
    _, mark, text = next(tokens, (line, "}", ""))
    if not mark:
        return text
    if mark != "[":
        raise ParseError(source, f"{key[:40]!r} has no value", line=line)
    values: list[str] = []
    for _, mark, text in tokens:
        if mark == "]":
            return values
        if not mark:
            values.append(text)
        elif mark != ",":
            break
    raise ParseError(source, f"{key[:40]!r}: the list has no end", line=line)


def _tokens(text: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, mark, value). Either mark or value is empty; for an empty string, both are."""
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError(source, f"not LVM metadata: {text[at : at + 40]!r}", line=line)
        string, mark, word = match["string"], match["mark"], match["word"]
        if string is not None:
            yield line, "", re.sub(r"\\(.)", r"\1", string[1:-1], flags=re.DOTALL)
        elif mark or word:
            yield line, mark or "", word or ""
        line += match[0].count("\n")
        at = match.end()
