import re

import numpy as np
import pandas
import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics.stats_impl import generate_statistics_in_memory
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx_bsl.coders import example_coder

from components.example_gen.example_encoder import serialize
from components.example_validator.validation import DriftLimits, validate
from components.parsed_columns import add_reading

ERROR, WARNING = anomalies_pb2.AnomalyInfo.ERROR, anomalies_pb2.AnomalyInfo.WARNING
ROWS = 2000


def table(seed=1):
    random = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "fare": random.lognormal(2, 1, ROWS),
            "company": random.choice(["red", "blue", "green"], ROWS, p=[0.5, 0.3, 0.2]),
            "trip": np.arange(ROWS) + 100_000 * seed,
            "tips": random.choice(["no", "yes"], ROWS),
        }
    )


def statistics(frame):
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)
    return tfdv.generate_statistics_from_dataframe(frame, options)


@pytest.fixture(scope="module")
def baseline():
    return statistics(table())


@pytest.fixture
def schema(baseline):
    return tfdv.infer_schema(baseline, infer_feature_shape=False)


def found(frame, schema, baseline, **settings):
    """Returns severity and description by column."""
    anomalies = validate(statistics(frame), schema, baseline, label="tips", moving=["trip"], **settings)
    return {name: (info.severity, info.description) for name, info in anomalies.anomaly_info.items()}


def test_a_constant_that_changes_is_a_warning_and_a_nan_is_a_missing_value():
    before, now, gone = (statistics(pandas.DataFrame({"x": [x] * ROWS})) for x in (2025.0, 2026.0, np.nan))
    schema = tfdv.infer_schema(before, infer_feature_shape=False)
    changed, lost = (validate(new, schema, before).anomaly_info["x"] for new in (now, gone))
    assert (changed.severity, lost.severity) == (WARNING, ERROR)
    assert "the median was 2025, now 2026" in changed.description
    assert "0 % of the values were missing, now 100 %" in lost.description


def test_a_column_in_another_unit(schema, baseline):
    assert found(table(2), schema, baseline) == {}
    frame = table(2).assign(fare=lambda frame: frame.fare * 60)
    ((column, (severity, text)),) = found(frame, schema, baseline).items()
    assert (column, severity) == ("fare", ERROR)
    assert "the median was 7." in text
    assert "Jensen-Shannon divergence 0.8" in text
    # Without a baseline the schema alone counts.
    assert not validate(statistics(frame), schema).anomaly_info


def test_a_column_that_drifts_slowly(schema, baseline):
    frame = table(2).assign(fare=lambda frame: frame.fare * 1.7)
    assert found(frame, schema, baseline)["fare"][0] == WARNING
    assert found(frame, schema, baseline, limits=DriftLimits(jensen_shannon=0.2)) == {}
    (severity, _) = found(frame, schema, baseline, limits=DriftLimits(breaking=0.01))["fare"]
    assert severity == ERROR
    # A limit of the schema goes before.
    feature_of(schema, "fare").drift_comparator.jensen_shannon_divergence.threshold = 0.2
    assert found(frame, schema, baseline) == {}


def replaced(frame, rows, column, value):
    frame.loc[:rows, column] = value
    return frame


