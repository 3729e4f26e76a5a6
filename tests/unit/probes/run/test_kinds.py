"""The list of kinds names modules that are loaded only where they are configured."""

import pytest

from plumbline.probes.run import kinds


@pytest.mark.parametrize("name", kinds.KINDS.values())
def test_every_kind_has_its_builder(name: str) -> None:
    builder = kinds._builder(name)
    assert f"plumbline.probes.{name}" == f"{builder.__module__}.{builder.__name__}"
