import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.data.column_profile import MAX_DISTINCT, CellStore
from pipelines.data.kinds import recognise_columns
from pipelines.data.profile import profile_clean_files, profile_csv
from pipelines.data.reading import read_batches
from pipelines.errors import BadInputError


def profile(folder, text, name="data.csv"):
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return profile_csv([file])


def test_types_and_counts(tmp_path):
    result = profile(
        tmp_path, "int,float,bool,text,mixed,none\n1,1.5,true,a,1,\n-2,NA,FALSE,b,x,\n,3,true,,2,\n"
    )
    types = {name: column.type for name, column in result.columns.items()}
    assert types == {
        "int": "integer",
        "float": "float",
        "bool": "boolean",
        "text": "string",
        "mixed": "string",
        "none": "empty",
    }
    assert result.num_rows == 3
    integer, real = result.columns["int"], result.columns["float"]
    assert (integer.num_values, integer.num_missing, integer.holds_missing_tokens) == (2, 1, False)
    assert (integer.minimum, integer.maximum, integer.mean) == (-2, 1, -0.5)
    assert (real.num_missing, real.holds_missing_tokens) == (1, True)
    assert real.mean == pytest.approx(2.25)  # of 1.5 and 3
    assert real.variance == pytest.approx(0.5625)  # ((0.75)^2 + (0.75)^2) / 2
    assert result.columns["text"].distinct_values == {"a": 1, "b": 1}


def test_a_line_break_in_quotes_is_whole_where_two_blocks_meet(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.data.reading.BLOCK_BYTES", 64)
    file = tmp_path / "data.csv"
    cells = [f"{'x' * size}\r\ny" for size in range(50)]
    file.write_bytes(b"a\r\n" + b"".join(f'"{cell}"\r\n'.encode() for cell in cells))
    batches = list(read_batches(file, ["a"]))
    assert len(batches) > 1
    assert [cell for batch in batches for cell in batch[0].to_pylist()] == cells


def test_distinct_values_are_counted_up_to_a_limit(tmp_path):
    rows = "".join(f"{number},x\n" for number in range(MAX_DISTINCT + 1))
    result = profile(tmp_path, "a,b\n" + rows)
    assert result.columns["a"].num_distinct is None
    assert result.columns["a"].maximum == MAX_DISTINCT
    assert result.columns["b"].num_distinct == 1


def test_several_files_make_one_profile_and_the_fingerprint_sees_contents(tmp_path):
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text("a,b\n1,2\n")
    two.write_text("a,b\n3,4\n5,6\n")
    before = profile_csv([one, two])
    assert before.num_rows == 3
    two.write_text("a,b\n3,4\n5,7\n")  # same size
    assert profile_csv([one, two]).fingerprint != before.fingerprint


@pytest.mark.parametrize("token", ["NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "-", " ? "])
def test_a_token_that_means_no_value(tmp_path, token):
    column = profile(tmp_path, f"a,b\n1,x\n{token},x\n4,x\n").columns["a"]
    assert (column.type, column.num_values, column.num_missing) == ("integer", 2, 1)
    assert column.mean == 2.5
    assert column.holds_missing_tokens


@pytest.mark.parametrize("word", ["??", "na", "none", "--", "0"])
def test_what_only_looks_like_such_a_token_is_a_value(tmp_path, word):
    column = profile(tmp_path, f"a,b\n1,x\n{word},x\n").columns["a"]
    assert (column.num_values, column.num_missing) == (2, 0)


def test_a_few_cells_that_make_a_column_text_are_found(tmp_path):
    rows = "".join(f"{number}.5,{number}\n" for number in range(30))
    result = profile(tmp_path, f"a,b\n{rows}1_0,x\n")
    assert (result.columns["a"].type, result.columns["a"].num_non_numbers) == ("string", 1)
    assert all(column.is_text_by_few_cells for column in result.columns.values())
    assert str(result.find_non_number("a")) == f"{tmp_path / 'data.csv'}, line 32: '1_0'"
    # Two of 32 are more than one in a hundred: text with some numbers in it.
    result = profile(tmp_path, f"a,b\n{rows}x,x\ny,y\n")
    assert not any(column.is_text_by_few_cells for column in result.columns.values())


def test_numbers_beyond_float32_are_counted_and_named(tmp_path):
    # The largest float32 is 3.4028234663852886e38.
    cells = ["1", "nan", "3.4028234e38", "3.5e38", "-1e200", "inf", "3"]
    result = profile(tmp_path, "a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    column = result.columns["a"]
    assert (column.type, column.num_beyond_float32) == ("float", 3)
    assert (column.minimum, column.maximum) == (1.0, 3.4028234e38)
    assert result.notes() == [
        "column 'a': 3 numbers that float32 cannot hold count as missing, the first: "
        f"{tmp_path / 'data.csv'}, line 5: '3.5e38'"
    ]


def test_a_parquet_file_says_its_types(tmp_path):
    file = tmp_path / "data.parquet"
    columns = {
        "zip": pa.array(["02134", "10001", None]),
        "whole": pa.array([1.0, 2.0, None], pa.float32()),
        "count": pa.array([1, 2, None], pa.int8()),
        "yes": pa.array([True, False, True]),
        "day": pa.array([0, 19_000, None], pa.date32()),
    }
    pq.write_table(pa.table(columns), file)
    result = profile_csv([file])
    assert {name: column.type for name, column in result.columns.items()} == {
        "zip": "string",
        "whole": "float",
        "count": "integer",
        "yes": "boolean",
        "day": "string",
    }
    assert result.known_types == {
        "zip": "string", "whole": "float", "yes": "string", "day": "string"
    }  # fmt: skip
    assert result.num_rows == 3
    assert result.columns["zip"].num_missing == result.columns["count"].num_missing == 1
    kinds = recognise_columns(result, {})
    assert kinds["zip"].name != "number"
    assert kinds["day"].date_format == "iso"


def test_a_row_of_parquet_that_equals_the_header_is_data(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"a": ["x", "a"], "b": ["y", "b"]}), path)
    for found in (profile_csv([path]), profile_clean_files([path])):
        assert found.num_rows == 2


def test_a_full_temporary_folder_is_named():
    store = CellStore()
    store._write = lambda batch: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    with pytest.raises(BadInputError, match=r"column 'c' cannot be stored in .*No space.*TMPDIR"):
        store.add("c", pa.array(["x"]), [1])
