"""One test for many items of the tree (a file, an alert, an id) that names all of those for which it fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_every(
    names: str | tuple[str, ...], values: Iterable[Any], ids: Callable[[Any], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but as one test: it is called for each value, and fails once, with a line for
    each value that failed. It gets the same fixtures each time, so it must leave them as they are. No values fail."""
    cases = list(values)
    single = isinstance(names, str)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def whole(*arguments: Any, **fixtures: Any) -> None:
            assert cases, "nothing to look at"
            failures = []
            for value in cases:
                given = {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
                try:
                    test(*arguments, **given, **fixtures)
                except (Exception, SystemExit, pytest.fail.Exception) as error:  # noqa: BLE001  (it is named below)
                    name = ids(value) if ids else value if single else ", ".join(map(str, value))
                    failures.append(f"{name}: {_why(error)}")
            if failures:
                pytest.fail(f"{len(failures)} of {len(cases)}:\n" + "\n".join(failures), pytrace=False)

        signature = inspect.signature(test)
        left = [
            parameter for name, parameter in signature.parameters.items() if name not in ({names} if single else names)
        ]
        whole.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # pytest asks it
        return whole

    return decorate


def _why(error: BaseException) -> str:
    text = str(error).strip()
    return text if isinstance(error, AssertionError | pytest.fail.Exception) else f"{type(error).__name__}: {text}"
