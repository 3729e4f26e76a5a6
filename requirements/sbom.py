#!/usr/bin/env python3
"""Write the software bill of materials: what the built wheel holds and what is installed beside it, as CycloneDX 1.6.

Usage: python -m requirements.sbom WHEEL OUTPUT

- The product: the wheel, with its hash; inside it the compiled BPF programs, each with its own.
- Its dependencies: every release of ``run.txt`` (required) and of ``s3.txt`` (optional), licences from the installed
  metadata, the relations from the lock. A release is many files, of which pip takes one: the hashes of all that the
  lock accepts stand at a reference to the distribution, since none of them is *the* component's.

Same wheel, same locks: same bytes. The time is that of SOURCE_DATE_EPOCH, or none. The result is validated against
CycloneDX's own schema before it is written; exit 1 where anything is missing or does not fit.
"""

from __future__ import annotations

import datetime
import email.parser
import hashlib
import json
import os
import re
import sys
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from cyclonedx.schema import SchemaVersion
from requirements.audit import installed_troubles
from requirements.licences import declared
from requirements.locks import SHIPPED, LockError, Pinned, read_lock

_NAMESPACE = uuid.UUID("6b1f0c52-5f0e-5c1a-9f83-6f3f2d9b7a10")
"""Of our serial numbers, which are made from the content."""
_SPDX = re.compile(rb"SPDX-License-Identifier: ([^\n*]+)")


class SbomError(Exception):
    """Why there is no bill of materials, in one line."""


def licence_objects(licences: Sequence[str]) -> list[dict[str, Any]]:
    """CycloneDX's ``licenses``: one expression, or several by their names."""
    if len(licences) == 1 and " " in licences[0] and re.search(r" (AND|OR|WITH) ", licences[0]):
        return [{"acknowledgement": "declared", "expression": licences[0]}]
    return [
        {"license": {"acknowledgement": "declared", ("name" if " " in each else "id"): each}}
        for each in sorted(licences)
    ]


def dependency(pin: Pinned, licences: Sequence[str], scope: str) -> dict[str, Any]:
    """One release as a component; its purl is its reference."""
    purl = f"pkg:pypi/{pin.name}@{pin.version}"
    return {
        "bom-ref": purl,
        "externalReferences": [
            {
                "comment": "any one of these files: the lock accepts no other",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.sha256],
                "type": "distribution",
                "url": purl,
            }
        ],
        "licenses": licence_objects(licences),
        "name": pin.name,
        "purl": purl,
        "scope": scope,
        "type": "library",
        "version": pin.version,
    }


def product(wheel: Path) -> dict[str, Any]:
    """The wheel and the programs compiled into it, from what the wheel itself says."""
    content = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(archive.namelist())
        about = next((name for name in names if name.endswith(".dist-info/METADATA")), None)
        if about is None:
            raise SbomError(f"{wheel}: no METADATA in it; is it a wheel?")
        data: Message = email.parser.BytesParser().parsebytes(archive.read(about))
        name, version = data["Name"], data["Version"]
        purl = f"pkg:pypi/{name}@{version}"
        objects = [_object(archive, each, purl) for each in names if each.endswith(".bpf.o")]
    return {
        "bom-ref": purl,
        **({"components": objects} if objects else {}),
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
        "licenses": licence_objects(declared(data)),
        "name": name,
        "properties": [{"name": "plumbline:wheel", "value": wheel.name}],
        "purl": purl,
        "type": "application",
        "version": version,
    }


def _object(archive: zipfile.ZipFile, name: str, purl: str) -> dict[str, Any]:
    source = name.removesuffix(".o") + ".c"
    said = _SPDX.search(archive.read(source)) if source in archive.namelist() else None
    return {
        "bom-ref": f"{purl}#{name}",
        "description": "BPF program, compiled from the source beside it",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(archive.read(name)).hexdigest()}],
        **({"licenses": licence_objects((said[1].decode("ascii").strip(),))} if said else {}),
        "name": name,
        "type": "file",
    }


def relations(root: str, pins: Sequence[Pinned]) -> list[dict[str, Any]]:
    """Who needs whom, as the locks tell it."""
    refs = {pin.name: f"pkg:pypi/{pin.name}@{pin.version}" for pin in pins} | {"plumbline": root}
    needs: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for pin in pins:
        for name in pin.needed_by:
            if name in refs:
                needs[refs[name]].append(refs[pin.name])
    return [{"dependsOn": sorted(needs[ref]), "ref": ref} for ref in sorted(needs)]


def bill(wheel: Path, locks: Mapping[str, Sequence[Pinned]], epoch: int | None) -> dict[str, Any]:
    """The whole document. Raise :class:`SbomError` where a release is not installed as locked or has no licence."""
    required = {pin.name for pin in locks[SHIPPED[0]]}
    pins = {pin.name: pin for lock in SHIPPED for pin in locks[lock]}
    troubles = list(installed_troubles(pins.values()))
    if troubles:
        raise SbomError("; ".join(troubles))
    root = product(wheel)
    components = [
        dependency(
            pin,
            declared(cast(Message, metadata.metadata(pin.name))),
            "required" if pin.name in required else "optional",
        )
        for _, pin in sorted(pins.items())
    ]
    about: dict[str, Any] = {"component": root, "lifecycles": [{"phase": "build"}]}
    if epoch is not None:
        about["timestamp"] = datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "components": components,
        "dependencies": relations(root["bom-ref"], list(pins.values())),
        "metadata": about,
        "specVersion": "1.6",
        "version": 1,
    }
    serial = uuid.uuid5(_NAMESPACE, json.dumps(document, sort_keys=True))
    return document | {"serialNumber": f"urn:uuid:{serial}"}


def text_of(document: Mapping[str, Any]) -> str:
    """The document as it is written; :class:`SbomError` where CycloneDX's schema does not allow it."""
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    # a parser of URIs is made on import: seconds that whoever only imports this module needn't wait
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        raise SbomError(f"not valid CycloneDX 1.6: {wrong}")
    return text


def main(arguments: Sequence[str]) -> int:
    """See the module."""
    if len(arguments) != 2:
        print("usage: python -m requirements.sbom WHEEL OUTPUT (exactly one wheel)", file=sys.stderr)
        return 2
    wheel, output = Path(arguments[0]), Path(arguments[1])
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        document = bill(wheel, {name: read_lock(name) for name in SHIPPED}, int(epoch) if epoch else None)
        text = text_of(document)
    except (SbomError, LockError, OSError, zipfile.BadZipFile, ValueError) as error:
        print(f"no bill of materials: {error}", file=sys.stderr)
        return 1
    output.write_text(text, "utf-8")
    inside = len(document["metadata"]["component"].get("components", ()))
    print(f"{output}: {wheel.name} with {inside} BPF program(s) in it and {len(document['components'])} dependencies")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
