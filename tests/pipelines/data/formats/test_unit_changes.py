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
        for day, secs in zip(
            draw.integers(0, 120, ROWS), draw.uniform(0, 36_000, ROWS), strict=True
        )
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
        "percent sign lost": [f"{a:.2f}{pick(' %', '')}" for a in amounts],
        # Of one scale: the model converts them itself.
        "feet to cm": [pick(f"{a:.0f} ft 3 in", f"{30.48 * int(a + 0.5) + 7.62:.2f} cm") for a in amounts],
    }  # fmt: skip


@pytest.fixture(scope="module")
def compare(tmp_path_factory):
    """Returns a function from two tables to severity and description of the anomalies by column."""
    folder = tmp_path_factory.mktemp("tables")

    def compare(before, now):
        plans = []
        for number, columns in enumerate((before, now)):
            file = folder / f"{number}.csv"
            rows = zip(*columns.values(), strict=True)
            lines = [[f'"{cell}"' for cell in row] for row in ([*columns], *rows)]
            file.write_text("\n".join(map(",".join, lines)) + "\n")
            profile = profile_csv([file])
            label = next(iter(columns))
            plans.append(
                (profile, list_columns(profile, recognise_columns(profile, {}), label, None))
            )
        former = [asdict(row) for row in plans[0][1]]
        found = []
        for (profile, rows), columns, others in zip(
            plans, (before, now), ((), former), strict=True
        ):
            parsed = find_parsed_columns(map(asdict, rows), others)
            types = {"string": pa.binary(), "integer": pa.int64(), "float": pa.float32()}
            batch = {
                name: pa.array(
                    [
                        [float(cell) if column.stored_as == "float" else cell]
                        for cell in columns[name]
                    ],
                    pa.list_(types[column.stored_as]),
                )
                for name, column in profile.columns.items()
            }
            options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)
            batch = parsed.add_values(pa.RecordBatch.from_pydict(batch))
            statistics = generate_statistics_in_memory(batch, options)
            parsed.nest(statistics)
            found.append(statistics)
        schema = tfdv.infer_schema(found[0], infer_feature_shape=False, max_string_domain_size=20)
        anomalies = validate(found[1], schema, found[0])
        return {
            name: (info.severity, info.description) for name, info in anomalies.anomaly_info.items()
        }

    return compare


@pytest.fixture(scope="module")
def changed(compare):
    return compare(written(1, changed=False), written(2, changed=True))


def test_other_rows_and_later_dates_have_not_drifted(compare):
    assert compare(written(1, changed=False), written(2, changed=False)) == {}


@pytest.mark.parametrize(
    ("column", "severity", "text"),
    [
        ("dollars to cents", STOPS, "the median was 5"),
        ("dollars to euros", STOPS, "100 % of the cells no longer read as amounts of money (USD)"),
        ("some dollars to euros", WARNS, "20 % of the cells no longer read as amounts of money"),
        ("fractions to percent", STOPS, "the median was 0.005"),
        ("seconds to minutes", STOPS, "% of the cells no longer read as numbers in s"),
        ("seconds to minutes in the same unit", STOPS, "the median was 5"),
        ("hours to minutes of a clock", STOPS, "the median was 1"),
        ("km to miles", STOPS, "% of the cells no longer read as numbers in km"),
        ("kg to pounds", STOPS, "% of the cells no longer read as numbers in kg"),
        ("thousands separator flipped", STOPS, "no longer read as numbers with decimal commas"),
        ("thousands to millions", STOPS, "the median was 5"),
        ("iso to day first", STOPS, "100 % of the cells no longer read as dates (iso)"),
        ("month first to day first", STOPS, "no longer read as dates (month first)"),
        ("another century", STOPS, "100 % of the dates are more than ten years before or after all"),
        ("another time zone", WARNS, "of the hours of the day, the median was 13."),
        ("an offset in place of UTC", WARNS, "of the hours of the day, the median was 13."),
        ("epoch timestamp to milliseconds", STOPS, "of the dates are more than ten years"),
        ("percent sign lost", STOPS, "The values were text (BYTES), and are numbers"),
    ],
)  # fmt: skip
def test_a_change_of_unit_is_named(changed, column, severity, text):
    assert changed[column][0] == severity
    assert text in changed[column][1]


def test_units_that_are_converted_are_no_change(changed):
    assert "feet to cm" not in changed
