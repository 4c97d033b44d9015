"""A schema that the user maintains in a file."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components.nearest import nearest_first
from pipelines.atomic_files import read_small
from pipelines.data.byte_checks import readable
from pipelines.data.column_profile import ColumnType
from pipelines.data.profile import CsvProfile
from pipelines.errors import BadInputError
from pipelines.root.schema.text import parse_schema

_TYPE_NAMES: dict[ColumnType, str] = {
    "integer": "INT",
    "float": "FLOAT",
    "boolean": "BYTES",
    "string": "BYTES",
}
"""Type that CsvExampleGen gives a column; a column without values fits any type."""


@dataclass(frozen=True)
class CuratedSchema:
    """A schema file that was checked."""

    file: Path
    fingerprint: str  # Hash of its contents


def read_curated_schema(
    path: str, profile: CsvProfile, used: Sequence[str] = (), text_columns: Sequence[str] = ()
) -> CuratedSchema:
    """Returns the schema at `schema.path`, checked against the data."""
    from tensorflow_metadata.proto.v0 import schema_pb2

    with readable(path, "schema.path"):
        file = Path(path).resolve()
        content = read_small(file, "a schema")
    schema = parse_schema(content, f"schema.path = {path!r}", "SchemaGen writes such a file, schema.pbtxt.")
    features = {feature.name: feature for feature in schema.feature}
    for name in used:
        if name not in features:
            raise BadInputError(
                f"schema.path = {path!r}: the schema lacks the column {name!r} of the data. "
                f"Its features: {', '.join(nearest_first(name, features)[:30]) or 'none'}."
            )
    for name, feature in features.items():
        column = profile.columns.get(name)
        expected = _TYPE_NAMES.get(column.type) if column else None
        if expected and name in text_columns:
            expected = "BYTES"
        schema_type = schema_pb2.FeatureType.Name(feature.type)
        if expected and schema_type != expected:
            raise BadInputError(
                f"schema.path = {path!r}: the column {name!r} is {schema_type} in the schema and {expected} "
                f"in the data. Change the schema or the data."
            )
    return CuratedSchema(file, hashlib.sha256(content).hexdigest())
