import pytest

from pipelines.config.load import load_config
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
    assert (config.data.delimiter, config.data.encoding, config.data.decimal) == (";", "iso8859-1", ",")
    assert (config.split.by, config.split.column) == ("time", "t")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["columns.zip=zip"], r"columns\.zip = 'zip': input should be 'number', 'category'"),
        (["data.delimiter=;;"], r"data\.delimiter = ';;': a delimiter is one character"),
        (["data.delimiter='\"'"], "a delimiter is one character, not a quote"),
        (["data.encoding=none"], r"data\.encoding = 'none': python has no such encoding"),
        (["data.dates=both"], r"data\.dates = 'both': input should be 'day-first'"),
        (["split.by=column"], r'by = "column" needs column = "\.\.\."'),
        (["split.by=files", "split.train=a.csv"], r'by = "files" needs eval = "\.\.\."'),
        (["split.column=p"], r'column has no effect with by = "row"; remove one'),
        (["data.spans=last 2"], r"data\.spans = 'last 2': data\.path has no \{SPAN\}"),
        (["data.path=s{SPAN}", "data.spans=all"], r"data\.spans = 'all': the forms are \"newest\""),
        (
            ["data.path=s{SPAN}", "data.spans=2026-01-01"],
            r"data\.spans = .*2026.*: the spans of data\.path are numbers: write 7, or 3\.\.7",
        ),
        (
            ["data.path={YYYY}{MM}{DD}.csv", "data.spans=3-7"],
            r"data\.spans = '3-7': the spans of data\.path are dates: write 2026-01-31",
        ),
        (["data.path={YYYY}.csv"], r"data\.path = '\{YYYY\}\.csv': a date needs"),
        (["data.path={YYYY}.csv", "data.spans=3"], r"^data\.path = [^\n]*$"),
        (["split.groups=p"], r"split\.groups = 'p': there is no such key"),
    ],
)
def test_what_is_wrong_is_named(settings, message):
    with pytest.raises(BadInputError, match=message):
        load(*settings)


@pytest.mark.parametrize(
    ("path", "spans", "kept"),
    [
        ("s{SPAN}", "3-7", "3..7"),
        ("s{SPAN}/v{VERSION}", "12", "12"),
        ("s{SPAN}", "last 4", "last 4"),
        ("{YYYY}{MM}{DD}.csv", "2026-01-30", "2026-01-30"),
        ("{YYYY}{MM}{DD}.csv", "2026-01-30..2026-02-01", "2026-01-30..2026-02-01"),
        ("{YYYY}{MM}{DD}.csv", "last 4", "last 4"),
        ("d.csv", "newest", "newest"),
    ],
)
def test_spans_are_kept_in_one_form(path, spans, kept):
    config = load(f"data.path={path}", f"data.spans={spans}")
    assert config.data.spans == kept
    assert str(config.data.selection) == kept


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
