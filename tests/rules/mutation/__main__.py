"""``make mutate-rules``: every small mistake in every rule against the promtool tests; exit 1 where one survives.

Arguments: names of rules (all without), ``--except REGEX``, ``--sample N --seed S`` for some mutants of any rules.
``equivalent.yaml`` beside this file lists the mutants that no test can tell from the rule, each with its reason.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.mutants import Mutant
from support.mutation import HarnessError, Suite, survivors
from support.rulefiles import load

EQUIVALENT = Path(__file__).with_name("equivalent.yaml")


def equivalent() -> dict[str, str]:
    """Label of a mutant → why it is no mistake."""
    listed: dict[str, str] = load(EQUIVALENT)
    return listed


def chosen(suite: Suite, names: Sequence[str], sample: int | None, seed: int) -> dict[str, list[Mutant]]:
    """The mutants to run, by the name of their rule."""
    everything = {name: suite.mutants(name) for name in names}
    if sample is not None:
        drawn = random.Random(seed).sample([m for of in everything.values() for m in of], sample)
        everything = {name: [m for m in drawn if m.name == name] for name in names}
    return {name: of for name, of in everything.items() if of}


def main(argv: list[str]) -> int:
    """Exit status: 0 all noticed, 1 survivors or stale entries of the list, 2 a name that is no rule's."""
    parser = argparse.ArgumentParser(prog="mutate-rules", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="rules: alerts or recorded metrics (default: all)")
    parser.add_argument("--except", dest="without", default="$^", help="leave out rules whose name this matches")
    parser.add_argument("--sample", type=int, help="only this many mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="rules at a time (default: 2)")
    arguments = parser.parse_args(argv)
    suite = Suite.read()
    if unknown := set(arguments.names) - set(suite.rules.names()):
        print(f"mutate-rules: no rule is called {sorted(unknown)[0]}", file=sys.stderr)
        return 2
    names = [n for n in arguments.names or suite.rules.names() if not re.search(arguments.without, n)]
    work = chosen(suite, names, arguments.sample, arguments.seed)
    known = equivalent()

    def run(name: str) -> tuple[str, list[Mutant] | HarnessError, float]:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="plumbline-mutants-") as folder:
            try:
                return name, survivors(suite, work[name], Path(folder)), time.monotonic() - begun
            except HarnessError as error:
                return name, error, time.monotonic() - begun

    bad = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, alive, took_s in pool.map(run, work):
            if isinstance(alive, HarnessError):
                bad += 1
                print(f"{name}: the unchanged rule fails: {alive}", flush=True)
                continue
            new = [mutant for mutant in alive if mutant.label not in known]
            bad += len(new)
            print(f"{name}: {len(work[name])} mutants, {len(alive)} survive, {len(new)} unexplained, {took_s:.0f} s",
                  flush=True)  # fmt: skip
            for mutant in new:
                print(f"  SURVIVES {mutant.label}", flush=True)
    labels = {mutant.label for name in suite.rules.names() for mutant in suite.mutants(name)}
    for label in sorted(known.keys() - labels):
        bad += 1
        print(f"equivalent.yaml: no such mutant any more: {label}")
    print(f"{sum(len(of) for of in work.values())} mutants of {len(work)} rules: {bad or 'nothing'} to mend")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
