"""The commands of docs/container.md, for whoever runs them: ``make test-platforms`` here, ``make lab`` in a guest."""

from __future__ import annotations

from collections.abc import Callable

from .page_commands import Page, flags

PAGE = Page.of("docs/container.md")
NAME, STATE = "plumbline", "plumbline:/var/lib/plumbline:U"


def image() -> str:
    """The image's name, as it is built and started."""
    return PAGE.commands("podman run")[0][-1]


def run(*more: str, exists: Callable[[str], bool], state: str = STATE) -> list[str]:
    """The page's ``podman run`` with the flags of a row and another use of the volume. It mounts only what ``exists``:
    a machine may have no udev, or no Ceph."""
    (argv,) = PAGE.commands("podman run")
    name = argv.pop()
    for at in [number for number, word in enumerate(argv) if word == "-v"][::-1]:
        if argv[at + 1] == STATE:
            argv[at + 1] = state
        elif not exists(argv[at + 1].partition(":")[0]):
            del argv[at : at + 2]
    return [*argv, *more, name]


def row(purpose: str) -> list[str]:
    """The flags of a row; what was tried with it is a table further down."""
    return flags(Page(PAGE.text.partition("\n## What was tried\n")[0]).row(purpose))


def owned(owner: str) -> list[str]:
    """The page's ``docker run`` that gives the stopped container's state to ``owner``, with podman."""
    (argv,) = PAGE.commands("docker run")
    return ["podman", *(owner if word == "0:0" else word for word in argv[1:])]
