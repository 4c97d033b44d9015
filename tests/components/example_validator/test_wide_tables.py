import pandas as pd
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import schema_pb2

from components.example_validator import validation


@pytest.fixture
def data():
    """Returns the statistics of nine columns, and a schema that they do not fit."""
    columns = {f"n{index}": [1.0, 2.0, None] for index in range(6)}
    columns |= {f"c{index}": ["a", "b", "c"] for index in range(3)}
    statistics = tfdv.generate_statistics_from_dataframe(pd.DataFrame(columns))
    schema = tfdv.infer_schema(statistics)
    schema.feature[1].type = schema_pb2.INT
    schema.feature[4].presence.min_fraction = 1.0
    schema.feature.add(name="gone", type=schema_pb2.FLOAT).presence.min_count = 1
    del schema.feature[0]
    for domain in schema.string_domain[1:]:
        del domain.value[2:]
    schema.dataset_constraints.min_examples_count = 100
    return statistics, schema


def test_the_anomalies_of_parts_are_those_of_all_columns_together(monkeypatch, data):
    whole = tfdv.validate_statistics(*data)
    assert {"n0", "n1", "n4", "gone", "c1"} <= set(whole.anomaly_info)
    assert whole.dataset_anomaly_info.reason
    monkeypatch.setattr(validation, "_PART_SIZE", 2)
    assert validation._validate_in_parts(*data, None) == whole


def test_tfdv_never_sees_more_columns_than_a_part_has(monkeypatch, data):
    sizes = []

    def counted(statistics, schema, environment=None):
        sizes.append((len(statistics.datasets[0].features), len(schema.feature)))
        return validate(statistics, schema, environment)

    validate = tfdv.validate_statistics
    monkeypatch.setattr(tfdv, "validate_statistics", counted)
    monkeypatch.setattr(validation, "_PART_SIZE", 4)
    validation.validate(*data)
    assert len(sizes) == 3
    assert max(max(size) for size in sizes) == 4
