import pytest

from pipelines.data.dialect import COMMAS, Dialect, detect_dialect, detect_from_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", Dialect()),
        ("a;b\n1;2\n", Dialect(";")),
        ("a\tb\n1\t2\n", Dialect("\t")),
        ("a|b\n1|2\n", Dialect("|")),
        ("a;b\n1,5;0,3\n2,5;1,3\n", Dialect(";")),  # decimal commas
        ("a,b\n1;2,3;4\n", Dialect()),
        ('a;b\n"1;2";3\n', Dialect(";")),
        ("a,b\n'1,5',2\n'x,y',3\n", Dialect(",", "'")),
        ("a,b\nit's,2\nO'Neill,3\n", Dialect()),
        ("a\n1\n", Dialect()),
        ("a,b\n1,2\n3\n", Dialect()),  # a broken row is said later
        ('a,b\n"1,2\n3,4\n', Dialect()),  # so is a quote that is left open
        ('a;b\n"1;2\n3;4\n', Dialect(";")),
        ("a,b\n'x','y'\n\"1,2\n3,4\n", Dialect()),  # single quotes explain nothing
    ],
)
def test_the_dialect_is_the_one_that_fits_the_rows(tmp_path, text, expected):
    file = tmp_path / "data.csv"
    file.write_text(text)
    assert detect_dialect([file]) == expected


def test_what_is_given_is_not_detected_and_dialects_say_what_they_are(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a;b,c\n1;2,3\n")
    assert detect_dialect([file], delimiter=";") == Dialect(";")
    assert detect_dialect([file], quote="'") == Dialect(",", "'")
    assert COMMAS.is_plain
    assert not Dialect(",", "'").is_plain
    assert str(Dialect(";")) == "fields are separated by semicolons and quoted by double quotes"


@pytest.mark.more
@pytest.mark.parametrize(
    ("length", "num_examined"), [(11, 1_000), (4_001, 263), (300_001, 50), (1_000_001, 17)]
)
def test_of_long_lines_fewer_are_examined(length, num_examined):
    line = "a;" * (length // 2) + "\n"
    lines = iter([line] * 1_200)
    assert detect_from_lines(lines, None, None).delimiter == ";"
    # One more is read to see that it is too much.
    assert 1_200 - len(list(lines)) in (num_examined, num_examined + 1)
