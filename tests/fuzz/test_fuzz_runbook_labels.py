"""Whatever labels a link has, a runbook's scripts assign words that mean nothing to a shell."""

import re

from hypothesis import given
from hypothesis import strategies as st

from plumbline.pages.runbook_values import _LABELS, filled, usable

SCRIPT = "```sh\n" + "".join(f"{name}=example\n" for name in _LABELS) + "OSD=71\n```\n"
LABELS = sorted({label for labels in _LABELS.values() for label in labels})
TEXT = (
    st.text()
    | st.text("abz09_./:-+@[]$`'\" ;&|", max_size=30)
    | st.builds("http://{}".format, st.text("a./$:&", max_size=20))
)


@given(st.dictionaries(st.sampled_from(LABELS), TEXT))
def test_every_line_assigns_one_plain_word(labels: dict[str, str]) -> None:
    for line in filled(SCRIPT, usable(labels)).splitlines()[1:-1]:
        assert re.fullmatch(r"[A-Z]+=(?!-)[A-Za-z0-9_.:/@+\[\]-]+( *  # from the alert)?", line), line
