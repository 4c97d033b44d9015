"""A `Schema` proto in text format, which people read and edit."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from components.nearest import nearest_first
from pipelines.atomic_files import read_small
from pipelines.errors import BadInputError

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0.schema_pb2 import Schema


def parse_schema(content: bytes, where: str, fix: str) -> "Schema":
    """Parses the schema in a file."""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    try:
        text = content.decode("utf-8")
        schema = text_format.Parse(text, schema_pb2.Schema())
    except UnicodeDecodeError as error:
        raise BadInputError(f"{where} is not a Schema as text ({error}). {fix}") from error
    except text_format.ParseError as error:
        raise BadInputError(f"{where} is not a Schema as text ({_place(text, error)}). {fix}") from error
    for name, count in Counter(feature.name for feature in schema.feature).items():
        if count > 1:
            raise BadInputError(f"{where}: the feature {name!r} appears {count} times. Keep one.")
    domains = [domain.name for domain in schema.string_domain]
    for feature in schema.feature:
        if feature.domain and feature.domain not in domains:
            raise BadInputError(
                f"{where}: the feature {feature.name!r} has domain: {feature.domain!r}, but there is no such "
                f"string_domain. Existing: {', '.join(nearest_first(feature.domain, domains)) or 'none'}."
            )
    return schema


def schema_text(schema: "Schema", *comments: str) -> str:
    """Returns a schema as the content of a file."""
    from google.protobuf import text_format

    return "".join(f"# {line}\n" for line in comments) + text_format.MessageToString(schema, as_utf8=True)


def read_bytes(file: Path) -> bytes:
    try:
        return read_small(file, "a schema")
    except OSError as error:
        raise BadInputError(f"{file} cannot be read: {error.strerror}.") from error


def _place(text: str, error: Exception) -> str:
    """Returns line and column of an error, its reason, and the line itself."""
    match = re.match(r"(\d+):(\d+) : (.*)", str(error), re.DOTALL)
    if match is None:
        return str(error)
    line, column, reason = int(match[1]), int(match[2]), match[3].strip()
    lines = text.splitlines()
    shown = f"; the line is: {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
    # The parser repeats the line that it quotes.
    reason = re.sub(r"^'.*?': ", "", reason)
    return f"line {line}, column {column}: {reason.rstrip('.')}{shown}"


_WITHOUT_DOMAIN = ("number", "date", "id", "text")
"""Kinds of columns whose values are not categories, even if they are few."""


def schema_to_keep(
    inferred: "Schema",
    kinds: Mapping[str, str],
    label: str,
    classes: Sequence[str] = (),
    moving: Collection[str] = (),
) -> "Schema":
    """Returns the schema that later data are validated against.

    Only categories keep a domain: each day has new dates, and text may have few different values by
    chance. A column without values is marked as planned: it fits any data. Any share of missing values
    fits a column that had some: the shares are compared with those of other data.

    `classes`: classes of a classification; whole numbers become the domain of the label.
    """
    from tensorflow_metadata.proto.v0 import schema_pb2

    schema = schema_pb2.Schema()
    schema.CopyFrom(inferred)
    for feature in schema.feature:
        is_category = kinds.get(feature.name) not in _WITHOUT_DOMAIN or (
            feature.name == label and bool(classes)
        )
        if kinds.get(feature.name) == "empty":
            feature.lifecycle_stage = schema_pb2.PLANNED
        if feature.type == schema_pb2.INT and feature.HasField("bool_domain"):
            feature.ClearField("bool_domain")  # 0 and 1 may be counts
        if feature.presence.min_fraction < 1:
            feature.presence.ClearField("min_fraction")
        if not is_category or feature.name in moving:
            _remove_domain(schema, feature)
    for feature in schema.feature:
        numbers = [int(name) for name in classes if re.fullmatch(r"-?\d+", name)]
        if feature.name == label and feature.type == schema_pb2.INT and numbers:
            domain = feature.int_domain
            domain.min, domain.max, domain.is_categorical = min(numbers), max(numbers), True
    return schema


def _remove_domain(schema: "Schema", feature: "Schema.feature") -> None:
    name = feature.domain
    kind = feature.WhichOneof("domain_info")
    if kind:
        feature.ClearField(kind)
    if name and all(other.domain != name for other in schema.feature):
        kept = [domain for domain in schema.string_domain if domain.name != name]
        del schema.string_domain[:]
        schema.string_domain.extend(kept)
