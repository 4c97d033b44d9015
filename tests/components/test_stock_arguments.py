"""Our constructors take the arguments of TFX's own: of the installed release, and of 1.0 and 1.15.

Those of earlier releases were read from their wheels, by stock_arguments/make.py.
"""

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

import components

EARLIER = json.loads((Path(__file__).parent / "stock_arguments" / "arguments.json").read_text())
MODULES = {name: re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in EARLIER["1.0.0"]}
MODULES["CsvExampleGen"] = "example_gen.csv_example_gen"
INSTALLED = {**MODULES, "ImportSchemaGen": "schema_gen.import_schema_gen"}


def arguments(function):
    return list(inspect.signature(function).parameters)[1:]


@pytest.mark.parametrize("name", INSTALLED)
def test_it_takes_what_the_installed_release_takes(name):
    stock = getattr(importlib.import_module(f"tfx.components.{INSTALLED[name]}.component"), name)
    assert stock.__module__.startswith("tfx.")  # install() holds for the whole process
    assert {*arguments(stock.__init__)} <= {*arguments(getattr(components, name).__init__)}


@pytest.mark.parametrize("version", EARLIER)
@pytest.mark.parametrize("name", MODULES)
def test_it_takes_what_earlier_releases_took_in_the_same_order(name, version):
    expected = EARLIER[version][name]
    assert arguments(getattr(components, name).__init__)[: len(expected)] == expected
