import datetime

import pytest

from pipelines.config.span_pattern import (
    before_placeholder,
    has_placeholder,
    is_temporary,
    parse_span_pattern,
)
from pipelines.errors import BadInputError


def make(folder, *names):
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")


@pytest.fixture
def found(tmp_path):
    """Returns a function that gives span, version and path of the files that a pattern finds."""

    def find(pattern, *names):
        make(tmp_path, *names)
        places = parse_span_pattern(f"{tmp_path}/{pattern}").places()
        return [(place.span, place.version, str(place.path.relative_to(tmp_path))) for place in places]

    return find


def test_numbers_in_folders_and_in_files(found):
    names = ("span-2/x.csv", "span-10/x.csv", "span-old/x.csv", "span-2b/x.csv", "my-span-4/x.csv")
    assert found("span-{SPAN}", *names) == [(10, None, "span-10"), (2, None, "span-2")]
    assert found("span-{SPAN}/*.csv") == [(10, None, "span-10"), (2, None, "span-2")]
    assert found("t{SPAN}-v{VERSION}.csv", "t3-v1.csv", "t3-v12.csv", "t3.csv") == [
        (3, 1, "t3-v1.csv"),
        (3, 12, "t3-v12.csv"),
    ]


def test_a_width_is_a_number_of_digits(found):
    names = ("0003.csv", "3.csv", "00003.csv", "0120.csv")
    assert found("{SPAN:4}.csv", *names) == [(3, None, "0003.csv"), (120, None, "0120.csv")]
    assert found("{SPAN:04}.csv") == [(3, None, "0003.csv"), (120, None, "0120.csv")]
    # Numbers of fixed width need nothing between them.
    assert found("d/{SPAN:2}{VERSION:3}.csv", "d/12345.csv") == [(12, 345, "d/12345.csv")]


def test_dates_are_found_in_paths_and_must_be_dates(found):
    names = ("logs/2026/01/31.csv", "logs/2026/02/01.csv", "logs/2026/02/1.csv", "logs/26/2/3.csv")
    days = [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)]
    assert found("logs/{YYYY}/{MM}/{DD}.csv", *names) == [
        (days[0], None, "logs/2026/01/31.csv"),
        (days[1], None, "logs/2026/02/01.csv"),
    ]
    assert found("d{DD}{MM}{YYYY}/v{VERSION}", "d31012026/v7/x.csv") == [(days[0], 7, "d31012026/v7")]
    with pytest.raises(BadInputError, match=r"2026-02-30\.csv: 2026-02-30 is not a date \(day"):
        found("{YYYY}-{MM}-{DD}.csv", "2026-02-30.csv")


def test_a_placeholder_in_two_places_says_the_same(found):
    names = ("2026/01/2026-01-31.csv", "2026/01/2026-02-01.csv", "a/3-3.csv", "a/3-4.csv")
    (day,) = found("{YYYY}/{MM}/{YYYY}-{MM}-{DD}.csv", *names)
    assert day[2] == "2026/01/2026-01-31.csv"
    assert found("a/{SPAN}-{SPAN}.csv") == [(3, None, "a/3-3.csv")]


def test_wildcards_take_no_digits_of_a_number(found):
    names = ("eu12.csv", "us7-b.csv", "x3/a.csv")
    assert found("*{SPAN}*", *names) == [(12, None, "eu12.csv"), (7, None, "us7-b.csv"), (3, None, "x3")]
    assert found("?u{SPAN}.[!t]sv") == [(12, None, "eu12.csv")]
    assert found("[z-a]{SPAN}.csv") == []
    assert found("l1{SPAN}[xy].csv", "l124x.csv") == [(24, None, "l124x.csv")]
    assert found("l{SPAN}?x.csv") == []


def test_hidden_names_are_left_out_and_literal_brackets_found(found):
    assert found("data[1]/s{SPAN}", "data[1]/s3/x.csv", ".s4/x.csv") == [(3, None, "data[1]/s3")]
    assert found("*{SPAN}/x.csv") == []


