"""Secrets by systemd's credentials: ``credential:NAME`` in the configuration is a file that the service was handed.

``LoadCredential=NAME:PATH`` in the unit lets root's file be read by this service and nobody else. systemd says where in
``$CREDENTIALS_DIRECTORY`` (systemd.exec(5), "Credentials"); a container's runtime may do the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from plumbline.config.model import Config
from plumbline.config.types import CREDENTIAL, Strict

T = TypeVar("T", bound=Strict)

DIRECTORY = "/run/credentials/plumbline.service"
"""Where they are for a command that root runs beside the service."""


def with_credentials(config: Config, environment: Mapping[str, str]) -> Config:
    """``config`` with a path wherever a credential stands. Nothing is opened: what is missing is told by its reader."""
    directory = environment.get("CREDENTIALS_DIRECTORY") or DIRECTORY
    return msgspec.structs.replace(
        config,
        ceph=_resolved(config.ceph, config.ceph.secrets, directory),
        probes=tuple(_resolved(each, each.secrets, directory) for each in config.probes),
    )


def is_handed(path: str) -> bool:
    """Whether a file is systemd's copy, which only it writes."""
    return path.startswith(("/run/credentials/", CREDENTIAL))


def _resolved(config: T, names: tuple[str, ...], directory: str) -> T:
    found = {name: value for name in names if (value := getattr(config, name)) is not None}
    paths = {
        name: f"{directory}/{value.removeprefix(CREDENTIAL)}"
        for name, value in found.items()
        if value.startswith(CREDENTIAL)
    }
    return msgspec.structs.replace(config, **paths) if paths else config
