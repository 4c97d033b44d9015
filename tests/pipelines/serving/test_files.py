import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

import pipelines
from pipelines.data.formats.cell_format import FILE, CellFormat, formats_to_json
from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import BadInputError
from pipelines.serving.files import Reading, predict_files
from tests.pipelines import sum_models


@pytest.fixture(scope="module")
def regressor(exported, tmp_path_factory):
    return pipelines.load(sum_models.push(exported("regressor"), tmp_path_factory.mktemp("root"), 1))


DETECTED = Reading()


def predict(model, data, output, reading=DETECTED):
    """Predicts, and returns the number of rows and what was said."""
    said = []
    return predict_files(model, str(data), output, reading, said.append), said


def write(tmp_path, text, name="new.csv", encoding="utf-8"):
    file = tmp_path / name
    file.write_text(text, encoding=encoding)
    return file


def test_columns_of_the_input_are_kept_predictions_appended_and_empty_lines_no_rows(regressor, tmp_path):
    data = write(tmp_path, 'id,x,city,n,note\n007,1.50,Oslo,2,"a, b"\n008, 2 ,,NA,\n\n009,,"Os""lo",3.0,c\n')
    count, said = predict(regressor, data, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        'id,x,city,n,note,value\n007,1.50,Oslo,2,"a, b",4.5\n008, 2 ,,NA,,2\n009,,"Os""lo",3.0,c,3\n'
    )
    assert (count, said) == (3, [])
    data = write(tmp_path, "n\n1\n\n2\n\n\n")
    assert predict(regressor, data, tmp_path / "out.csv")[0] == 2
    assert (tmp_path / "out.csv").read_text() == "n,value\n1,1\n2,2\n"


