import pytest

from pipelines.data import column_profile
from pipelines.data.column_cells import ColumnCells
from pipelines.data.dialect import Dialect
from pipelines.data.profile import profile_csv


# From the counts, from the store, and from the file.
@pytest.mark.parametrize(("max_distinct", "has_store"), [(20_000, True), (1, True), (1, False)])
def test_the_cells_that_have_a_value(tmp_path, monkeypatch, max_distinct, has_store):
    monkeypatch.setattr(column_profile, "MAX_DISTINCT", max_distinct)
    file = tmp_path / "data.csv"
    file.write_text("a;b\n1; x1 \n2;NA\n3;y\n4;\n5;x1\n")
    profile = profile_csv([file], Dialect(";"))
    if has_store:
        file.unlink()
    else:
        profile = profile.without_cells()
    assert (profile.columns["b"].distinct_values is None) == (max_distinct == 1)
    cells = ColumnCells(profile, "b")
    found = {}
    for values, counts in cells.chunks():
        for value, count in zip(values.to_pylist(), counts.tolist(), strict=True):
            found[value] = found.get(value, 0) + count
    assert found == {"x1": 2, "y": 1}
    assert cells.count("^x") == 2
    assert (cells.all_match("^[xy]"), cells.all_match("^x")) == (True, False)
