"""Columns whose unit or format changed are named by the component that compares the data."""

import datetime
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics.stats_impl import generate_statistics_in_memory
from tensorflow_metadata.proto.v0 import anomalies_pb2

from components.example_validator.validation import validate
from pipelines.data.formats.cell_format import find_parsed_columns
from pipelines.data.kinds import recognise_columns
from pipelines.data.profile import profile_csv
from pipelines.tabular.column_table import list_columns

STOPS, WARNS = anomalies_pb2.AnomalyInfo.ERROR, anomalies_pb2.AnomalyInfo.WARNING
ROWS = 600


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def written(seed, changed):
    """Returns the cells of each column: those of before, or the same kind of values in another unit."""
    draw = np.random.default_rng(seed)
    amounts = draw.lognormal(4, 1.2, ROWS)
    # Office hours of 2024, and of the weeks after.
    start = datetime.datetime(2024, 5 if seed > 1 else 1, 1)
    times = [
        start + datetime.timedelta(days=int(day), hours=8, seconds=int(secs))
        for day, secs in zip(draw.integers(0, 120, ROWS), draw.uniform(0, 36_000, ROWS), strict=True)
    ]
    pick = (lambda before, after: after) if changed else (lambda before, after: before)
    days = datetime.timedelta(days=36_525 if changed else 0)
    later = datetime.timedelta(hours=9 if changed else 0)
    return {
        "dollars to cents": [f"${pick(a, 100 * a):,.2f}" for a in amounts],
        "dollars to euros": [pick(f"${a:,.2f}", f"{german(a)} €") for a in amounts],
        "some dollars to euros": [
            pick(f"${a:,.2f}", f"{german(a)} €" if at % 5 == 0 else f"${a:,.2f}")
            for at, a in enumerate(amounts)
        ],
        "fractions to percent": [f"{pick(a, 100 * a) / 100:.2f} %" for a in amounts],
        "seconds to minutes": [pick(f"{a:.0f} s", f"{a / 60:.2f} min") for a in amounts],
        "seconds to minutes in the same unit": [f"{pick(a, a / 60):.2f} s" for a in amounts],
        "hours to minutes of a clock": [
            f"{int(a // pick(1, 60)):02}:{int(pick(1, 60) * a % 60):02}:00" for a in amounts
        ],
        "km to miles": [pick(f"{a:.1f} km", f"{a * 0.621:.1f} mi") for a in amounts],
        "kg to pounds": [pick(f"{a:.0f} kg", f"{a * 2.2:.0f} lbs") for a in amounts],
        "thousands separator flipped": [pick(german(a), f"{a:,.2f}") for a in amounts],
        "thousands to millions": [f"{a:.1f}{pick('K', 'M')}" for a in amounts],
        "iso to day first": [f"{at:{pick('%Y-%m-%d', '%d.%m.%Y')}}" for at in times],
        "month first to day first": [f"{at:{pick('%m/%d/%Y', '%d/%m/%Y')}}" for at in times],
        "another century": [f"{at - days:%Y-%m-%d}" for at in times],
        "another time zone": [f"{at - later:%Y-%m-%d %H:%M:%S}" for at in times],
        "an offset in place of UTC": [f"{at - later:%Y-%m-%dT%H:%M:%S}{pick('Z', '-09:00')}" for at in times],
        "epoch timestamp to milliseconds": [int(at.timestamp()) * pick(1, 1_000) for at in times],
        # Of one scale: the model converts them itself.
        "feet to cm": [pick(f"{a:.0f} ft 3 in", f"{30.48 * int(a + 0.5) + 7.62:.2f} cm") for a in amounts],
    }  # fmt: skip


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """Returns a function from a table, and the plan of another one, to its plan and its statistics."""
    file = tmp_path_factory.mktemp("table") / "data.csv"
    types = {"string": pa.binary(), "integer": pa.int64(), "float": pa.float32()}
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)

    def described(table, former=()):
        rows = ([*table], *zip(*table.values(), strict=True))
        file.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
        profile = profile_csv([file])
        kinds = recognise_columns(profile, {})
        plan = [asdict(row) for row in list_columns(profile, kinds, "dollars to cents", None)]
        batch = {
            name: pa.array([[cell] for cell in cells], pa.list_(types[profile.columns[name].type]))
            for name, cells in table.items()
        }
        parsed = find_parsed_columns(plan, former)
        statistics = generate_statistics_in_memory(
            parsed.add_values(pa.RecordBatch.from_pydict(batch)), options
        )
        parsed.nest(statistics)
        return plan, statistics

    return described


@pytest.fixture(scope="module")
def before(described):
    return described(written(1, changed=False))


@pytest.fixture(scope="module")
def anomalies(described, before):
    """Returns a function from a table to severity and description of the anomalies by column."""

    def anomalies(table):
        plan, statistics = before
        schema = tfdv.infer_schema(statistics, infer_feature_shape=False, max_string_domain_size=20)
        found = validate(described(table, plan)[1], schema, statistics).anomaly_info
        return {name: (info.severity, info.description) for name, info in found.items()}

    return anomalies


@pytest.fixture(scope="module")
def changed(anomalies):
    return anomalies(written(2, changed=True))


def test_rows_of_the_same_units_have_not_drifted_and_converted_ones_are_no_change(anomalies, changed):
    assert anomalies(written(2, changed=False)) == {}
    assert "feet to cm" not in changed


@pytest.mark.parametrize(
    ("column", "severity", "text"),
    [
        ("dollars to cents", STOPS, "the median was 5"),
        ("dollars to euros", STOPS, "100 % of the cells can no longer be parsed as amounts of money (USD)"),
        ("some dollars to euros", WARNS, "20 % of the cells can no longer be parsed as amounts of money"),
        ("fractions to percent", STOPS, "the median was 0.005"),
        ("seconds to minutes", STOPS, "% of the cells can no longer be parsed as numbers in s"),
        ("seconds to minutes in the same unit", STOPS, "the median was 5"),
        ("hours to minutes of a clock", STOPS, "the median was 1"),
        ("km to miles", STOPS, "% of the cells can no longer be parsed as numbers in km"),
        ("kg to pounds", STOPS, "% of the cells can no longer be parsed as numbers in kg"),
        ("thousands separator flipped", STOPS, "can no longer be parsed as numbers with decimal commas"),
        ("thousands to millions", STOPS, "the median was 5"),
        ("iso to day first", STOPS, "100 % of the cells can no longer be parsed as dates (iso)"),
        ("month first to day first", STOPS, "can no longer be parsed as dates (month first)"),
        ("another century", STOPS, "100 % of the dates are more than ten years before or after all"),
        ("another time zone", WARNS, "hour of the day: the median was 13."),
        ("an offset in place of UTC", WARNS, "hour of the day: the median was 13."),
        ("epoch timestamp to milliseconds", STOPS, "of the dates are more than ten years"),
    ],
)  # fmt: skip
def test_a_change_of_unit_is_named(changed, column, severity, text):
    assert changed[column][0] == severity
    assert text in changed[column][1]
