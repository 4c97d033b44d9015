import pytest
import tensorflow as tf

from estimator_core.tpu.experimental import EmbeddingConfigSpec

IDS = tf.feature_column.categorical_column_with_identity("id", 10)
COLUMN = tf.compat.v1.tpu.experimental.embedding_column(IDS, 4)
ADAM = tf.tpu.experimental.embedding.Adam(0.1)


class FeatureConfig:
    table_id = "table"


class TableConfig:
    vocabulary_size = 10


COLUMNS = {"feature_columns": [COLUMN]}
FEATURES = {"feature_to_config_dict": {"a": FeatureConfig()}}
TABLES = {"table_to_config_dict": {"b": TableConfig()}}


def test_columns_of_the_tensor_core_are_kept_apart():
    on_tensor_core = tf.compat.v1.tpu.experimental.embedding_column(
        IDS, 4, embedding_lookup_device="tpu_tensor_core", tensor_core_shape=[2, 3]
    )
    plain = tf.feature_column.embedding_column(IDS, 4)
    number = tf.feature_column.numeric_column("number")
    spec = EmbeddingConfigSpec([COLUMN, on_tensor_core, plain, number], ADAM)
    assert spec.feature_columns == [COLUMN, plain, number]
    assert spec.tensor_core_feature_columns == [on_tensor_core]
    assert (spec.partition_strategy, spec.clipping_limit) == ("div", None)


def test_dicts_of_features_and_tables_replace_columns():
    features, tables = {"id": FeatureConfig()}, {"table": TableConfig()}
    spec = EmbeddingConfigSpec(feature_to_config_dict=features, table_to_config_dict=tables)
    assert (spec.feature_to_config_dict, spec.table_to_config_dict) == (features, tables)
    assert spec.feature_columns is spec.tensor_core_feature_columns is None


# The types are those that tf.estimator 2.15 raises.
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "Exactly one"),
        ({"feature_columns": []}, ValueError, "Exactly one"),
        (FEATURES, ValueError, "Exactly one"),
        (TABLES, ValueError, "Exactly one"),
        ({**COLUMNS, **FEATURES, **TABLES}, ValueError, "Exactly one"),
        ({"feature_to_config_dict": {"a": 1}, **TABLES}, TypeError, "FeatureConfig"),
        ({**FEATURES, "table_to_config_dict": {"b": 2}}, TypeError, "TableConfig"),
        (COLUMNS, ValueError, "optimization_parameters"),
        (
            {**COLUMNS, "optimization_parameters": tf.compat.v1.train.AdamOptimizer()},
            ValueError,
            "optimization_parameters",
        ),
        (
            {"feature_columns": [IDS], "optimization_parameters": ADAM},
            TypeError,
            "numeric or embedding columns",
        ),
        (
            {**COLUMNS, "optimization_parameters": ADAM, "partition_strategy": "x"},
            ValueError,
            "partition_strategy",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        EmbeddingConfigSpec(**arguments)
