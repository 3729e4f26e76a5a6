"""Combines flags, file and environment into the effective configuration and the storage path."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from plumbline.config.credentials import with_credentials
from plumbline.config.model import Config, load, split_address
from plumbline.config.workloads import WorkloadCatalogue
from plumbline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Overrides:
    """Command line options that override the file, at the start and at every reload."""

    listen_address: str | None = None
    web_config_file: Path | None = None
    collectors: Mapping[str, bool] = field(default_factory=dict)

    def apply(self, config: Config) -> Config:
        """The effective configuration."""
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
    overrides: Overrides,
    catalogue: WorkloadCatalogue,
    environment: Mapping[str, str] = os.environ,
    *,
    collectors: Collection[str] | None = None,
) -> Config:
    """The file (or the defaults) with the flags applied, and credentials replaced by systemd's paths.

    ``collectors``: the existing names; ``None`` for a command that runs none and need not know them.
    """
    if overrides.listen_address is not None:
        try:
            split_address(overrides.listen_address)
        except ValueError as error:
            raise ConfigError("--web.listen-address", str(error), value=overrides.listen_address) from None
    config = load(file, catalogue) if file else Config()
    known = config.collectors if collectors is None else collectors
    for name in config.collectors:
        if name not in known:
            raise ConfigError(str(file), f"no such collector; there are: {', '.join(known)}", key=f"collectors.{name}")
    return overrides.apply(with_credentials(config, environment))
