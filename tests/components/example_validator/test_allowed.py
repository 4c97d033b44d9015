import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.example_validator.allowed import Allowed

SCHEMA = """
feature { name: "fare" type: FLOAT presence { min_fraction: 1 min_count: 1 } }
feature { name: "rare" type: INT presence { min_count: 1 } }
feature { name: "optional" type: BYTES domain: "colors" }
feature { name: "planned" type: BYTES presence { min_count: 1 } lifecycle_stage: PLANNED }
feature { name: "label" type: BYTES presence { min_count: 1 } not_in_environment: "SERVING"
          string_domain { value: "yes" value: "no" } }
feature { name: "served" type: INT presence { min_count: 1 } not_in_environment: "TRAINING" }
string_domain { name: "colors" value: "red" value: "blue" }
"""


@pytest.fixture
def schema():
    return text_format.Parse(SCHEMA, schema_pb2.Schema())


def test_what_a_schema_says_of_columns(schema):
    allowed = Allowed(schema)
    types = [allowed.schema_type(name) for name in ("fare", "rare", "optional", "other")]
    assert types == ["FLOAT", "INT", "BYTES", ""]
    assert allowed.domain_values("optional") == {"red", "blue"}
    assert allowed.domain_values("label") == {"yes", "no"}
    assert allowed.domain_values("fare") == allowed.domain_values("other") == frozenset()


def test_which_columns_data_can_do_without(schema):
    names = ("fare", "rare", "optional", "planned", "label", "served", "other")
    gone = [name for name in names if Allowed(schema).may_be_gone(name)]
    assert gone == ["optional", "planned", "other"]
    schema.default_environment.extend(["TRAINING", "SERVING"])
    gone = [name for name in names if Allowed(schema).may_be_gone(name)]
    assert gone == ["optional", "planned", "served", "other"]


def test_a_schema_that_was_inferred_from_the_data_allows_nothing():
    allowed = Allowed(None)
    assert not allowed.may_be_gone("x")
    assert (allowed.schema_type("x"), allowed.domain_values("x")) == ("", frozenset())
