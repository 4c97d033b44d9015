from pipelines.config.load import load_config
from pipelines.data.profile import profile_csv
from pipelines.tabular.column_table import ColumnRow, list_columns, table_lines
from pipelines.tabular.infer import infer_kinds, infer_plan
from tests.pipelines.data.tables import write_table

NUM = 200


def rows_of(folder, *settings, module=False):
    columns = {
        "price": [f"${number}.5" if number % 4 else "" for number in range(NUM)],
        "at": [f"2014-{number % 12 + 1:02d}-01" for number in range(NUM)],
        "hour": [number % 4 for number in range(NUM)],
        "zip": [f"{number % 7:05d}" for number in range(NUM)],
        "note": [f"it came {number} days late" for number in range(NUM)],
        "same": ["x"] * NUM,
        "y": ["p", "q"] * (NUM // 2),
    }
    file = write_table(folder, columns)
    config = load_config(data=str(file), label="y", settings=settings)
    profile = profile_csv([file])
    plan = None if module else infer_plan(profile, config)
    return list_columns(profile, infer_kinds(profile, config), "y", plan, {"hour": "a warning"})


def test_each_column_says_what_it_is_and_how_it_is_used_in_an_aligned_table(tmp_path):
    rows = rows_of(tmp_path)
    assert [row.cells() for row in rows] == [
        ("price", "number", "number", "25.0%", "amounts of money (USD)"),
        ("at", "date", "days, month, weekday", "0.0%", "iso"),
        ("hour", "number", "number, category (4 values)", "0.0%", "a warning"),
        ("zip", "category", "category (7 values)", "0.0%", "a code: leading zeros"),
        ("note", "text", "words (hashed into 50000)", "0.0%", ""),
        ("same", "constant", "not used: has the same value in every row", "0.0%", ""),
        ("y", "category", "label (binary, 2 classes)", "0.0%", ""),
    ]
    (weight,) = (row for row in rows_of(tmp_path, "data.weight=hour") if row.name == "hour")
    assert weight.cells()[1:3] == ("number", "weight of the row")
    lines = table_lines(rows_of(tmp_path))
    assert lines[0].split() == ["column", "kind", "used", "as", "missing", "note"]
    assert len(lines) == 8
    assert {
        line.index(word) for line, word in zip(lines[1:4], ("number", "date", "number"), strict=True)
    } == {8}


def test_cells_are_wrapped_where_the_terminal_is_narrow():
    row = ColumnRow("price", "number", "number", 0.25, "amounts of money (USD), decimal commas")
    assert table_lines([row], 50) == [
        "column  kind    used as  missing  note",
        "price   number  number   25.0%    amounts of",
        "                                  money (USD),",
        "                                  decimal commas",
    ]


def test_what_the_configuration_and_a_module_decide_is_marked(tmp_path):
    row = rows_of(tmp_path, "columns.hour=category")[2]
    assert (row.kind, row.use) == ("category", "category (4 values)")
    assert row.note == "a warning; by [columns]"
    row = rows_of(tmp_path, "columns.note=ignore")[4]
    assert row.use == "not used: [columns] says ignore"
    rows = rows_of(tmp_path, module=True)
    assert {row.use for row in rows} == {"label", "up to the module"}
