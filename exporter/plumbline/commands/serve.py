"""``plumbline serve`` and ``plumbline config check``."""

import argparse
from pathlib import Path

from plumbline.collectors.registry import NAMES
from plumbline.commands.shared import complain, roots, say
from plumbline.config.model import MAX_BYTES
from plumbline.config.options import Overrides, read_config
from plumbline.config.yaml import read_text
from plumbline.daemon import daemon
from plumbline.daemon.running import refusals
from plumbline.errors import ConfigError, PlumblineError
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
    from plumbline.config.mistakes import mistakes  # noqa: PLC0415  (the daemon needs none of it)

    if options.file is None and options.web_config_file is None:
        raise ConfigError("config check", "name a configuration file, or --web.config.file, or both")
    wrong: list[PlumblineError] = []
    config = None
    if options.file:
        text = read_text(options.file, max_bytes=MAX_BYTES)
        wrong += mistakes(text, where=str(options.file))
    if not wrong:
        overrides = Overrides(web_config_file=options.web_config_file)
        config = read_config(options.file, overrides, collectors=NAMES)
        if options.file:
            wrong += refusals(config, options.file)
    web_file = config.web.config_file if config else options.web_config_file
    try:
        make_guard(Path(web_file) if web_file else None)
    except PlumblineError as error:
        wrong.append(error)
    for mistake in wrong:
        complain(f"plumbline: {mistake}")
    for file in (options.file, web_file):
        if file and not wrong:
            say(f"{file}: good")
    return 1 if wrong else 0