@pytest.mark.parametrize(
    ("change", "column", "severity", "message"),
    [
        pytest.param(lambda frame: frame.replace("red", "Red"), "company", ERROR,
                     r"Red \(~5.*(was 0 % of the values, now 5|now 0 %)", id="a category was renamed"),
        pytest.param(lambda frame: replaced(frame, 30, "company", "violet"), "company", WARNING, "violet",
                     id="a few new categories"),
        pytest.param(lambda frame: replaced(frame, 5, "tips", "perhaps"), "tips", ERROR, "perhaps",
                     id="an unknown label"),
        pytest.param(lambda frame: replaced(frame, ROWS // 5, "fare", np.nan), "fare", WARNING,
                     "0 % of the values were missing, now 20", id="values that were not missing"),
        pytest.param(lambda frame: frame.drop(columns="fare"), "fare", ERROR, ".", id="gone"),
        pytest.param(lambda frame: frame.assign(fare=np.nan), "fare", ERROR, ".", id="emptied"),
        pytest.param(lambda frame: frame.assign(fare=frame.fare.astype(str)), "fare", ERROR, ".",
                     id="of another type"),
    ],
)  # fmt: skip
def test_a_column_that_has_changed(schema, baseline, change, column, severity, message):
    is_severity, text = found(change(table(2)), schema, baseline)[column]
    assert is_severity == severity
    assert re.search(message, text, re.DOTALL)


def statistics_of_examples(frame):
    """Statistics of tf.Examples as CsvExampleGen writes them: an empty cell is an empty list."""
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    columns = [
        column.cast(pa.binary() if pa.types.is_string(column.type) else pa.float32())
        for column in batch.columns
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    examples = [example for part in serialize(batch) for example in part.to_pylist()]
    decoded = example_coder.ExamplesToRecordBatchDecoder().DecodeBatch(examples)
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)
    return generate_statistics_in_memory(decoded, options)


def test_more_empty_cells_than_before_in_tf_examples():
    def frame(seed, share):
        found = table(seed)[["fare", "company", "tips"]]
        missing = np.random.default_rng(seed).random((ROWS, 2)) < share
        found[["fare", "company"]] = found[["fare", "company"]].mask(missing)
        return found

    before = statistics_of_examples(frame(1, 0.2))
    schema = tfdv.infer_schema(before, infer_feature_shape=False)

    def texts(statistics):
        anomalies = validate(statistics, schema, before, label="tips", moving=[])
        return {name: info.description for name, info in anomalies.anomaly_info.items()}

    assert texts(statistics_of_examples(frame(2, 0.2))) == {}
    found = texts(statistics_of_examples(frame(2, 0.5)))
    assert sorted(found) == ["company", "fare"]
    for text in found.values():
        assert re.search(r"(19|20|21)(\.\d)? % of the values were missing, now (49|50|51)", text)


def test_a_schema_of_the_new_data_hides_nothing(baseline):
    """An inferred schema fits the new data: only a comparison shows columns that are gone or new."""
    frame = table(2).drop(columns="fare").assign(extra=1.0)
    frame.loc[:30, "company"] = "violet"
    frame.loc[:5, "tips"] = "perhaps"
    schema = tfdv.infer_schema(statistics(frame), infer_feature_shape=False)
    assert found(frame, schema, baseline) == {
        "fare": (ERROR, "The column is missing."),
        "extra": (WARNING, "The column is new."),
        "company": (WARNING, "There are new values: 'violet' (1.55 %)."),
        "tips": (ERROR, "There are new values: 'perhaps' (0.3 %)."),
    }


def test_text_where_numbers_were_is_a_warning_if_the_schema_expects_it(baseline):
    frame = table(2).assign(fare=lambda frame: frame.fare.astype(str))
    schema = tfdv.infer_schema(statistics(frame), infer_feature_shape=False)
    text = "The values were numbers, and are text now."
    for fixed, severity in ((False, ERROR), (True, WARNING)):
        assert found(frame, schema, baseline, fixed_schema=fixed) == {"fare": (severity, text)}


def test_a_column_that_was_empty_and_is_filled_now_is_a_warning():
    before = table().assign(fare=np.nan)
    schema = tfdv.infer_schema(statistics(before), infer_feature_shape=False)
    for fare in (np.arange(ROWS) + 0.5, ["text"] * ROWS):
        now = table(2).assign(fare=fare)
        anomalies = found(now, tfdv.infer_schema(statistics(now)), statistics(before))
        severity, text = anomalies.pop("fare")
        assert severity == WARNING
        assert "100 % of the values were missing, now 0 %" in text
        assert anomalies == {}
    assert found(before, schema, statistics(before)) == {}


def test_whole_numbers_where_others_were_are_no_other_type(baseline):
    frame = table(2).assign(fare=lambda frame: frame.fare.round().astype(int))
    schema = tfdv.infer_schema(statistics(frame), infer_feature_shape=False)
    assert found(frame, schema, baseline, limits=DriftLimits(jensen_shannon=0.2)) == {}


def feature_of(schema, name):
    (feature,) = (feature for feature in schema.feature if feature.name == name)
    return feature


def test_an_edit_of_the_schema_goes_before_the_data_to_compare_with(schema, baseline):
    """An inferred schema describes the data as they are, not as they should be."""
    frame = table(2).drop(columns="fare").assign(extra=1.0)
    frame.loc[:5, "tips"] = "perhaps"
    for domain in schema.string_domain:
        if domain.name == "tips":
            domain.value.append("perhaps")
    feature_of(schema, "fare").ClearField("presence")
    schema.feature.add(name="extra", type=schema.feature[0].type)
    assert found(frame, schema, baseline, fixed_schema=True) == {}
    assert set(found(frame, schema, baseline, fixed_schema=False)) == {"fare", "tips", "extra"}


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (int, float, "were whole numbers (INT), and are numbers with fractions (FLOAT) now."),
        (float, str, "were numbers with fractions (FLOAT), and are text (BYTES) now."),
    ],
)
def test_another_type_than_that_of_a_fixed_schema_is_said_once(before, now, text):
    former = table().assign(fare=lambda frame: frame.fare.round(2).astype(before))
    frame = table(1).assign(fare=lambda frame: (frame.fare.round(2).astype(int) + 0.5).astype(now))
    frame = frame if now is str else frame.assign(fare=former.fare + 0.01)
    schema = tfdv.infer_schema(statistics(former), infer_feature_shape=False)
    anomalies = found(frame, schema, statistics(former), fixed_schema=True)
    assert anomalies == {"fare": (ERROR, f"The values {text}")}


