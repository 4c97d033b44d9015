"""Data that a schema allows, if it was not inferred from the data themselves."""

from tensorflow_metadata.proto.v0 import schema_pb2

TRAINING = "TRAINING"
"""The environment of a pipeline's data, if it is among the schema's default environments."""

_NOT_CHECKED = (
    schema_pb2.DEPRECATED, schema_pb2.DISABLED, schema_pb2.PLANNED, schema_pb2.ALPHA, schema_pb2.DEBUG_ONLY,
)  # fmt: skip


class Allowed:
    """The columns, types and values that a schema allows; nothing if it was inferred from the data (None)."""

    def __init__(self, schema: schema_pb2.Schema | None):
        self._is_given = schema is not None
        self._schema = schema or schema_pb2.Schema()
        self._features = {feature.name: feature for feature in self._schema.feature}

    def schema_type(self, name: str) -> str:
        """Returns the type of a column, `INT`, `FLOAT` or `BYTES`; empty if the schema does not name one."""
        feature = self._features.get(name)
        return schema_pb2.FeatureType.Name(feature.type) if feature and feature.type else ""

    def may_be_gone(self, name: str) -> bool:
        """Returns True if the schema allows data without a column."""
        if not self._is_given:
            return False
        feature = self._features.get(name)
        if feature is None or feature.lifecycle_stage in _NOT_CHECKED:
            return True
        if TRAINING in self._schema.default_environment and (TRAINING in feature.not_in_environment):
            return True
        presence = feature.presence
        return not presence.min_count and not presence.min_fraction

    def domain_values(self, name: str) -> frozenset[str]:
        """Returns the values in the domain of a column of text, if it has one."""
        feature = self._features.get(name)
        if feature is None:
            return frozenset()
        domains = {domain.name: domain for domain in self._schema.string_domain}
        domain = domains.get(feature.domain) if feature.domain else feature.string_domain
        return frozenset(domain.value) if domain else frozenset()
