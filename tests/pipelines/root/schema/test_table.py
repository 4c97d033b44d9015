from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipelines.root.schema.table import describe_changes, schema_columns, schema_json, schema_lines

SCHEMA = """
feature { name: "fare" type: FLOAT presence { min_fraction: 1 min_count: 1 } float_domain { min: 0.5 } }
feature { name: "rare" type: INT presence { min_count: 1 } int_domain { min: -1 max: 12 } }
feature { name: "city" type: BYTES domain: "city" presence { min_fraction: 0.95 min_count: 1 } }
feature { name: "note" type: BYTES }
feature { name: "later" type: BYTES lifecycle_stage: PLANNED }
string_domain { name: "city" value: "c" value: "a" value: "b" value: "d" value: "e" value: "f" value: "g" }
"""


def schema(text=SCHEMA):
    return text_format.Parse(text, schema_pb2.Schema())


def test_the_table_has_a_line_for_each_column_and_json_all_values():
    assert schema_lines(schema_columns(schema())) == [
        "column  type   present                   values",
        "fare    FLOAT  required                  at least 0.5",
        "rare    INT    some rows                 -1 to 12",
        "city    BYTES  at least 95.000% of rows  'a', 'b', 'c', 'd', 'e', 'f' and 1 more",
        "note    BYTES  optional",
        "later   any    optional",
    ]
    city = schema_json(schema_columns(schema()))[2]
    assert city["domain"] == ["a", "b", "c", "d", "e", "f", "g"]
    assert (city["name"], city["type"]) == ("city", "BYTES")


def test_changes_line_by_line():
    after = schema(
        SCHEMA.replace('"note" type: BYTES', '"new" type: INT')
        .replace("type: FLOAT", "type: INT")
        .replace("min: 0.5", "max: 9")
        .replace('value: "g"', 'value: "g" value: "h" value: "i"')
        .replace("min_count: 1 } int_domain { min: -1", "min_count: 0 } int_domain { min: -1")
    )
    assert describe_changes(schema(), after) == [
        "- column 'note' (BYTES)",
        "~ column 'fare': type FLOAT -> INT; values at least 0.5 -> at most 9",
        "~ column 'rare': present some rows -> optional",
        "~ column 'city': new values 'h', 'i'",
        "+ column 'new': INT, optional",
    ]
    assert describe_changes(schema(), schema()) == []
    after = schema(
        SCHEMA.replace('type: BYTES domain: "city"', "type: BYTES").replace(
            '"note" type: BYTES', '"note" type: BYTES value_count { min: 1 }'
        )
    )
    assert describe_changes(schema(), after) == [
        "~ column 'city': any value",
        "~ column 'note': other conditions (see the file)",
    ]