def test_new_values_are_said_once(schema, baseline):
    frame = table(2)
    frame.loc[:30, "company"] = "violet"
    severity, text = found(frame, schema, baseline, fixed_schema=True)["company"]
    assert (severity, text.count("violet")) == (WARNING, 1)


def test_a_column_that_is_not_in_the_training_data_by_the_schema(schema, baseline):
    frame = table(2).drop(columns="fare")
    feature_of(schema, "fare").not_in_environment.append("TRAINING")
    assert found(frame, schema, baseline, fixed_schema=True)["fare"][0] == ERROR
    schema.default_environment.extend(["TRAINING", "SERVING"])
    assert found(frame, schema, baseline, fixed_schema=True) == {}


def test_columns_that_move_are_compared_unless_named(schema, baseline):
    anomalies = validate(statistics(table(2)), schema, baseline)
    assert list(anomalies.anomaly_info) == ["trip"]


@pytest.mark.parametrize("limit", [-0.1, 1.5])
def test_limits_are_shares(limit):
    with pytest.raises(ValueError, match=f"from 0 to 1. Received: breaking={limit}"):
        DriftLimits(breaking=limit)


def test_how_far_each_column_has_moved_is_measured_though_it_is_little(schema, baseline):
    """The largest difference of a share of values, by hand; columns that move by themselves are left out."""
    frame = table(2)
    anomalies = validate(statistics(frame), schema, baseline, label="tips", moving=["trip"])
    assert not anomalies.anomaly_info
    measured = {info.path.step[0]: info.drift_measurements[0] for info in anomalies.drift_skew_info}
    assert set(measured) == {"fare", "company", "tips"}
    shares = [one.company.value_counts(normalize=True) for one in (table(), frame)]
    expected = abs(shares[0] - shares[1]).max()
    assert measured["company"].value == pytest.approx(expected)
    assert measured["company"].threshold == 0.1  # of `DriftLimits`
    assert 0 < measured["fare"].value < measured["fare"].threshold
    kinds = anomalies_pb2.DriftSkewInfo.Measurement
    assert measured["fare"].type == kinds.JENSEN_SHANNON_DIVERGENCE


def test_dates_in_no_common_format_are_not_compared_as_text(baseline, schema):
    dates = pandas.DataFrame({"day": [f"2024-01-{1 + at % 9:02}" for at in range(ROWS)]})
    before, now = (statistics(dates.replace("2024", year, regex=True)) for year in ("2024", "2025"))
    schema = tfdv.infer_schema(before, infer_feature_shape=False, max_string_domain_size=5)
    description = validate(now, schema, before).anomaly_info["day"].description
    assert "was 11.2 % of the values, now 0 %" in description
    days = statistics(pandas.DataFrame({"day": np.arange(9.0)})).datasets[0].features[0]
    add_reading(now.datasets[0].features[0], "dates (iso)", "days", days)
    assert not validate(now, schema, before).anomaly_info
