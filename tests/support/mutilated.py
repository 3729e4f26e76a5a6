"""Text files spoilt as people, editors and disks spoil them: the same mistakes for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

SCALARS: tuple[bytes, ...] = (
    b"", b"null", b"true", b"0", b"-1", b"1", b".nan", b".inf", b"-.inf", b"1e400", b"9" * 5000,
    b"0x" + b"f" * 5000, b"1:" * 50 + b"1", b"0.1", b"2001-99-99", b"2026-11-22", b"[]", b"{}", b"[[[]]]",
    b"{a: {b: [c]}}", b"'", b'"\\x07"', b"x" * 100_000, b"!!binary '@@@'",
    b"!!python/object/apply:os.system [id]", b"!!timestamp x", b"*nobody", b"&a [*a]", b"|\n  text",
    b"99999999999d", b"1e3s", b"-5s", b"5 parsecs", b"1YiB", b"-1MiB", b"../../../etc", b"/\x00",
    b"/dev/null", b"\xff\xfe", b"\xc3", "\u2028\u00e9".encode(), b"((((((((((", b"a{99999999999}",
    b"(?P<a>.)(?P<a>.)", b"randwrite-4k-qd1-j1", b"127.0.0.1:99999", b"[::1", b"NO", b"~", b"<<", b"? [a]",
    b"\t", b"#", b"%YAML 9.9", b"---", b"...",
)  # fmt: skip
"""What is put where a value stood, and between other bytes."""


def alias_bomb(levels: int = 9, width: int = 9) -> str:
    """``width ** levels`` values in a few lines of YAML: "a billion laughs"."""
    rows = [f"- &a0 [{', '.join(['lol'] * width)}]"]
    rows += [f"- &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(rows) + "\n"


def merge_bomb(levels: int = 8, width: int = 9) -> str:
    """The same by merge keys."""
    rows = [f"a0: &a0 {{{', '.join(f'k{index}: 1' for index in range(width))}}}"]
    rows += [f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(rows) + "\n"


BOMBS: Mapping[str, str] = {
    "aliases of aliases": alias_bomb(),
    "aliases as a value": "storage_path:\n" + alias_bomb(),
    "aliases as probes": "probes:\n" + alias_bomb(),
    "merge keys": merge_bomb(),
    "brackets": "[" * 100_000,
    "braces": "{a: " * 100_000,
    "dashes": "- " * 100_000 + "x",
    "indentation": "".join(" " * level + "a:\n" for level in range(2000)),
    "an alias of itself": "probes: &a [*a]\n",
    "a number of 50,000 digits": f"web: {{max_requests: 0x{'f' * 41_524}}}\n",
    "a list of a million": f"storage_path: [{'x,' * 1_000_000}]\n",
    "a line of 8 MiB": f"storage_path: '{'x' * (8 << 20)}'\n",
    "nested expressions": f"devices: {{disk_exclude: '{'(' * 5000}'}}\n",
    "documents": "---\n{}\n" * 1000,
    "tabs": "web:\n\tlisten_address: x\n",
    "a NUL": "web: \x00\n",
}
"""Small files (or one long line) that cost a careless reader seconds, gigabytes or its life."""


def mutilated(original: bytes, *, seed: int, count: int) -> Iterator[bytes]:
    """``count`` spoilt versions of a text file."""
    chance = random.Random(seed)
    for _ in range(count):
        lines = original.split(b"\n")
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            _spoil(lines, chance)
        text = b"\n".join(lines)
        if chance.random() < 0.1:
            text = text[: chance.randrange(len(text) + 1)]
        yield text


def _spoil(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    line, nasty = lines[at], chance.choice(SCALARS)
    match chance.randrange(9):
        case 0:
            del lines[at]
            lines.append(b"")
        case 1:
            lines.insert(chance.randrange(len(lines)), line)
        case 2:
            lines[at] = b" " * chance.randrange(9) + line.lstrip()
        case 3:
            lines[at] = line.replace(b"  ", b"\t", 1)
        case 4:
            here = chance.randrange(len(line) + 1)
            lines[at] = line[:here] + nasty + line[here:]
        case 5:
            lines.insert(at, nasty)
        case _:  # the mistake that gets farthest: another value
            name, colon, _ = line.partition(b": ")
            lines[at] = name + colon + nasty if colon else line[: len(line) - len(line.lstrip())] + b"- " + nasty
