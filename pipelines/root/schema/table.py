"""Shows a schema, and the differences between two schemas, column by column."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from components.example_validator.allowed import Allowed

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0.schema_pb2 import Feature, Schema

_HEADER = ("column", "type", "present", "values")
_MAX_VALUES = 6


@dataclass(frozen=True)
class SchemaColumn:
    name: str
    type: str  # `INT`, `FLOAT` or `BYTES`; `any` for a column without values so far
    present: str  # Share of rows with a value, as text
    values: str  # Allowed values, as text; empty if any value is allowed
    domain: tuple[str, ...] = ()


def schema_columns(schema: "Schema") -> list[SchemaColumn]:
    allowed = Allowed(schema)
    columns = []
    for feature in schema.feature:
        domain = tuple(sorted(allowed.domain_values(feature.name)))
        columns.append(
            SchemaColumn(
                feature.name,
                "any" if feature.lifecycle_stage else allowed.schema_type(feature.name) or "any",
                _presence(feature, allowed),
                _listed(domain) or _bounds(feature),
                domain,
            )
        )
    return columns


def schema_lines(columns: list[SchemaColumn]) -> list[str]:
    """Returns the columns as a table; the first line is the header."""
    cells = [_HEADER, *((item.name, item.type, item.present, item.values) for item in columns)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(_HEADER))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def schema_json(columns: list[SchemaColumn]) -> list[dict[str, Any]]:
    """Returns the columns as `schema show --json` prints them."""
    return [{**asdict(column), "domain": list(column.domain)} for column in columns]


def describe_changes(before: "Schema", after: "Schema") -> list[str]:
    """Returns the differences of the second schema from the first, one line for each column."""
    was = {column.name: column for column in schema_columns(before)}
    is_now = {column.name: column for column in schema_columns(after)}
    texts = {
        name: {feature.name: str(feature) for feature in schema.feature}
        for name, schema in (("before", before), ("after", after))
    }
    lines = [f"- column {name!r} ({was[name].type})" for name in was if name not in is_now]
    for name, column in is_now.items():
        if name not in was:
            values = f", values {column.values}" if column.values else ""
            lines.append(f"+ column {name!r}: {column.type}, {column.present}{values}")
            continue
        changes = _changes(was[name], column)
        if not changes and texts["before"][name] != texts["after"][name]:
            changes = ["other conditions (see the file)"]
        if changes:
            lines.append(f"~ column {name!r}: {'; '.join(changes)}")
    return lines


def _changes(was: SchemaColumn, is_now: SchemaColumn) -> list[str]:
    changes = [
        f"{what} {before or 'not there'} -> {now or 'not there'}"
        for what, before, now in (("type", was.type, is_now.type), ("present", was.present, is_now.present))
        if before != now
    ]
    added = tuple(value for value in is_now.domain if value not in was.domain)
    if was.domain and not is_now.domain:
        changes.append("any value")
    elif added:
        changes.append(f"new values {_listed(added)}")
    elif not is_now.domain and was.values != is_now.values:
        changes.append(f"values {was.values or 'any'} -> {is_now.values or 'any'}")
    return changes


def _presence(feature: "Feature", allowed: Allowed) -> str:
    presence = feature.presence
    if allowed.may_be_gone(feature.name):
        return "optional"
    if presence.min_fraction >= 1:
        return "required"
    return f"at least {presence.min_fraction:.3%} of rows" if presence.min_fraction else "some rows"


def _bounds(feature: "Feature") -> str:
    kind = feature.WhichOneof("domain_info") or ""
    if kind not in ("int_domain", "float_domain"):
        return "true, false" if kind == "bool_domain" else ""
    domain = getattr(feature, kind)
    low, high = (f"{getattr(domain, name):g}" if domain.HasField(name) else "" for name in ("min", "max"))
    if low and high:
        return f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else ""


def _listed(values: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, values[:_MAX_VALUES]))
    more = len(values) - _MAX_VALUES
    return f"{shown} and {more} more" if more > 0 else shown
