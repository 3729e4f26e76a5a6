from __future__ import annotations

from collections.abc import Callable

import pytest

from plumbline.capacity import scenarios
from plumbline.errors import ConfigError

DIGITS = "1" * 5000  # more than int() takes


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (scenarios.hosts, f"hdd={DIGITS}"),
        (scenarios.disks, f"hdd={DIGITS}"),
        (scenarios.pool, f"vms={DIGITS}"),
        (scenarios.pool, f"vms=4+{DIGITS}"),
    ],
)
def test_a_number_of_thousands_of_digits_is_one_line(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