def test_a_span_without_a_version_is_found_as_incomplete(tmp_path):
    make(tmp_path, "s1/v2/x.csv", "s10/notes.txt")
    pattern = parse_span_pattern(f"{tmp_path}/s{{SPAN}}/v{{VERSION}}/*.csv")
    complete, incomplete = pattern.places()
    assert (incomplete.span, incomplete.version, incomplete.is_complete) == (10, None, False)
    assert incomplete.path == tmp_path / "s10"
    assert (complete.span, complete.version, complete.is_complete) == (1, 2, True)
    assert pattern.files_path(complete) == f"{tmp_path}/s1/v2/*.csv"


def test_the_rest_of_the_pattern_goes_behind_a_place(tmp_path):
    make(tmp_path, "a[1]/s3/csv/x.csv")
    for pattern, path in (
        ("a[1]/s{SPAN}", "a[1]/s3"),
        ("a[1]/s{SPAN}/csv/", "a[1]/s3/csv"),
        ("a[1]/s{SPAN}/*/x.csv", "a[[]1]/s3/*/x.csv"),
    ):
        parsed = parse_span_pattern(f"{tmp_path}/{pattern}")
        (place,) = parsed.places()
        assert parsed.files_path(place) == f"{tmp_path}/{path}"


def test_a_relative_pattern_finds_relative_paths(tmp_path, monkeypatch):
    make(tmp_path, "here/s3.csv", "s4.csv")
    monkeypatch.chdir(tmp_path / "here")
    for pattern, path in (("s{SPAN}.csv", "s3.csv"), ("../s{SPAN}.csv", "../s4.csv")):
        (place,) = parse_span_pattern(pattern).places()
        assert str(place.path) == path


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{SPAN}/{YYYY}-{MM}-{DD}.csv", r"\{SPAN\} and \{YYYY\} both name the span"),
        ("{YYYY}/{MM}.csv", r"there is no \{DD\}"),
        ("{DD}.csv", r"there is no \{YYYY\}"),
        ("v{VERSION}/x.csv", r"\{VERSION\} belongs to a span: add \{SPAN\}"),
        ("{span}/x.csv", r"\{span\} is not a placeholder: write \{SPAN\}"),
        ("{SPAN}/{Version}", r"write \{VERSION\}"),
        ("{SPAN:x}.csv", r"a width is a number of digits, as in \{SPAN:4\}"),
        ("{SPAN:}.csv", "a width is a number"),
        ("{SPAN:0}.csv", "a width is at least 1"),
        ("{YYYY:4}{MM}{DD}", r"\{YYYY\} always has 4 digits; leave out the width"),
        ("{SPAN}/{SPAN:3}.csv", r"\{SPAN\} has two different widths"),
        ("span-{SPAN/x.csv", r"\{SPAN is not closed: write \{SPAN\}"),
        ("{SPAN}{VERSION}.csv", "two placeholders follow each other"),
    ],
)
def test_placeholders_that_do_not_go_together(path, message):
    with pytest.raises(ValueError, match=message):
        parse_span_pattern(path)


def test_paths_without_placeholders():
    for path in ("data.csv", "data/{region}/x.csv", "{}/{0}.csv", "a{SPANISH}.csv", ""):
        assert parse_span_pattern(path) is None
        assert not has_placeholder(path)
        assert before_placeholder(path) == path
    assert has_placeholder("a/{SPAN:3}")
    assert before_placeholder("logs/{a}/{YYYY}/{MM}") == "logs/{a}/"


def test_names_of_what_is_being_written():
    for name in ("a.csv.tmp", "A.CSV.PART", "_temporary", ".a.csv.Xk3d", "x.inprogress"):
        assert is_temporary(name), name
    for name in ("a.csv", "_SUCCESS", ".DS_Store", ".a.csv.crc", "template.csv", "party"):
        assert not is_temporary(name), name
