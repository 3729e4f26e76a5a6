from __future__ import annotations

from collections.abc import Callable

import pytest

from plumbline.capacity import asked
from plumbline.errors import ConfigError

DIGITS = "1" * 5000  # more than int() takes


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (asked.hosts, f"hdd={DIGITS}"),
        (asked.disks, f"hdd={DIGITS}"),
        (asked.pool, f"vms={DIGITS}"),
        (asked.pool, f"vms=4+{DIGITS}"),
    ],
)
def test_a_number_of_thousands_of_digits_is_one_line(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
