import pytest

from pipelines.data.kinds import MAX_PARTS, ListParts, find_list
from tests.pipelines.data.tables import column_of


def cells_of(folder, cells):
    return column_of(folder, "a", cells)[1]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a;b", "b;c", "b"], ListParts(";", ("b", "a", "c"), 3)),  # 30, 10 and 10 of them
        ([" x | y ", "x|", "y"], ListParts("|", ("x", "y"), 2)),
        (["a,b", "b,c"], None),
        (["one", "two"], None),
    ],
)
def test_parts_of_lists(tmp_path, cells, expected):
    assert find_list(cells_of(tmp_path, cells * 10)) == expected


def test_lists_have_to_be_common_and_their_parts_to_repeat_unless_configured(tmp_path):
    assert find_list(cells_of(tmp_path, [f"t{number};u{number}" for number in range(50)])) is None
    rare = ["a"] * 91 + ["a;b"] * 9
    assert find_list(cells_of(tmp_path, rare)) is None
    assert find_list(cells_of(tmp_path, [*rare, "a;b", "a;b"])) == ListParts(";", ("a", "b"), 2)
    assert find_list(cells_of(tmp_path, ["a, b", "c"]), is_given=True).parts == ("a", "b", "c")
    assert find_list(cells_of(tmp_path, ["a", "c"]), is_given=True) is None
    cells = [f"p{number:03d};q" for number in range(120)] * 10
    found = find_list(cells_of(tmp_path, cells))
    assert (found.num_parts, len(found.parts), found.parts[:2]) == (121, MAX_PARTS, ("q", "p000"))
    assert found.describe() == "lists of 121 different parts between ';'; the 100 most frequent are used"
