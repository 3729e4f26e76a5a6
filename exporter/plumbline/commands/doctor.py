"""``plumbline doctor``: is everything in place after an installation, and what mends what is missing.

Exit codes: 0 nothing is missing, 1 something is, 2 wrong usage. What was not asked counts as neither and is shown.
"""

import argparse
import os
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from plumbline.commands import shared
from plumbline.commands.doctor_daemon import (
    Answer,
    State,
    address_of,
    ask_baseline,
    ask_ceph,
    ask_daemon,
)
from plumbline.commands.doctor_prometheus import Server, ask_prometheus, not_asked
from plumbline.commands.node import this_node
from plumbline.commands.shared import complain, positive_duration, show
from plumbline.core.console import line, table
from plumbline.errors import PlumblineError
from plumbline.sources.kernel.installation import read_installation
from plumbline.sources.prometheus.access import Access

_STYLE = {State.WELL: "green", State.MISSING: "bold red", State.NOT_ASKED: "dim"}
_WRAPS = {"Question": 16, "Answer": 16, "What to do": 16}  # A question kept whole leaves an answer three letters of 80
_WRONG_USAGE = 2


def run(options: argparse.Namespace) -> int:
    try:
        timeout_s = positive_duration(options.timeout, "--timeout")
        prometheus_access = shared.access(options)
        daemon_access = shared.daemon_access(options)
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return _WRONG_USAGE
    answers = ask(options, timeout_s, prometheus_access, daemon_access)
    missing = sum(answer.state is State.MISSING for answer in answers)
    show(options, {"answers": answers, "missing": missing}, lambda console: draw(console, answers))
    return 1 if missing else 0


def ask(
    options: argparse.Namespace, timeout_s: float, prometheus_access: Access, daemon_access: Access
) -> list[Answer]:
    """All questions, in the order in which what is missing should be mended."""
    try:
        node = this_node(options)
        url = options.daemon or address_of(node.config)
    except PlumblineError as error:
        mend = "plumbline config check FILE"
        return [Answer("is the configuration good", State.MISSING, str(error), mend)]
    answers, page = ask_daemon(
        url.rstrip("/"),
        timeout_s=timeout_s,
        access=daemon_access,
        installation=read_installation(node.roots, environment=os.environ),
    )
    if options.prometheus is None:
        answers += not_asked()
    else:
        answers += ask_prometheus(Server(options.prometheus, timeout_s, prometheus_access, url), page)
    if page is not None:
        answers.append(ask_baseline(page))
    return [*answers, ask_ceph(node)]


def draw(console: Console, answers: Sequence[Answer]) -> None:
    """The table, then how many answers are of each state."""
    rows = [
        (Text(answer.state.value, _STYLE[answer.state]), answer.question, answer.says, answer.mend)
        for answer in answers
    ]
    table(console, ("State", "Question", "Answer", "What to do"), rows, wraps=_WRAPS)
    counts = {state: sum(answer.state is state for answer in answers) for state in State}
    line(console, ", ".join(f"{count} {state.value}" for state, count in counts.items() if count))
