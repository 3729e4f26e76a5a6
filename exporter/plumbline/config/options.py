"""Combines flags, file and environment into the effective configuration and the storage path.

``credential:NAME`` in the file is a secret that systemd gives the service: ``LoadCredential=NAME:PATH`` in the unit
makes a file of root's readable for this service and nobody else. systemd passes the directory in
``$CREDENTIALS_DIRECTORY`` (systemd.exec(5), "Credentials"); a container runtime may too.
"""

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import field

from plumbline.config.model import CephConfig, Config, load, split_address
from plumbline.config.types import CREDENTIAL, Strict
from plumbline.core.keyfiles import CEPH, read_anchor, read_secret
from plumbline.errors import ConfigError

T = TypeVar("T", bound=Strict)

_MAX_KEY_BYTES = 4 << 20

CREDENTIALS_DIRECTORY = "/run/credentials/plumbline.service"
"""The directory of the credentials for a command that root runs outside the service."""


class Overrides(msgspec.Struct, frozen=True):
    """Command line options that override the file, at the start and at every reload."""

    listen_address: str | None = None
    web_config_file: Path | None = None
    collectors: Mapping[str, bool] = field(default_factory=dict)

    def apply(self, config: Config) -> Config:
        web = config.web
        if self.listen_address is not None:
            web = msgspec.structs.replace(web, listen_address=self.listen_address)
        if self.web_config_file is not None:
            web = msgspec.structs.replace(web, config_file=str(self.web_config_file))
        return msgspec.structs.replace(config, web=web, collectors={**config.collectors, **self.collectors})


def storage_path(flag: Path | None, config: Config, environment: Mapping[str, str]) -> Path:
    """From the flag, else the file, else systemd's StateDirectory, else the XDG state directory."""
    if flag is not None:
        return flag.absolute()
    if config.storage_path:
        return Path(config.storage_path).absolute()
    if directory := environment.get("STATE_DIRECTORY"):
        return Path(directory.split(":")[0])
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path("~/.local/state").expanduser()) / "plumbline"


def read_config(
    file: Path | None,
    overrides: Overrides = Overrides(),  # noqa: B008  (frozen)
    environment: Mapping[str, str] = os.environ,
    *,
    collectors: Collection[str] | None = None,
) -> Config:
    """The file (or the defaults) with the flags applied, and credentials replaced by systemd's paths. ``collectors``:
    the existing names; ``None`` for a command that runs none and need not know them."""
    if overrides.listen_address is not None:
        try:
            split_address(overrides.listen_address)
        except ValueError as error:
            raise ConfigError("--web.listen-address", str(error), value=overrides.listen_address) from None
    config = load(file) if file else Config()
    for name in config.collectors:
        if collectors is not None and name not in collectors:
            existing = ", ".join(collectors)
            raise ConfigError(str(file), f"no such collector; there are: {existing}", key=f"collectors.{name}")
    return overrides.apply(with_credentials(config, environment))


def with_credentials(config: Config, environment: Mapping[str, str]) -> Config:
    """``config`` with credentials replaced by paths. Opens nothing: the reader of a file reports that it is missing."""
    directory = environment.get("CREDENTIALS_DIRECTORY") or CREDENTIALS_DIRECTORY
    return msgspec.structs.replace(
        config,
        ceph=_resolved(config.ceph, config.ceph.secrets, directory),
        probes=tuple(_resolved(probe, probe.secrets, directory) for probe in config.probes),
    )


def check_key_files(config: Config, where: str) -> None:
    """Refuse a configuration whose secrets others may read, or whose anchors others may change. What is missing or of
    another kind is left to its reader. The web file and what it names are checked as they are read. Raises
    :class:`ConfigError`."""
    files: list[tuple[str, str | None, Callable[[str, int], bytes]]] = [
        ("baseline.allowed_signers", config.baseline.allowed_signers, read_anchor)
    ]
    files += [
        (f"ceph.{name}", getattr(config.ceph, name), partial(read_secret, account=CEPH)) for name in CephConfig.secrets
    ]
    for number, probe in enumerate(config.probes):
        for name in probe.secrets:
            checked = read_anchor if name in probe.anchors else read_secret
            files.append((f"probes[{number}].{name}", getattr(probe, name), checked))
    for key, path, read in files:
        if path is None or path.startswith(CREDENTIAL):
            continue
        try:
            read(path, _MAX_KEY_BYTES)
        except PermissionError as error:
            raise ConfigError(where, str(error.strerror), key=key, value=path) from None
        except OSError:
            continue


def is_handed(path: str) -> bool:
    """Whether a file is systemd's copy, which only systemd writes."""
    return path.startswith(("/run/credentials/", CREDENTIAL))


def _resolved(config: T, names: tuple[str, ...], directory: str) -> T:
    values = {name: value for name in names if (value := getattr(config, name)) is not None}
    paths = {
        name: f"{directory}/{value.removeprefix(CREDENTIAL)}"
        for name, value in values.items()
        if value.startswith(CREDENTIAL)
    }
    return msgspec.structs.replace(config, **paths) if paths else config
