import pytest

from pipelines.data import faults
from pipelines.errors import BadInputError


@pytest.fixture
def csv(tmp_path):
    """Returns a function that writes a CSV."""

    def write(content, name="data.csv"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write


def test_the_header_is_trimmed_and_quotes_are_read(csv):
    assert faults.read_header(csv(b'\xef\xbb\xbf\n a ,"b ""c""",\n1,2,3\n')) == ["a", 'b "c"', ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("5,1.5,x,5\n", r"'5' appears 2 times \(columns 1, 4\)\. The first line looks like a row of data"),
        (",b,unnamed\n", r"'unnamed' appears 2 times \(columns 1, 3\)"),
        (b"a,caf\xe9\n", "line 1, column .*: byte 0xe9 is not UTF-8"),
    ],
)
def test_headers_that_cannot_be_used(csv, content, message):
    with pytest.raises(BadInputError, match=message):
        faults.read_header(csv(content))


@pytest.mark.parametrize(
    ("line", "is_plain"), [("a,b c", True), ('a,"b c"', False), ("a, b c", False), ("a,b c ", True)]
)
def test_a_plain_header_needs_no_quotes_and_no_white_space(line, is_plain):
    assert faults.is_plain_header(line + "\r\n", ["a", "b c"]) is is_plain


def test_a_fault_is_found_by_line_row_and_column(csv):
    def fault(content):
        return faults.describe_fault(csv(content), ["a", "b"], "what the parser said")

    assert "line 3 (row 2 below the header): 1 field where" in fault("a,b\n1,2\n3\n")
    assert "there is no value for column 'b'" in fault("a,b\n1,2\n3\n")
    # A quoted line break moves the line, not the row.
    assert "line 4 (row 2 below the header): 3 fields" in fault('a,b\n"1\n",2\n3,4,5\n')
    assert "'5' follows the last column 'b'" in fault("a,b\n3,4,5\n")
    assert "line 2, column 'b': byte 0xff is not UTF-8" in fault(b"a,b\n1,\xff\n")
    assert fault("a,b\n1,2\n").endswith(": what the parser said")


@pytest.mark.parametrize("number", ["7", "-0.5", "1,5", ".25", "1e-3"])
def test_a_first_line_with_a_number_looks_like_a_row(number):
    assert f"({number!r} is a number)" in faults.describe_missing_header(["Rome", number])


def test_names_look_like_no_row():
    assert faults.describe_missing_header(["x1", "2nd", "", "a.5", "nan", "2024-01-01"]) == ""
