import pytest

from pipelines import atomic_files
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.root.schema.curated import read_curated_schema

SCHEMA = 'feature { name: "x" type: FLOAT }\nfeature { name: "y" type: INT }\n'


@pytest.fixture
def read(data, tmp_path):
    """Returns a function that reads a schema for the columns x (float) and y (integer)."""

    def make(text, used=("x", "y"), text_columns=()):
        file = tmp_path / "schema.pbtxt"
        file.write_text(text)
        return read_curated_schema(str(file), profile_csv([data]), used, text_columns)

    return make


def test_a_schema_that_fits(read, tmp_path):
    schema = read(SCHEMA)
    assert schema.file == tmp_path / "schema.pbtxt"
    assert read(SCHEMA).fingerprint == schema.fingerprint
    assert read(SCHEMA + "# a comment").fingerprint != schema.fingerprint
    read('feature { name: "other" type: BYTES }', used=())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", r"schema\.pbtxt' is not a Schema as text \(line 1, column 1: .*the line is: nonsense\)"),
        ('feature { name: "y" type: INT }', r"lacks the column 'x' of the data\. Its features: y"),
        (SCHEMA.replace("FLOAT", "INT"), "column 'x' is INT in the schema and FLOAT in the data"),
    ],
)
def test_a_schema_that_does_not(read, text, message):
    with pytest.raises(BadInputError, match=message):
        read(text)


def test_files_that_are_not_there_or_without_end(data, monkeypatch):
    with pytest.raises(BadInputError, match=r"none\.pbtxt cannot be read: No such .*schema\.path"):
        read_curated_schema("none.pbtxt", profile_csv([data]))
    monkeypatch.setattr(atomic_files, "MAX_SMALL_BYTES", 1_000)
    with pytest.raises(BadInputError, match=r"/dev/zero holds more than .* for a schema"):
        read_curated_schema("/dev/zero", data)


def test_a_column_that_stays_text_is_text_in_the_schema(read):
    as_text = SCHEMA.replace("INT", "BYTES")
    read(as_text, text_columns=("y",))
    with pytest.raises(BadInputError, match=r"column 'y' is BYTES in the schema and INT in the data"):
        read(as_text)
    with pytest.raises(BadInputError, match=r"column 'y' is INT in the schema and BYTES in the data"):
        read(SCHEMA, text_columns=("y",))
