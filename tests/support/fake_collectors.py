"""Collectors without a host: one function gives their samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import MetricSpec, Samples

Fake: TypeAlias = Collector[None, Samples]


def fake(
    name: str,
    specs: tuple[MetricSpec, ...],
    collect: Callable[[SkipHook], Samples],
    *,
    skip_reasons: tuple[str, ...] = ITEM_REASONS,
    listed: bool = True,
) -> Fake:
    """A collector whose reading is its samples."""
    return Collector(
        name,
        specs,
        lambda _host, skip: collect(skip),
        lambda samples: samples,
        skip_reasons=skip_reasons,
        listed=listed,
    )