def test_a_parquet_file_has_typed_columns(regressor, tmp_path):
    data = write(tmp_path, "id,x,n,city\n007,1.5,2,Oslo\n008,,,\n")
    predict(regressor, data, tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.to_pydict() == {
        "id": ["007", "008"],
        "x": [1.5, None],
        "n": [2, None],
        "city": ["Oslo", ""],
        "value": [4.5, 0.0],
    }
    assert table.schema.field("n").type == pyarrow.int64()


@pytest.mark.more
def test_the_predictions_are_those_of_python(push, tmp_path):
    model = pipelines.load(push("classifier", 1))
    numbers = np.random.default_rng(1).normal(size=5_000).astype(np.float32)
    write(tmp_path, "x\n" + "".join(f"{number}\n" for number in numbers))
    predict(model, tmp_path / "new.csv", tmp_path / "out.csv")
    table = csv.read_csv(tmp_path / "out.csv")
    expected = model.predict({"x": numbers})
    assert table["class"].to_pylist() == expected["class"].tolist()
    found = table["probability_yes"].to_numpy().astype(np.float32)
    np.testing.assert_array_equal(found, expected["probability_yes"])


def test_many_blocks_of_many_files_are_written_in_order(regressor, tmp_path, monkeypatch):
    from pipelines.data import reading

    monkeypatch.setattr(reading, "BLOCK_BYTES", 1_000)
    (tmp_path / "in").mkdir()
    for part in range(2):
        rows = "".join(f"{number},a\n" for number in range(part * 900, part * 900 + 900))
        write(tmp_path / "in", f"n,city\n{rows}", f"{part}.csv")
    count, _ = predict(regressor, tmp_path / "in", tmp_path / "out.csv")
    table = csv.read_csv(tmp_path / "out.csv")
    assert count == 1_800
    assert table["n"].to_pylist() == table["value"].to_pylist() == list(range(1_800))


def test_delimiter_and_encoding_are_detected_or_given(regressor, tmp_path):
    data = write(tmp_path, "x;city\n1;Zürich\n2;Oslo\n", encoding="cp1252")
    predict(regressor, data, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "x,city,value\n1,Zürich,1\n2,Oslo,3\n"
    write(tmp_path, "x!city\n1!Oslo\n")
    predict(regressor, data, tmp_path / "out.csv", Reading(delimiter="!"))
    assert (tmp_path / "out.csv").read_text() == "x,city,value\n1,Oslo,2\n"


def test_notes_on_a_file_in_another_encoding_name_that_file(push, tmp_path):
    model = regressor_with_prices(push, missing=("VB",))
    data = write(tmp_path, 'x,city\n1,2\n2,"te""uer"\n', encoding="utf-16")
    _, said = predict(model, data, tmp_path / "out.csv")
    assert said[-1].endswith(f"the first: 'te\"uer' ({data}, line 3)")
    assert not any("pipelines-utf8" in line for line in said)


def test_a_column_of_the_input_keeps_its_name(push, tmp_path):
    model = pipelines.load(push("classifier", 1))
    data = write(tmp_path, "x,class\n1,no\n")
    _, said = predict(model, data, tmp_path / "out.csv")
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert header == "x,class,predicted_class,probability,probability_no,probability_yes"
    assert "i the input has a column 'class': the prediction is in 'predicted_class'" in said


def test_columns_that_are_not_there_are_said_to_be_missing_in_one_line(regressor, tmp_path):
    for text, missing in (
        ("x,n\n1,2\n", "no column 'city': it counts as missing in every row"),
        ("x\n1\n", "no columns city, n: they count as missing in every row"),
    ):
        data = write(tmp_path, text)
        assert predict(regressor, data, tmp_path / "out.csv")[1] == [f"! {data} has {missing}"]


def regressor_with_prices(push, missing):
    """A model whose column `city` has numbers with decimal commas."""
    root = push("regressor", 1)
    prices = CellFormat(NumberFormat(","), missing=missing)
    extra = root / "serving" / "1" / "assets.extra"
    extra.mkdir(exist_ok=True)
    (extra / FILE).write_text(formats_to_json({"city": prices}))
    return pipelines.load(root)


PRICES = 'x,city\n1,"1.234,56"\n2,\n3,NA\n4, 7 \n'


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cell", ["262.12", "teuer"])
def test_text_that_the_model_cannot_read_is_refused(push, tmp_path, cell):
    model = regressor_with_prices(push, missing=())
    data = write(tmp_path, f"{PRICES}5,{cell}\n6,x\n")
    message = f"new.csv, line 6, column 'city': '{cell}' cannot be read as a number; the column had numbers"
    with pytest.raises(BadInputError, match=message):
        predict(model, data, tmp_path / "out.csv")
    predict(model, write(tmp_path, PRICES), tmp_path / "out.csv")


def test_text_that_was_missing_in_training_is_counted(push, tmp_path, monkeypatch):
    from pipelines.data import reading

    monkeypatch.setattr(reading, "BLOCK_BYTES", 1_000)
    model = regressor_with_prices(push, missing=("VB",))
    data = write(tmp_path, f"{PRICES}5,teuer\n6,x\n" + "1,2\n" * 700 + "1,y\n")
    count, said = predict(model, data, tmp_path / "out.csv")
    assert count == 707
    assert said[1:] == [
        "! column 'city': 3 of 707 cells cannot be read and count as missing, as others did in training; "
        f"the first: 'teuer' ({data}, line 6)"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,n\n1,2\nabc,3\n", "new.csv, line 3, column 'x': 'abc' is not a number, .* Correct it"),
        ('x,city\n1,"two\nlines"\nabc,a\n', "new.csv, line 4, column 'x': 'abc' is not"),
        ("x,n\n0x1A,2\n", "line 2, column 'x': '0x1A' is not a number"),
        ("x,n\n1,2.5\n", "line 2, column 'n': 2.5 is not a whole number"),
        ("x,n\n1\n", "line 2 .* 1 field where the header has 2"),
        ("x,x\n1,2\n", "line 1: the column name 'x' appears 2 times"),
        ("a,b\n1,2\n", "None of the model's columns .* has a, b; the model takes city, n, x"),
        ("x,citty\n1,2\n", "Unknown column 'citty', and .*new.csv has no 'city'"),
        ("x,n\n", "there is a header .* but no row below it"),
        ("", "new.csv is empty"),
        (
            "x;n;city\n1;2;Oslo\n1;2\n",
            "new.csv, line 3 .* 2 fields where the header has 3",
        ),  # it hides the delimiter
        # What a training refuses, in the same words.
        ('n,city\n1,Oslo\n2,"Oslo\n3,Rome\n', r"line 3, column 'city': .* is never closed: 2 lines"),
        ('n,city\n1,Oslo\n"2,Rome\n3,Rome\n', r"line 3, column 'n': .* is never closed"),
        ("n,city\n" + "1,Oslo\n" * 20 + '2,"Oslo\n' + "3,Rome\n" * 5 + '4,x"\n', "a stray quote"),
        ('n,city\n1,"Os"lo\n', "has text after the quote that closes it"),
        ("n,city\n1,Oslo\n2,Os\0lo\n", r"line 3, column 2: 'Os\\x00lo' holds a NUL character.* Remove it"),
        ("n,city\n1,Oslo\n2,Os\rlo\n", r"line 3, column 2: .* holds a carriage return"),
        ("1,Oslo\n2,Rome\n", r"None of the model's columns.*'1' is a number\)\. If the file has no header"),
        (f"n,city\n1,Oslo\n{2**63},Oslo\n", f"line 3, column 'n': {2**63} is not a 64-bit integer"),
        ("n,city\n1,Oslo\n   \n", "line 3 .*: 1 field .*Add the values that are missing, or remove the line"),
        ("n,city\n1,Oslo\n2,Oslo,3\n", "line 3 .*: 3 fields .*Put a field that contains a comma in double"),
    ],
)
def test_bad_input_is_named_by_file_line_and_column(regressor, tmp_path, text, message):
    data = write(tmp_path, text)
    with pytest.raises(BadInputError, match=message):
        predict(regressor, data, tmp_path / "out.csv")
    assert [file.name for file in tmp_path.glob("*") if file.is_file()] == ["new.csv"]


def test_a_quote_that_is_configured_may_hold_lines_like_rows(regressor, tmp_path):
    text = "n,city\n" + "1,Oslo\n" * 20 + '2,"Oslo\n' + "3,Rome\n" * 5 + '4,x"\n'
    count, said = predict(regressor, write(tmp_path, text), tmp_path / "out.csv", Reading(quote='"'))
    assert count == 21
    assert "They are read as one row" in said[0]


def test_a_bad_cell_of_a_later_block_is_found(regressor, tmp_path, monkeypatch):
    from pipelines.data import reading

    monkeypatch.setattr(reading, "BLOCK_BYTES", 1_000)
    write(tmp_path, "x,n\n" + "1,2\n" * 700 + "1,oops\n" + "1,2\n" * 700)
    with pytest.raises(BadInputError, match=r"new.csv, line 702, column 'n': 'oops' is not"):
        predict(regressor, tmp_path / "new.csv", tmp_path / "out.csv")


def test_an_output_that_cannot_be_written_is_refused_before_the_work(regressor, tmp_path):
    data = write(tmp_path, "x\n1\n")
    with pytest.raises(BadInputError, match=r"no folder .*absent for out.csv"):
        predict(regressor, data, tmp_path / "absent" / "out.csv")
    with pytest.raises(BadInputError, match="is a folder"):
        predict(regressor, data, tmp_path)
    with pytest.raises(BadInputError, match="is a file of --data, which it would overwrite"):
        predict(regressor, tmp_path, data)
    assert data.read_text() == "x\n1\n"
    with pytest.raises(BadInputError, match=r"\.csv or \.parquet, not compressed"):
        predict(regressor, data, tmp_path / "out.csv.gz")


def test_a_former_output_stays_until_the_new_one_is_complete(regressor, tmp_path):
    output = write(tmp_path, "former", "out.csv")
    with pytest.raises(BadInputError):
        predict(regressor, write(tmp_path, "x\nabc\n"), output)
    assert output.read_text() == "former"
    predict(regressor, write(tmp_path, "x\n1\n"), output)
    assert output.read_text() == "x,value\n1,1\n"


def test_rows_without_a_prediction_are_counted(push, tmp_path, monkeypatch):
    model = pipelines.load(push("classifier", 1))
    data = write(tmp_path, "x,n\n1,2\ninf,1\n-inf,1\n")
    run = model.run

    def run_without_infinity(signature, inputs):
        outputs = run(signature, inputs)
        is_bad = ~np.isfinite(inputs["x"]).ravel()
        outputs["probabilities"][is_bad] = np.nan
        return outputs

    monkeypatch.setattr(model, "run", run_without_infinity)
    _, said = predict(model, data, tmp_path / "out.csv")
    assert said[1:] == [
        f"! the model answers with NaN, which is not a prediction; the first time: {data}, line 3",
        "! 2 of 3 rows have no prediction",
    ]
    assert (tmp_path / "out.csv").read_text().splitlines()[2] == "inf,1,,nan,nan,nan"


def test_the_strongest_contributions_add_up_with_the_others(push, tmp_path):
    """Without rows of a run, they are the file's own: the means are 3 of x, 2 of n and 0.5 of Oslo."""
    data = write(tmp_path, "x,city,base,n\n2,Oslo,a,\n4,,b,4\n")
    said = []
    model = pipelines.load(push("regressor", 1))
    predict_files(model, str(data), tmp_path / "out.csv", DETECTED, said.append, num_explained=2)
    assert (tmp_path / "out.csv").read_text() == (
        "x,city,base,n,value,predicted_base,column_1,contribution_1,column_2,contribution_2,"
        "contribution_others\n"
        "2,Oslo,a,,3,5.5,n,-2,x,-1,0.5\n4,,b,4,8,5.5,n,2,x,1,-0.5\n"
    )
    assert said == [
        f"contributions: compared with 2 rows of {data}",
        "i the input has a column 'base': the prediction is in 'predicted_base'",
    ]


@pytest.mark.more
def test_rows_from_all_over_a_file_are_compared_with(push, tmp_path):
    """The background is every third of 100 rows up to row 93: the mean of x is 4.65, and n is 1."""
    data = write(tmp_path, "x,n\n" + "".join(f"{row / 10},1\n" for row in range(100)))
    model = pipelines.load(push("classifier", 2))
    predict_files(model, str(data), tmp_path / "out.csv", DETECTED, print, num_explained=1)
    table = csv.read_csv(tmp_path / "out.csv")
    assert set(table["explained_class"].to_pylist()) == {"yes"}
    np.testing.assert_allclose(table["base"], 5.65, rtol=1e-5)
    np.testing.assert_allclose(table["contribution_1"], np.arange(100) / 10 - 4.65, atol=1e-4)
    assert set(table["column_1"].to_pylist()) == {"x"}
