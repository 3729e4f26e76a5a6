"""Pages from Jinja templates and one style sheet: all text is escaped, and an undefined name is an error.

The templates are in ``templates/`` and extend ``base.html``. Line breaks in a template, and the indentation after them,
never reach the page. Jinja is loaded with the first page, because a daemon that is only scraped does not need it.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

_FILES = resources.files("plumbline.pages")
_HEADING = re.compile(r"^/\* --- (\w+) --- \*/\n", re.MULTILINE)
_TAG_OR_BREAK = re.compile(r"(\{[{%#].*?[}%#]\})|\n[ \t]*", re.DOTALL)


def render(template: str, **values: object) -> str:
    """The page. ``template``: its path below ``templates/``; ``values``: the names it may use. All text is escaped;
    ``markupsafe.Markup`` and objects with ``__html__`` are inserted as HTML."""
    return environment().get_template(template).render(**values)


@functools.cache
def environment() -> jinja2.Environment:
    """One environment for all pages, because it caches the compiled templates."""
    import jinja2  # noqa: PLC0415  (0.2 s of CPU and 4 MB, for pages only)
    from markupsafe import Markup  # noqa: PLC0415

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source), autoescape=True, undefined=jinja2.StrictUndefined, auto_reload=False
    )
    made.globals["style"] = lambda *names: Markup(style(*names))  # noqa: S704  (our own file)
    return made


def _source(template: str) -> str | None:
    """A template's text with each line break inside a comment: it is not output, but errors give the right line."""
    path = _FILES.joinpath("templates", template)
    if not path.is_file():
        return None
    return _TAG_OR_BREAK.sub(lambda name: name[1] or "{#\n#}", path.read_text("utf-8"))


@functools.cache
def style(*names: str) -> str:
    """``base`` and the named parts of ``style.css`` (``status``, ``report``, ``review``, ``runbook``), unchanged.
    ``KeyError``: unknown part."""
    _, *split = _HEADING.split(_FILES.joinpath("style.css").read_text("utf-8"))
    parts = dict(zip(split[::2], split[1::2], strict=True))
    return "".join(parts[name] for name in ("base", *names))
