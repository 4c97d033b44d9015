"""Our constructors take the arguments of TFX's own: of the installed release, and of 1.0 and 1.15."""

import importlib
import inspect
from collections.abc import Callable

import pytest

import components

MODULES = {
    "CsvExampleGen": "example_gen.csv_example_gen",
    "StatisticsGen": "statistics_gen",
    "ImportSchemaGen": "schema_gen.import_schema_gen",
    "ExampleValidator": "example_validator",
    "Transform": "transform",
    "Trainer": "trainer",
    "Evaluator": "evaluator",
    "InfraValidator": "infra_validator",
    "Pusher": "pusher",
}
# Arguments of TFX 1.0 or 1.15 that a later release has dropped.
DROPPED = {"Trainer": {"trainer_fn"}, "ExampleValidator": {"custom_validation_config"}}


def arguments(function: Callable[..., object]) -> set[str]:
    return {*inspect.signature(function).parameters}


@pytest.mark.parametrize("name", MODULES)
def test_it_takes_what_stock_takes(name: str) -> None:
    stock = getattr(importlib.import_module(f"tfx.components.{MODULES[name]}.component"), name)
    assert stock.__module__.startswith("tfx.")  # install() holds for the whole process
    expected = arguments(stock.__init__) | DROPPED.get(name, set())
    assert expected <= arguments(getattr(components, name).__init__)
