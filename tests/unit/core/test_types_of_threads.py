"""Many threads decode a struct that msgspec does not know yet, again and again (msgspec alone ends at signal 11)."""

import subprocess
import sys

THREADS = """
import sys, threading
from typing import Generic, TypeVar
import msgspec
from plumbline.core.jsontext import convert, decoder

sys.setswitchinterval(1e-6)
T = TypeVar("T")

def once():
    class Row(msgspec.Struct, Generic[T]):
        a: T
        b: list[T]
    class Answer(msgspec.Struct, Generic[T]):
        rows: list[Row[T]]
        first: Row[T] | None = None
    globals().update(Row=Row, Answer=Answer)
    kind, data = Answer[tuple[float, str]], {"rows": [{"a": [1, "2"], "b": [[1, "2"]]}]}
    start, seen = threading.Barrier(8), []
    def work(direct):
        start.wait()
        if direct:
            seen.append(convert(data, kind))
        else:
            seen.append(decoder(kind).decode(msgspec.json.encode(data)))
    threads = [threading.Thread(target=work, args=(each % 2,)) for each in range(8)]
    for each in threads: each.start()
    for each in threads: each.join()
    assert len(seen) == 8 and len({repr(each) for each in seen}) == 1

for _ in range(200): once()
"""


def test_threads_build_a_type_one_at_a_time() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
