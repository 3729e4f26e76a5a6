"""Escaping of untrusted names (devices, images, files), so that they can't steer a terminal or forge a log line."""


def visible(text: str) -> str:
    r"""Escape characters that are not printable (``\x1b``, ``\u202e``); the rest stays."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def excerpt(text: str, most: int = 300) -> str:
    """The beginning of a tool's output for a message: escaped, at most ``most`` characters."""
    return visible(text[:most])[:most]


def visible_json(text: str) -> str:
    """The same JSON in lines, with characters that are not printable as its own escapes (``\\u009b``)."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _json_escape(char) for char in text)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
