"""Secrets by systemd's credentials: ``credential:NAME`` in the configuration is a file that systemd gives the service.

``LoadCredential=NAME:PATH`` in the unit makes a file of root's readable for this service and nobody else. systemd
passes the directory in ``$CREDENTIALS_DIRECTORY`` (systemd.exec(5), "Credentials"); a container runtime may too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from plumbline.config.model import Config
from plumbline.config.types import CREDENTIAL, Strict

T = TypeVar("T", bound=Strict)

DIRECTORY = "/run/credentials/plumbline.service"
"""The directory of the credentials for a command that root runs outside the service."""


def with_credentials(config: Config, environment: Mapping[str, str]) -> Config:
    """``config`` with credentials replaced by paths. Opens nothing: the reader of a file reports that it is missing."""
    directory = environment.get("CREDENTIALS_DIRECTORY") or DIRECTORY
    return msgspec.structs.replace(
        config,
        ceph=_resolved(config.ceph, config.ceph.secrets, directory),
        probes=tuple(_resolved(each, each.secrets, directory) for each in config.probes),
    )


def is_handed(path: str) -> bool:
    """Whether a file is systemd's copy, which only systemd writes."""
    return path.startswith(("/run/credentials/", CREDENTIAL))


def _resolved(config: T, names: tuple[str, ...], directory: str) -> T:
    found = {name: value for name in names if (value := getattr(config, name)) is not None}
    paths = {
        name: f"{directory}/{value.removeprefix(CREDENTIAL)}"
        for name, value in found.items()
        if value.startswith(CREDENTIAL)
    }
    return msgspec.structs.replace(config, **paths) if paths else config
