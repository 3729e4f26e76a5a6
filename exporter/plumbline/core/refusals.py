"""Messages for files that are not ours or not as required."""

from plumbline.errors import FileRefused

# By reason: what is wrong, and what to do.
_WHAT = {
    "changing": ("changes while it is being opened", "stop the program that replaces it"),
    "copies": ("exists too often, numbered", "move some of them away"),
    "links": ("has several names (hard links)", "remove the other names, or move it away"),
    "mode": ("may be written by other users", "chmod go-w, or name another directory"),
    "not-a-regular-file": ("is not a regular file", "move it away, or name another"),
    "not-ours": ("was not made by Plumbline", "move it away"),
    "owner": (
        "belongs to another user",
        "run this as that user, chown it if Plumbline made it, or name another directory",
    ),
    "symlink": ("is a symbolic link", "remove it, or name its target"),
    "too-large": ("is too large", "move it away"),
}


def refused(reason: str, where: str, what: str = "") -> FileRefused:
    """The error for a reason in :data:`_WHAT`; bytes of the name that are not UTF-8 are escaped."""
    usual, advice = _WHAT[reason]
    shown = where.encode("utf-8", "backslashreplace").decode()
    return FileRefused(reason, f"{shown}: {what or usual}; {advice}")


def check_owner(actual: int, where: str, owner: int) -> None:
    if actual != owner:
        raise refused("owner", where, f"belongs to user {actual}, not to user {owner}")
