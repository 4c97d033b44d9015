import pytest

from pipelines.config import load_config
from pipelines.errors import BadInputError


def load(*settings):
    return load_config(data="d.csv", label="y", settings=settings)


def test_columns_splits_and_dialects_are_read():
    config = load(
        "columns.t=date",
        "columns.zip=category",
        "data.delimiter=;",
        "data.encoding=latin1",
        "data.decimal=','",
        "split.by=time",
        "split.column=t",
    )
    assert config.columns == {"t": "date", "zip": "category"}
    assert (config.data.delimiter, config.data.encoding, config.data.decimal) == (
        ";",
        "iso8859-1",
        ",",
    )
    assert (config.split.by, config.split.column) == ("time", "t")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["columns.zip=zip"], r"columns\.zip = 'zip': input should be 'number', 'category'"),
        (["data.delimiter=;;"], r"data\.delimiter = ';;': a delimiter is one character"),
        (["data.delimiter='\"'"], "a delimiter is one character, and no quote"),
        (["data.encoding=none"], r"data\.encoding = 'none': python knows no such encoding"),
        (["data.dates=both"], r"data\.dates = 'both': input should be 'day-first'"),
        (["split.by=column"], r'by = "column" needs column = "\.\.\."'),
        (["split.by=files", "split.train=a.csv"], r'by = "files" needs eval = "\.\.\."'),
        (["split.column=p"], r'column has no meaning with by = "row"; remove one'),
        (["split.groups=p"], r"split\.groups = 'p': there is no such key"),
    ],
)
def test_what_is_wrong_is_named(settings, message):
    with pytest.raises(BadInputError, match=message):
        load(*settings)


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        ([], True),
        (["split.by=files", "split.train=a", "split.eval=b"], True),
        (["split.by=time", "split.column=t"], False),
        (["split.by=column", "split.column=t"], False),
        (["split.by=column", "split.column=t", "split.on_label_difference=stop"], True),
        (["split.on_label_difference=warn"], False),
    ],
)
def test_a_difference_of_labels_stops_where_rows_should_be_alike(settings, stops):
    assert load(*settings).split.stops_at_label_difference == stops
