"""Escaping of untrusted names (devices, images, files), so that they can't steer a terminal or forge a log line."""

from plumbline.errors import visible

__all__ = ["excerpt", "visible"]


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
