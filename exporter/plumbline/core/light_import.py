"""Modules of a large package without its ``__init__``, which imports every part of the package."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec


@contextmanager
def without_init(package: str) -> Iterator[None]:
    """Inside, submodules of a top-level ``package`` can be imported without running its ``__init__``. Afterwards the
    package is as if it had never been imported, while those submodules stay loaded: whoever imports it as a whole later
    gets all of it. Use it only while a module is being imported, when no other thread imports yet."""
    spec = find_spec(package)
    if package in sys.modules or spec is None:  # loaded as a whole, or not installed: the import itself says so
        yield
        return
    sys.modules[package] = module_from_spec(spec)
    try:
        yield
    finally:
        del sys.modules[package]
