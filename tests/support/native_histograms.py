"""Promtool test files with our histograms as Prometheus stores them where the scrape job says
``convert_classic_histograms_to_nhcb``: one native series with our own limits in the place of those for each ``le``,
``_sum`` and ``_count``. Nothing else of a test changes: both flavours of the rules have to meet the same expectations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isclose
from typing import Any

from plumbline.collectors.registry import every_spec

from .rulefiles import labels_of
from .rules import TEST_FILES

Values = list[float | None]
"""One for each step; ``None``: no sample. NaN: a stale marker."""
Parts = dict[str, Values]
"""What a classic histogram is made of: a limit as it stands in ``le``, ``sum`` or ``count`` → its values."""

HISTOGRAMS = frozenset(spec.name for spec in every_spec() if spec.kind.value == "histogram")
_NAME = re.compile(rf"(?P<name>{'|'.join(sorted(HISTOGRAMS))})_(?P<part>bucket|sum|count)(?=[{{ ]|$)")
NATIVE_FILES = [
    file for file in TEST_FILES if re.search(rf"series: '?(?:{_NAME.pattern})", file.read_text("utf-8"), re.MULTILINE)
]
"""Test files with a histogram among their input."""
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)"
_STEPS = re.compile(rf"(?P<start>{_NUMBER})(?P<by>[-+]\s*\d[\d.]*(?:e[-+]?\d+)?)?(?:x(?P<times>\d+))?", re.IGNORECASE)
_STALE = "stale"


def has_histograms(test: Mapping[str, Any]) -> bool:
    """Is a histogram of ours among a test's input?"""
    return any(_part(series["series"]) for series in test["input_series"])


def converted(test: Mapping[str, Any]) -> dict[str, Any]:
    """The test with native histograms. ValueError for a histogram that no page could have: a bucket below the one
    before it, parts that are not there at the same steps, a count unlike its last bucket."""
    others, parts = [], dict[tuple[str, str], Parts]()
    for series in test["input_series"]:
        if not (found := _part(series["series"])):
            others.append(series)
            continue
        name, labels, part = found
        parts.setdefault((name, labels), {})[part] = expanded(series["values"])
    native = [
        {"series": f"{name}{{{labels}}}", "values": _notation(f"{name}{{{labels}}}", of)}
        for (name, labels), of in parts.items()
    ]
    cases = [
        case | {"exp_samples": _folded(case["exp_samples"])} if _by_limit(case) else case
        for case in test.get("promql_expr_test", [])
    ]
    return {**test, "input_series": others + native, **({"promql_expr_test": cases} if cases else {})}


def expanded(notation: str) -> Values:
    """Promtool's notation as values: ``0+10x2 _ stale`` → 0, 10, 20, none, NaN."""
    values: Values = []
    for word in notation.split():
        if word == _STALE:
            values.append(float("nan"))
        elif word[0] == "_":
            values += [None] * int(word[2:] or 1)
        elif found := _STEPS.fullmatch(word):
            start, by = float(found["start"]), float(found["by"] or 0)
            values += [start + by * step for step in range(int(found["times"] or 0) + 1)]
        else:
            raise ValueError(f"not a value: {word}")
    return values


def _part(series: str) -> tuple[str, str, str] | None:
    """Metric, labels without ``le``, and which part of the histogram: its limit, ``sum`` or ``count``."""
    found = _NAME.match(series)
    if not found:
        return None
    labels = labels_of(series)
    part = labels.pop("le", found["part"])
    return found["name"], _text_of(labels), part


def _text_of(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{labels[name]}"' for name in sorted(labels))


def _notation(series: str, parts: Parts) -> str:
    """The steps as promtool reads them; those that grow evenly as one word, as they stand in the classic ones."""
    limits = sorted((part for part in parts if part not in {"sum", "count"}), key=float)
    steps = max(len(values) for values in parts.values())
    rows = [
        _row(series, limits, [_at(parts, part, step) for part in (*limits, "count", "sum")]) for step in range(steps)
    ]
    words, at = [], 0
    edges = [limit for limit in limits if float(limit) != inf]
    while at < steps:
        row = rows[at]
        if not isinstance(row, list):
            words.append(row)
            at += 1
            continue
        growth = _difference(row, rows[at + 1]) if at + 1 < steps else None
        end = at
        while growth and end + 1 < steps and _alike(_difference(rows[end], rows[end + 1]), growth):
            end += 1
        words.append(_histogram(edges, row))
        if growth and end > at:
            words[-1] += f"+{_histogram(edges, growth)}x{end - at}"
        at = end + 1
    return " ".join(words)


def _at(parts: Parts, part: str, step: int) -> float | None:
    """A count that a test leaves out is its last bucket's; anything else that it leaves out is always 0."""
    values = parts.get(part)
    if values is None:
        values = parts.get("+Inf") if part == "count" else None
    if values is None:
        first = next(iter(parts.values()))
        present = first[step] if step < len(first) else None
        return None if present is None else 0.0 if present == present else present
    return values[step] if step < len(values) else None


def _row(series: str, limits: Sequence[str], values: Sequence[float | None]) -> list[float] | str:
    """Bucket by bucket, not cumulative, then count and sum."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "_"
    if all(value != value for value in numbers):
        return _STALE
    if len(numbers) < len(values) or any(value != value for value in numbers):
        raise ValueError(f"{series}: some of its parts have no value where others have one")
    *cumulative, count, total = numbers
    if "+Inf" in limits and cumulative.pop() != count:
        raise ValueError(f"{series}: {count} operations, but not in its last bucket")
    buckets = [upto - below for below, upto in zip([0.0, *cumulative], [*cumulative, count], strict=False)]
    if min(buckets) < 0:
        raise ValueError(f"{series}: a bucket below the one before it: {cumulative}, {count}")
    return [*buckets, count, total]


def _difference(row: list[float] | str, after: list[float] | str) -> list[float] | None:
    """How much each part grows; ``None`` where one does not, or where there is no sample."""
    if isinstance(row, str) or isinstance(after, str):
        return None
    growth = [new - old for old, new in zip(row, after, strict=True)]
    return growth if min(growth) >= 0 else None


def _alike(growth: list[float] | None, other: list[float]) -> bool:
    return growth is not None and all(
        isclose(one, two, rel_tol=1e-9, abs_tol=1e-12) for one, two in zip(growth, other, strict=True)
    )


def _histogram(limits: Sequence[str], row: Sequence[float]) -> str:
    *buckets, count, total = row
    # promtool refuses an empty list
    edges = f" custom_values:[{' '.join(repr(float(limit)) for limit in limits)}]" if limits else ""
    return f"{{{{schema:-53 count:{count!r} sum:{total!r}{edges} buckets:[{' '.join(map(repr, buckets))}]}}}}"


def _by_limit(case: Mapping[str, Any]) -> bool:
    return any("le" in labels_of(sample["labels"]) for sample in case["exp_samples"])


def _folded(samples: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Expected buckets as one expected histogram; of its sum a classic one says nothing, so it is 0."""
    parts = dict[str, Parts]()
    for sample in samples:
        labels = labels_of(sample["labels"])
        limit = labels.pop("le")
        name = sample["labels"].partition("{")[0]
        parts.setdefault(f"{name}{{{_text_of(labels)}}}", {})[limit] = [float(sample["value"])]
    return [
        # what rules record is no counter
        {"labels": series, "histogram": _notation(series, of).replace("}}", " counter_reset_hint:gauge}}")}
        for series, of in parts.items()
    ]
