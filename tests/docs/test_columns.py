"""The tables of cells in docs/columns.md hold: for the plan, for Transform, and for the served model."""

import pickle
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from pipelines.config.load import load_config
from pipelines.data.column_cells import ColumnCells
from pipelines.data.formats.arrow_reading import read_numbers, read_times
from pipelines.data.formats.date_format import DateFormat
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.tabular.infer import infer_kinds, infer_plan
from pipelines.tabular.inputs import serving_input_receiver_fn
from pipelines.tabular.preprocessing import list_key, preprocessing_fn
from tests.docs.markdown import read

NUM_ROWS = 100


def table(header):
    """Returns the rows of a table in docs/columns.md, its cells without marks of code."""
    lines = read("docs/columns.md").partition(f"| {header} |")[2].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]])
    return [[part.replace("\\|", "|") for part in row] for row in rows]


def codes(text):
    return re.findall(r"`([^`]+)`", text)


READ = table("cell | others in the column")
REFUSED = table("cells | why")


def write(path, columns, label):
    columns = {**columns, "y": label}
    quoted = ([text.replace('"', '""') for text in (name, *columns[name])] for name in columns)
    lines = (",".join(f'"{text}"' for text in row) for row in zip(*quoted, strict=True))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return profile_csv([path]), load_config(data=str(path), label="y")


@dataclass(frozen=True)
class Made:
    """Results of the first table. Each row is a column, whose first cell is read."""

    profile: Any
    kinds: Any
    plan: Any
    trained: dict[str, Any]
    served: dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    columns = {
        f"c{number}": [*codes(cell), *islice(cycle(codes(others)), NUM_ROWS - 1)]
        for number, (cell, others, *_) in enumerate(READ)
    }
    label = [f"{number}.5" for number in range(NUM_ROWS)]
    profile, config = write(folder / "data.csv", columns, label)
    kinds = infer_kinds(profile, config)
    plan = infer_plan(profile, config, kinds)
    assert not plan.packs
    names = [*columns, "y"]
    schema = schema_utils.schema_from_feature_spec({name: tf.io.VarLenFeature(tf.string) for name in names})
    rows = [
        {name: [text.encode()] for name, text in zip(names, row, strict=True)}
        for row in zip(*columns.values(), label, strict=True)
    ]
    trained = transformed(folder, plan, schema, rows)
    return Made(profile, kinds, plan, trained, asked(folder, plan, schema, rows))


def transformed(folder, plan, schema, rows):
    """Returns the features of the rows from Transform, in their order."""
    runner = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
    rows_file = str(folder / "rows.pickle")

    def keep(rows):
        Path(rows_file).write_bytes(pickle.dumps(rows))

    with beam.Pipeline(runner) as pipeline, tft_beam.Context(temp_dir=str(folder)):
        data = (pipeline | beam.Create(rows), dataset_metadata.DatasetMetadata(schema))
        (rows_out, _), transform_fn = data | tft_beam.AnalyzeAndTransformDataset(
            lambda inputs: preprocessing_fn(inputs, plan.feature_config())
        )
        _ = rows_out | beam.combiners.ToList() | beam.Map(keep)
        _ = transform_fn | tft_beam.WriteTransformFn(str(folder / "transform"))
    in_order = sorted(pickle.loads(Path(rows_file).read_bytes()), key=lambda row: row["label"])
    return {name: np.array([row[name] for row in in_order]) for name in features_of(plan)}


def asked(folder, plan, schema, rows):
    """Returns the features that the served model makes of the cells, without the label."""
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    name: tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
                    for name, value in row.items()
                    if name != "y"
                }
            )
        ).SerializeToString()
        for row in rows
    ]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        transform = tft.TFTransformOutput(str(folder / "transform"))
        receiver = serving_input_receiver_fn(plan, transform, schema)()
        session.run(tf.compat.v1.tables_initializer())
        wanted = {name: receiver.features[name] for name in features_of(plan)}
        return session.run(wanted, {receiver.receiver_tensors["examples"]: examples})


def features_of(plan):
    return ["numeric", *(list_key(number) for number in range(len(plan.lists)))]


@pytest.mark.more
@pytest.mark.parametrize("number", range(len(READ)), ids=[row[0] for row in READ])
def test_a_cell_is_read_as_the_table_says(made, number):
    cell, _, planned, expected_value = READ[number]
    column, (text,) = f"c{number}", codes(cell)
    kind = made.kinds[column]
    name, _, note = planned.partition(": ")
    assert (kind.name, note in kind.note) == (name, True), kind.note
    lists = [part.column for part in made.plan.lists]
    if column in lists:
        position = lists.index(column)
        parts = made.plan.lists[position].parts
        for features in (made.trained, made.served):
            hot = features[list_key(position)][0]
            assert ", ".join(sorted(np.array(parts)[hot == 1])) == expected_value
            assert set(hot) <= {0, 1}
        return
    values, counts = zip(*ColumnCells(made.profile, column).chunks(), strict=True)
    numbers, weights = read_by_plan(values[0], kind), counts[0]
    assert shown(read_by_plan(pyarrow.array([text]), kind)[0], kind) == expected_value
    # What Transform and the served model make of it is a z-score.
    weights, numbers = weights[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    mean = np.average(numbers, weights=weights)
    stddev = np.average((numbers - mean) ** 2, weights=weights) ** 0.5
    position = [part.column for part in made.plan.numeric].index(column)
    expected = (value_of(expected_value, kind) - mean) / stddev
    for features in (made.trained, made.served):
        assert features["numeric"][0, position] == pytest.approx(expected, abs=1e-5, nan_ok=True)
    np.testing.assert_array_equal(made.trained["numeric"][:, position], made.served["numeric"][:, position])


def read_by_plan(cells, kind):
    """Returns numbers, or the days of dates; NaN for what is missing."""
    if kind.date_format is None:
        return read_numbers(cells, kind.number_format)
    times = read_times(cells, DateFormat(kind.date_format))
    return np.where(times.is_valid, times.utc_secs / 86_400, np.nan)


def shown(value, kind):
    if np.isnan(value):
        return "missing"
    if kind.date_format is None:
        return f"{value:.15g}"
    time = datetime(1970, 1, 1) + timedelta(days=value)
    return f"{time:%Y-%m-%d}" if time.hour == 0 else f"{time:%Y-%m-%d %H:%M}"


def value_of(text, kind):
    if text == "missing":
        return np.nan
    if kind.date_format is None:
        return float(text)
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) / timedelta(days=1)


@pytest.mark.parametrize("row", REFUSED, ids=[row[0] for row in REFUSED])
def test_cells_are_refused_as_the_table_says(tmp_path, row):
    cells = list(islice(cycle(codes(row[0])), NUM_ROWS))
    profile, config = write(tmp_path / "data.csv", {"a": cells}, cells)
    assert infer_kinds(profile, config)["a"].name == "category"
    for use in ("number", "date"):
        with pytest.raises(BadInputError, match=rf'a = "{use}": .*data\.csv, line [23]: '):
            infer_kinds(profile, config, {"a": use})
