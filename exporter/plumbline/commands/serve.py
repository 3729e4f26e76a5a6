"""``plumbline serve`` and ``plumbline config check``."""

import argparse
from pathlib import Path

from plumbline.collectors.registry import NAMES
from plumbline.commands.shared import roots, say
from plumbline.config import workloads
from plumbline.config.options import Overrides, check_key_files, read_config
from plumbline.daemon import daemon
from plumbline.errors import ConfigError
from plumbline.web.guard import make_guard


def serve(options: argparse.Namespace) -> int:
    return daemon.serve(
        config_file=options.config_file,
        storage_path_flag=options.storage_path,
        roots=roots(options),
        overrides=Overrides(
            listen_address=options.listen_address,
            web_config_file=options.web_config_file,
            collectors={name: on for name in NAMES if (on := getattr(options, f"collector_{name}")) is not None},
        ),
    )


def check_config(options: argparse.Namespace) -> int:
    if options.file is None and options.web_config_file is None:
        raise ConfigError("config check", "name a configuration file, or --web.config.file, or both")
    overrides = Overrides(web_config_file=options.web_config_file)
    config = read_config(options.file, overrides, workloads.load_catalogue(), collectors=NAMES)
    if options.file:
        check_key_files(config, str(options.file))
        say(f"{options.file}: good")
    if config.web.config_file:
        make_guard(Path(config.web.config_file))
        say(f"{config.web.config_file}: good")
    return 0
