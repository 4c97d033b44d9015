import csv

import pytest

from pipelines.data.cells import Cell, find_cell
from pipelines.errors import shown


def test_a_cell_is_found_by_file_and_line(tmp_path):
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text("a,y\n1,x\n")
    two.write_text('\na,y\n"2\n", x\n\n3, bad \n')
    found = find_cell([one, two], 1, lambda text: text == "bad")
    assert found == Cell(two, 6, "bad")
    assert str(found) == f"{two}, line 6: 'bad'"
    with pytest.raises(LookupError):
        find_cell([one, two], 1, lambda text: text == "y")  # the header is no cell


def test_a_long_field_is_read_and_cut_and_the_limit_put_back(tmp_path):
    file = tmp_path / "1.csv"
    file.write_text("a\n" + "x" * 200_000 + "\nbad\n")
    before = csv.field_size_limit()
    assert find_cell([file], 0, lambda text: text == "bad").line == 3
    assert csv.field_size_limit() == before
    assert shown("x" * 61) == "x" * 60 + "... (61 characters)"
    assert shown("x" * 60) == "x" * 60
