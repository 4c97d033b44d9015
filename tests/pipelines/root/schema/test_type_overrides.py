import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipelines.config.load import load_config
from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import BadInputError
from pipelines.root.schema.root_schema import RootSchema, SchemaOrigin
from pipelines.root.schema.type_overrides import TypeOverrides
from pipelines.runs.plan.data_plan import plan_data, read_data

SCHEMA = """
feature { name: "fare" type: FLOAT }
feature { name: "size" type: BYTES }
feature { name: "money" type: BYTES }
feature { name: "n" type: INT }
feature { name: "flag" type: BYTES }
feature { name: "later" type: BYTES lifecycle_stage: PLANNED }
feature { name: "y" type: BYTES }
"""
KINDS = {
    "fare": "number", "size": "category", "money": "number", "n": "number", "flag": "boolean",
    "later": "empty", "y": "boolean",
}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    """Returns a function that reads data in which FLOAT and BYTES columns hold whole numbers."""
    file = tmp_path / "data.csv"
    rows = (
        f"{number * 7 % 90},{number % 3 + 10},{number % 17},{number % 5}.5,{number % 2},{number},"
        f"{number % 4},{number % 2}"
        for number in range(300)
    )
    file.write_text("fare,size,money,n,flag,later,extra,y\n" + "\n".join(rows) + "\n")

    def make(*settings, kinds=KINDS, schema=SCHEMA, formats=None):
        config = load_config(data=str(file), label="y", settings=settings)
        origin = SchemaOrigin("run-1", "", "", kinds, formats or {}) if kinds else None
        proto = text_format.Parse(schema, schema_pb2.Schema())
        root = RootSchema(proto, "", origin) if schema else None
        data = read_data(config, root)
        return data, plan_data(config, data, stops_at_copies=False).code.plan

    return make


def test_columns_are_read_as_the_root_has_them(read):
    data, plan = read()
    assert data.type_overrides.text == ("size", "money", "flag", "y")
    assert data.type_overrides.floats == ("fare",)
    assert data.type_overrides.new == ("extra",)
    assert data.type_overrides.uses == {
        "fare": "number",
        "size": "category",
        "money": "number",
        "flag": "category",
        "y": "category",
    }
    assert [text for text in data.findings if "root's schema" in text] == [
        *(
            f"column {name!r} holds only numbers; it is read as text, as in the root's schema"
            for name in ("size", "money", "flag", "y")
        ),
        "column 'fare' holds only whole numbers; it is read as float32, as in the root's schema",
    ]
    # 10, 11 and 12 stay categories, and prices numbers, as text both; whole fares are no codes.
    assert {part.column for part in plan.numeric} == {"fare", "money", "n"}
    assert [part.column for part in plan.categorical] == ["size", "flag"]
    assert plan.text_columns == ("size", "money", "flag", "y")
    assert (plan.label.values, plan.label.classes) == ("text", ("0", "1"))


def test_without_a_schema_columns_are_what_they_look_like(read):
    data, plan = read(schema="", kinds=None)
    assert data.type_overrides == TypeOverrides()
    assert plan.text_columns == ()
    assert plan.label.values == "number"
    assert "extra" in plan.columns


def test_a_new_column_is_not_used_unless_the_configuration_names_it(read):
    data, plan = read()
    assert data.kinds["extra"].is_new
    assert data.kinds["extra"].name == "number"  # the kind that `schema accept` would write
    assert "schema accept" in plan.ignored["extra"]
    for setting in ("columns.extra=category", 'data.categorical=["extra"]'):
        data, plan = read(setting)
        assert "extra" in [part.column for part in plan.categorical]
        assert data.kinds["extra"].name == "category"
        assert not data.kinds["extra"].is_new


def test_the_configuration_goes_before_what_columns_were_taken_for(read):
    data, plan = read("columns.size=number")
    assert "size" in [part.column for part in plan.numeric]
    assert "size" in plan.text_columns  # it is still sent as text
    assert data.kinds["size"].is_given
    assert not data.kinds["money"].is_given


def test_a_schema_of_unknown_origin_keeps_types_alone(read):
    data, plan = read(kinds=None)
    assert data.type_overrides.text == ("size", "money", "flag", "y")
    assert data.type_overrides.uses == {}
    assert "size" in plan.text_columns


@pytest.mark.parametrize("label", ["zip", "y"])
def test_codes_with_leading_zeros_are_read_as_in_the_run_that_left_the_schema(tmp_path, label):
    """The first run read them as text without a schema: the second one has the same plan."""
    file = tmp_path / "data.csv"
    rows = (f"0{number % 2 + 1},{number % 7}.5,{number % 2}\n" for number in range(100))
    file.write_text("zip,x,y\n" + "".join(rows))
    config = load_config(data=str(file), label=label, settings=["columns.y=ignore"] if label == "zip" else [])
    plans = []
    for schema in (None, 'feature { name: "zip" type: BYTES }'):
        root = None
        if schema:
            schema += 'feature { name: "x" type: FLOAT } feature { name: "y" type: INT }'
            proto = text_format.Parse(schema, schema_pb2.Schema())
            kinds = {"zip": "category", "x": "number", "y": "number"}
            root = RootSchema(proto, "", SchemaOrigin("run-1", "", "", kinds))
        data = read_data(config, root)
        plans.append(plan_data(config, data, stops_at_copies=False).code.plan)
    assert plans[0] == plans[1]
    assert plans[0].text_columns == ("zip",)


def test_what_is_taken_for_something_else_now_is_said(read):
    data, _ = read(kinds={**KINDS, "n": "category", "size": "date", "flag": "category"})
    said = [text for text in data.findings if "was read as" in text]
    assert said == [
        "column 'size' was read as date, and is read as number now",
        "column 'n' was read as category, and is read as number now",
    ]


def test_amounts_of_money_are_read_as_before_though_a_file_has_digits_alone(read):
    """Clients go on sending `3,853`."""
    _, plan = read(formats={"money": NumberFormat(".", "EUR")})
    assert {part.column: part.number_format for part in plan.numeric}["money"] == NumberFormat(".", "EUR")
    assert "money" in plan.text_columns
    _, plan = read()
    assert {part.column: part.number_format for part in plan.numeric}["money"] is None


def test_numbers_beside_words_for_missing_are_text_by_themselves(read, tmp_path):
    """Each run of the same data reads them in the same way: the first one has no schema."""
    read()
    file = tmp_path / "data.csv"
    lines = file.read_text().splitlines()
    cells = lines[5].split(",")
    cells[2] = "NA"
    file.write_text("\n".join([*lines[:5], ",".join(cells), *lines[6:]]) + "\n")
    assert "money" not in read()[0].type_overrides.text
    plans = [read()[1], read(schema="")[1]]
    assert [plan.text_columns for plan in plans][1] == ()
    assert "money" not in plans[0].text_columns


@pytest.mark.parametrize("written", [NumberFormat(unit="kg"), NumberFormat(clock="h:mm")])
def test_numbers_that_have_lost_their_unit_are_asked_about(read, written):
    # Read with the unit, all of them would be missing.
    with pytest.raises(BadInputError, match=r"data\.csv, line [23]: '[01]': \d+ of 300 cells .* money = "):
        read(formats={"money": written})
    _, plan = read("columns.money=number", formats={"money": written})
    money = next(part for part in plan.numeric if part.column == "money")
    assert money.number_format is None
    for fits in (NumberFormat(",", "EUR"), NumberFormat(scale="multiples")):
        _, plan = read(formats={"money": fits})
        assert next(p for p in plan.numeric if p.column == "money").number_format == fits
