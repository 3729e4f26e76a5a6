"""The list of collectors against the modules it is made of."""

import importlib
import pkgutil

from plumbline import collectors
from plumbline.collectors.registry import COLLECTORS
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import MetricSpec


def test_every_collector_of_a_module_is_listed_and_every_spec_belongs_to_one() -> None:
    modules = [
        importlib.import_module(f"plumbline.collectors.{each.name}")
        for each in pkgutil.iter_modules(collectors.__path__)
    ]
    members = [member for module in modules for member in vars(module).values()]
    assert {each.name for each in members if isinstance(each, Collector)} == {each.name for each in COLLECTORS}
    specs = {spec.name for each in COLLECTORS for spec in each.specs}
    assert {each.name for each in members if isinstance(each, MetricSpec)} == specs
