import random

import pytest

from pipelines.data import cells, quotes
from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.profile import profile_csv
from pipelines.data.quotes import QuoteSearch, text_after_quotes
from pipelines.errors import BadInputError

CITIES = ("lisbon", "oslo", "rome")


def lines_of(number):
    """Rows such as `7,oslo,1`."""
    return [f"{n},{CITIES[n % 3]},{n % 2}" for n in range(number)]


@pytest.fixture
def profile(tmp_path):
    """Returns a function that profiles a CSV of `n`, `city` and `y`."""

    def read(lines, header="n,city,y", **given):
        file = tmp_path / "data.csv"
        file.write_text("\n".join([header, *lines, ""]))
        return profile_csv([file], **given)

    return read


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ('10,"oslo,0', '60,lisbon",0'),  # two stray quotes
        ('10,"oslo,0', '60,"lisbon,0'),  # the second one closes the first
        ('"10,oslo,0', '60,"lisbon, old town",0'),  # and so does one that is right
        ('10,oslo,"0', '60,lisbon,0"'),
    ],
)
def test_a_stray_quote_is_refused_with_the_lines_that_it_has_swallowed(profile, first, last):
    lines = lines_of(100)
    lines[10], lines[60] = first, last
    said = r"line 12, column '.*': the quoted field that .* continues up to line 62, over 51 lines, of which"
    with pytest.raises(BadInputError, match=said) as error:
        profile(lines)
    assert "a stray quote seems to turn 51 lines into one row" in str(error.value)


def test_rows_with_gaps_are_rows_too(profile):
    lines = [f"{n},,{n % 2}" if n % 3 else f"{n},oslo,{n % 2}" for n in range(100)]
    lines = [line.replace(f"{n},", ",", 1) if n % 4 else line for n, line in enumerate(lines)]
    lines[12], lines[60] = '12,"oslo,0', '60,oslo",0'
    with pytest.raises(BadInputError, match="over 49 lines, of which 49 look like rows"):
        profile([line.replace(",", "\t") for line in lines], "n\tcity\ty", dialect=Dialect("\t"))


def test_it_is_no_error_where_the_user_says_that_it_is_a_quote(profile):
    lines = lines_of(100)
    lines[10], lines[60] = '10,"oslo,0', '60,lisbon",0'
    found = profile(lines, quote_is_given=True)
    assert found.num_rows == 50
    (note,) = found.notes()[:1]
    assert "over 51 lines, of which 51 look like rows of this file. They are read as one row" in note


def test_a_quote_that_stays_open_is_refused_with_what_it_would_swallow_up_to_a_limit(profile, monkeypatch):
    lines = lines_of(100)
    lines[10] = '10,"oslo,0'
    with pytest.raises(BadInputError, match=r"line 12, .* is never closed: 90 lines, up to the end"):
        profile(lines)
    monkeypatch.setattr(cells, "_MAX_DESCRIBED_CHARS", 200)
    with pytest.raises(BadInputError, match=r"data.csv, line 12: a field has more than 200 char"):
        profile(lines)


@pytest.mark.parametrize(("length", "rows"), [(1, 100), (1_000, 10)])
def test_of_long_lines_fewer_are_compared(tmp_path, monkeypatch, length, rows):
    monkeypatch.setattr(quotes, "MAX_LONG_CHARS", 10_500)
    file = tmp_path / "data.csv"
    file.write_text("\n".join(["a,b", *[f"{n:0{length}},1" for n in range(100)], ""]))
    shape = quotes._RowShape(file, 2, COMMAS)
    assert (len(shape._kinds) == 2) == (rows >= 10)
    monkeypatch.setattr(quotes, "MAX_LONG_CHARS", 9_000)
    assert (len(quotes._RowShape(file, 2, COMMAS)._kinds) == 2) == (rows >= 100)


@pytest.mark.parametrize(
    "text",
    [
        "Dear all,\nthis is, I fear, late,\nyours, Ann",  # as many commas as a row has
        "a list:\n1,oslo,0\n2,rome,1\nthe end",  # two of its lines are like rows
        "one\n\ntwo",
        'he said ""no""\nand left',
    ],
)
def test_a_text_with_line_breaks_is_one_cell(profile, text):
    lines = lines_of(100)
    lines[10] = f'10,"{text}",0'
    found = profile(lines)
    assert found.num_rows == 100
    assert found.columns["city"].distinct_values[text.replace('""', '"')] == 1


def test_lines_of_texts_alone_need_to_be_many(profile):
    lines = [f"title {n},some words about {n}" for n in range(40)]
    text = ["first, one", "then, another", 'at last, the end"']
    found = profile([*lines, 'the title,"a text', *text], header="title,text")
    assert found.num_rows == 41
    assert "line 42, column 'text': " in found.notes()[0]
    assert "over 4 lines, of which 4 look like rows of this file" in found.notes()[0]
    with pytest.raises(BadInputError, match="over 5 lines, of which 5 look like rows"):
        profile([*lines, 'the title,"a text', lines[0], *text], header="title,text")


def test_the_search_misses_no_quote_that_needs_a_closer_look():
    draw = random.Random(3)
    num_found = 0
    for _ in range(2_000):
        text = "".join(draw.choices(["a", ",", '"', '"', "\n", " ", "\r\n"], k=draw.randrange(1, 14)))
        search, content = QuoteSearch(COMMAS), text.encode()
        cut = draw.randrange(len(content) + 1)
        for block in (content[:cut], content[cut:]):
            search.update(block)
        is_odd = any(line.count('"') % 2 for line in text.split("\n"))
        follows = any(text_after_quotes([line], COMMAS) is not None for line in text.split("\n"))
        assert search.finds_any() or not (is_odd or follows), text
        num_found += search.finds_any()
    assert 200 < num_found < 1_900
    search = QuoteSearch(COMMAS)
    search.update(b'a,"b ""c"" d","",x\n"e"\r\n')
    assert not search.finds_any()


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ('a,"b",c', None),
        ('a,"b ""c"", d",e', None),
        ('"a" ,"b"\t', None),
        ('5" disk,b"c"', None),
        ('a,"b"c', 1),
        ('"a"b"c",d', 0),
        (r'"a,b","c\"d"', 1),
        ('a,""b', 1),
    ],
)
def test_text_after_quotes_is_found(row, place):
    assert text_after_quotes([row + "\n"], COMMAS) == place


@pytest.mark.parametrize("delimiter", ["\t", " ", ";"])
def test_a_blank_that_is_the_delimiter_ends_the_cell(delimiter):
    dialect = Dialect(delimiter)
    assert text_after_quotes([delimiter.join(['"a"', "b", "c"]) + "\n"], dialect) is None
    assert text_after_quotes([delimiter.join(["a", '"b"x', "c"]) + "\n"], dialect) == 1


def test_text_after_quotes_is_no_error_where_the_user_says_that_it_is_a_quote(profile):
    lines = [*lines_of(30), '30,"oslo"x,0']
    with pytest.raises(BadInputError, match=r"line 32, column 'city': .* text after the quote"):
        profile(lines)
    found = profile(lines, quote_is_given=True)
    assert found.columns["city"].distinct_values["oslox"] == 1
    assert found.has_irregular_quotes
    assert "line 32, column 'city'" in found.notes()[0]
