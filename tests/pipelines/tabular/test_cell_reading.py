"""The graph reads cells as the profile does."""

import numpy as np
import pyarrow
import pytest
import tensorflow as tf

from pipelines.data.formats import arrow_reading
from pipelines.data.formats.date_format import COMPACT, EPOCH_MILLISECONDS, EPOCH_SECONDS, TEXT_FORMATS
from pipelines.data.formats.number_format import COMMA, POINT, NumberFormat
from pipelines.data.formats.units import SCALES
from pipelines.tabular.cell_reading import read_numbers, read_times, trim

NUMBERS = [
    "$33.50", "0,27", "1,234", "1.234,5", "1\u202f234,5 €", "12 %", "12.5%", "(5.00)", "-$5", "$-5",
    "\u22124", "USD 1,200", "1e5", ".5", "7", "abc", "", "1,2,3", "kr 5", "5\n%",
    "€95.5M", "2.3m", "1.2 K", "3 Mrd. €", "12 kg", "7 lb", "5'11\"", "5'11", "2h 5m", "-3 days",
    "01:23:45.5", "-12:34", "$7 per month", "0", "(1.1M)", "12.5 %", "+3%", "5 € 7", "1.5 h", "170 cm",
]  # fmt: skip
TIMES = [
    "2014-03-01", "2014-03-01 12:05", "2014-03-01T12:05:09.25Z", "2014-03-01 12:05:09-05:30",
    "20140301", "31.12.1999 23:59", "03/04/2005", "12/31/1999 12:30:00 AM", "12/31/1999, 11:30 pm",
    "2015-01", "1/2015", "Sept. 2015", "q3 2015", "2015Q2", "2015W07", "2014-W53", "2015-W53-7",
    "Fri, 27 Nov 2026 09:04:39 +0100", "31 Feb 2015", "March 1st, 2015 2:30 PM",
    "2015-02-29", "1393675509", "1393675509.75", "-86401", "", "soon",
]  # fmt: skip


@pytest.mark.parametrize(
    "number_format",
    [
        None, POINT, COMMA, NumberFormat(scale="multiples"), NumberFormat(",", "EUR", scale="multiples"),
        NumberFormat(unit="kg"), NumberFormat(currency="USD", unit="per month"),
        NumberFormat(clock="h:mm"), NumberFormat(clock="m:ss"),
        *(NumberFormat(scale=scale) for scale in SCALES),
    ],
)  # fmt: skip
def test_numbers_are_those_of_the_profile(number_format):
    expected = arrow_reading.read_numbers(pyarrow.array(NUMBERS), number_format)
    padded = tf.constant([f"\u00a0{text}\t" for text in NUMBERS])
    np.testing.assert_array_equal(read_numbers(padded, number_format).numpy(), expected)
    assert np.isfinite(expected).sum() >= (3 if number_format in (None, POINT, COMMA) else 1)


@pytest.mark.parametrize("date_format", [*TEXT_FORMATS, EPOCH_SECONDS, EPOCH_MILLISECONDS])
def test_times_are_those_of_the_profile(date_format):
    expected = arrow_reading.read_times(pyarrow.array(TIMES), date_format)
    padded = tf.constant([f"\u3000{text} " for text in TIMES])
    is_valid, local, utc = (part.numpy() for part in read_times(padded, date_format))
    assert is_valid.tolist() == expected.is_valid.tolist()
    assert is_valid.any()
    assert local[is_valid].tolist() == expected.local_secs[is_valid].tolist()
    assert utc[is_valid].tolist() == expected.utc_secs[is_valid].tolist()


def test_columns_that_are_numbers_already_and_white_space_of_unicode():
    assert read_numbers(tf.constant([3, 4]), None).numpy().tolist() == [3.0, 4.0]
    for values, date_format in (([20140301], COMPACT), ([1_393_632_000], EPOCH_SECONDS)):
        is_valid, local, _ = read_times(tf.constant(values, tf.int64), date_format)
        assert is_valid.numpy().tolist() == [True]
        assert local.numpy().tolist() == [1_393_632_000]  # 2014-03-01
    # U+00A0 and U+3000 are no white space to tf.strings.strip.
    texts = ["yes\u00a0", "\u3000 yes", "\tyes\n", "y e\u00a0s", "\u00a0", "é"]
    assert [text.decode() for text in trim(tf.constant(texts)).numpy()] == [text.strip() for text in texts]
