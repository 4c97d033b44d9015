import numpy as np
import pandas
import pyarrow
import pytest
import tensorflow_data_validation as tfdv

from components.example_validator.distributions import compare_values
from components.parsed_columns import add_reading
from components.pusher.provenance import Provenance
from pipelines.data.formats.cell_format import CellFormat
from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.request_drift import TrainingData, drift_limits
from pipelines.serving.saved_model import Column
from tests.pipelines import sum_models
from tests.pipelines.run_records import make_record
from tests.pushed_versions import write_version

COLUMNS = {
    "city": Column("city", "BYTES"),
    "n": Column("n", "INT"),
    "unknown": Column("unknown", "FLOAT"),
    "x": Column("x", "FLOAT"),
}


def table(rows, offset=0.0):
    random = np.random.default_rng(rows)
    return pandas.DataFrame(
        {
            "x": (random.normal(offset, 1.0, rows).round(1)).astype(np.float32),
            "n": random.integers(0, 50, rows),
            "city": random.choice(["Oslo", "Bergen", "Moss"], rows, p=[0.5, 0.3, 0.2]),
        }
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root whose version 5 was trained on 4,000 rows of `table`."""
    folder = tmp_path_factory.mktemp("root")
    model = folder / "model"
    model.mkdir()
    (model / "saved_model.pb").touch()
    root = sum_models.push(model, folder, 5)
    sum_models.keep_statistics(root, 5, table(4_000))
    return Root(root)


@pytest.fixture(scope="module")
def training(root):
    return TrainingData.read_version(root, 5)


def found_by(training, rows):
    drift = training.drift(rows, COLUMNS)
    return {(one.column, one.measure): one.shift for one in drift}


def test_shifts_of_the_values_are_those_of_tfdvs_statistics(training):
    frame = table(600, offset=0.8)
    found = found_by(training, frame.to_dict("records"))
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)
    (dataset,) = tfdv.generate_statistics_from_dataframe(frame, options).datasets
    for feature in dataset.features:
        name = feature.path.step[0]
        wanted = compare_values(training.columns[name], feature)
        shift = found[name, wanted.measure]
        assert shift.value == pytest.approx(wanted.value, abs=0.01)
        assert shift.noise == pytest.approx(wanted.noise, rel=0.05)
        assert shift.text == wanted.text
    assert found["x", "jensen_shannon"].exceeds(0.02)


def test_rows_like_those_of_the_training_have_not_drifted(training):
    # x has one decimal: 0.1 of a request is 0.10000000149 in the training data.
    rows = [{**row, "x": round(row["x"], 1)} for row in table(800).to_dict("records")]
    limits = {"missing": 0.1, "l_infinity": 0.1, "jensen_shannon": 0.02}
    found = found_by(training, rows)
    assert len(found) == 6
    assert not [key for key, shift in found.items() if shift.exceeds(limits[key[1]])]


def test_missing_values_are_compared_and_the_others_among_themselves(training):
    rows = table(400).to_dict("records")
    for row in rows[:100]:
        del row["city"]
    found = found_by(training, rows)
    assert found["city", "missing"].value == 0.25
    assert found["city", "missing"].text == "0 % of the values were missing, now 25 %"
    assert not found["city", "l_infinity"].exceeds(0.1)
    assert found["n", "missing"].value == 0.0


def test_a_feature_that_is_there_but_empty_was_missing_in_the_training():
    statistics = tfdv.generate_statistics_from_dataframe(table(100))
    feature = next(one for one in statistics.datasets[0].features if one.path.step[0] == "n")
    common = feature.num_stats.common_stats
    assert (common.num_non_missing, common.max_num_values) == (100, 1)
    common.tot_num_values = 60
    training = TrainingData(100, {"n": feature})
    found = {one.measure: one.shift for one in training.drift([{"n": 1}, {}], COLUMNS)}
    assert found["missing"].value == pytest.approx(0.1)  # 40 % before, half now


def test_numbers_as_text_are_compared_by_their_missing_values_only(training):
    prices = {"city": Column("city", "BYTES", format=CellFormat(NumberFormat(",")))}
    found = training.drift([{"city": "Rome"}, {}], prices)
    assert [(one.measure, one.shift.value) for one in found] == [("missing", 0.5)]


def parsed_training(column, cells):
    """Training data of a column whose cells are parsed."""
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)

    def described(values):
        frame = pandas.DataFrame({column.name: values})
        (dataset,) = tfdv.generate_statistics_from_dataframe(frame, options).datasets
        return dataset.features[0]

    feature = described(cells)
    for quantity, values in column.format.parse(pyarrow.array(cells)).items():
        parsed = described(values[np.isfinite(values)])
        add_reading(feature, column.format.describe(), quantity, parsed)
    return TrainingData(len(cells), {column.name: feature})


@pytest.fixture(scope="module")
def prices():
    """The column, and the training data of 500 amounts around 100 dollars, of which 5 are `on request`."""
    column = Column("price", "BYTES", format=CellFormat(NumberFormat(currency="USD")))
    cells = [f"${100 + at % 50}.50" for at in range(495)] + ["on request"] * 5
    return {"price": column}, parsed_training(column, cells)


def test_times_of_day_are_not_compared_as_the_newest_rows_are_of_one_hour():
    column = Column("at", "BYTES", format=CellFormat(date="iso"))
    cells = [f"2026-01-{1 + at % 28:02} {at % 24:02}:30:00" for at in range(672)]
    rows = [{"at": f"2026-01-{1 + at % 28:02} 14:30:00"} for at in range(300)]
    drift = parsed_training(column, cells).drift(rows, {"at": column})
    assert [shift.measure for shift in drift] == ["missing", "unread", "l_infinity"]  # of the days
    assert not [shift for shift in drift if shift.shift.exceeds(0.02)]


@pytest.mark.parametrize("factor", [1, 100])
def test_numbers_as_text_are_compared_as_numbers(prices, factor):
    columns, training = prices
    rows = [{"price": f"${factor * (100 + at % 50):,}.50"} for at in range(300)]
    found = {one.measure: one.shift for one in training.drift(rows, columns)}
    assert list(found) == ["missing", "unread", "jensen_shannon"]
    assert found["jensen_shannon"].exceeds(0.3) == (factor == 100)
    assert found["jensen_shannon"].text.startswith("the median was 124.5, now 1")


def test_requests_whose_cells_have_no_value_are_named(prices):
    columns, training = prices
    rows = [{"price": "on request"}] * 200
    found = {one.measure: one.shift for one in training.drift(rows, columns)}
    assert found["unread"].text == "99 % of the cells can no longer be parsed as amounts of money (USD)"
    assert found["missing"].value == 0


def test_values_that_are_several_not_finite_or_of_no_rows(training):
    found = found_by(training, [{"city": ["Oslo", "Oslo"]}, {"city": "Moss"}])
    # Oslo was half of the values; the table is random.
    assert found["city", "l_infinity"].value == pytest.approx(1 / 3, abs=0.05)
    rows = table(400).to_dict("records")
    wanted = found_by(training, rows)["x", "jensen_shannon"]
    infinite = [{"x": value} for value in (float("inf"), float("nan"), 1e300)]
    assert found_by(training, rows + infinite)["x", "jensen_shannon"].value == wanted.value
    assert ("x", "jensen_shannon") not in found_by(training, infinite)
    assert training.drift([], COLUMNS) == []


def test_columns_that_always_change_are_not_compared(root):
    record = make_record(
        "run-5",
        config={"data": {"path": "d.csv", "label": "y"}, "example_validator": {"moving": ["n"]}},
        columns=({"name": "city", "kind": "id"}, {"name": "x", "kind": "numeric"}),
    )
    root.records.write(record)
    try:
        training = TrainingData.read_version(root, 5)
    finally:
        root.records.file("run-5").unlink()
    assert {name for name, _ in found_by(training, table(10).to_dict("records"))} == {"x"}


def test_a_version_without_statistics_is_named(tmp_path, root):
    with pytest.raises(BadInputError, match="version 6 was trained on are not in "):
        TrainingData.read_version(root, 6)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").touch()
    bare = sum_models.push(tmp_path / "model", tmp_path / "bare", 5)
    with pytest.raises(BadInputError, match="version 5 was trained on are not in "):
        TrainingData.read_version(Root(bare), 5)


def test_limits_are_the_defaults_without_a_record(root):
    shares = {"missing": 0.1, "unread": 0.1, "l_infinity": 0.1}
    assert drift_limits(root, 5) == {**shares, "jensen_shannon": 0.02}


def test_a_version_of_a_tfx_pipeline_has_the_default_limits(tmp_path, of_tfx_pipeline):
    root = tmp_path / "root"
    write_version(Provenance("run-5", "m"), str(root / "serving/5"), str(root / "serving"))
    of_tfx_pipeline(root)
    assert drift_limits(Root(root), 5)["jensen_shannon"] == 0.02
    sum_models.keep_statistics(root, 5, table(100))
    assert TrainingData.read_version(Root(root), 5).columns.keys() == {"x", "n", "city"}
