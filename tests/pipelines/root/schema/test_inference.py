from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipelines.root.schema.text import schema_to_keep

INFERRED = """
feature { name: "day" type: BYTES domain: "day" }
feature { name: "city" type: BYTES domain: "city" presence { min_fraction: 0.9 min_count: 1 } }
feature { name: "price" type: BYTES domain: "price" }
feature { name: "flag" type: INT bool_domain { } presence { min_fraction: 1 min_count: 1 } }
feature { name: "y" type: INT bool_domain { } }
feature { name: "gone" type: BYTES presence { min_count: 0 } }
feature { name: "counter" type: BYTES domain: "counter" }
string_domain { name: "day" value: "2014-03-01" }
string_domain { name: "city" value: "a" }
string_domain { name: "price" value: "$3" }
string_domain { name: "counter" value: "x" }
"""
KINDS = {
    "day": "date", "city": "category", "price": "number", "flag": "number", "y": "number", "gone": "empty",
    "counter": "category",
}  # fmt: skip


def keep(**settings):
    inferred = text_format.Parse(INFERRED, schema_pb2.Schema())
    schema = schema_to_keep(inferred, KINDS, "y", **settings)
    assert inferred == text_format.Parse(INFERRED, schema_pb2.Schema())
    return {feature.name: feature for feature in schema.feature}, schema


def test_domains_are_left_to_categories_and_are_the_classes_of_a_label():
    features, schema = keep(moving=["counter"])
    assert [domain.name for domain in schema.string_domain] == ["city"]
    assert [name for name, item in features.items() if item.WhichOneof("domain_info")] == ["city"]
    features, _ = keep(classes=("0", "1", "3"))
    domain = features["y"].int_domain
    assert (domain.min, domain.max, domain.is_categorical) == (0, 3, True)
    features, _ = keep(classes=("no", "yes"))
    assert not features["y"].HasField("int_domain")


def test_presence_and_stage_of_columns_with_few_values():
    features, _ = keep()
    assert features["flag"].presence.min_fraction == 1
    assert not features["city"].presence.HasField("min_fraction")
    assert features["city"].presence.min_count == 1
    planned = [name for name, item in features.items() if item.lifecycle_stage]
    assert planned == ["gone"]
    assert features["gone"].lifecycle_stage == schema_pb2.PLANNED
