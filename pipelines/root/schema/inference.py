"""Reduces an inferred schema to the parts that are kept as the root's."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0.schema_pb2 import Schema

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
