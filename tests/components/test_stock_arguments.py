"""Our constructors take the arguments of TFX's own: of the installed release, and of 1.0 and 1.15."""

import importlib
import inspect
import json

import pytest

import components
from tests.components.stock_arguments.make import JSON, MODULES

INSTALLED = {**MODULES, "ImportSchemaGen": "schema_gen.import_schema_gen"}
EARLIER = json.loads(JSON.read_text())


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
