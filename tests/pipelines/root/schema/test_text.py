import pytest

from pipelines.errors import BadInputError
from pipelines.root.schema.text import parse_schema, read_bytes, schema_text

SCHEMA = """# by hand
feature { name: "x" type: FLOAT }
feature { name: "color" type: BYTES domain: "colors" }
string_domain { name: "colors" value: "grün" }
"""


def parse(text):
    content = text if isinstance(text, bytes) else text.encode()
    return parse_schema(content, "ROOT/schema.pbtxt", "Mend it.")


def test_a_schema_is_the_same_after_it_was_written():
    schema = parse(SCHEMA)
    assert [feature.name for feature in schema.feature] == ["x", "color"]
    text = schema_text(schema, "first", "second")
    assert text.startswith("# first\n# second\nfeature {\n")
    assert "grün" in text
    assert parse(text) == schema


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SCHEMA.replace("type: FLOAT", "typ: FLOAT"),
            r'line 2, column 21: .*no field named "typ".*the line is: feature \{ name: "x" typ: FLOAT \}'
            r"\)\. Mend it\.$",
        ),
        (SCHEMA.replace("FLOAT", "DOUBLE"), r'line 2, column 27: .*no value named "?DOUBLE"?'),
        (SCHEMA.replace('"x" ', '"x '), r"line 2, column 17: .*the line is: feature"),
        (SCHEMA + "feature {", "line 5, column 9: "),
        (b"\xff", "utf-8"),
        (SCHEMA + 'feature { name: "x" }', "the feature 'x' appears 2 times. Keep one"),
        (
            SCHEMA.replace('domain: "colors"', 'domain: "colours"'),
            r"'color' has domain: 'colours', but there is no such string_domain\. Existing: colors\.",
        ),
    ],
    ids=["field", "type", "quote", "brace", "bytes", "twice", "domain"],
)
def test_a_schema_that_was_edited_wrongly(text, message):
    with pytest.raises(BadInputError, match=message) as error:
        parse(text)
    assert str(error.value).startswith("ROOT/schema.pbtxt")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInputError, match=r"none\.pbtxt cannot be read: No such file"):
        read_bytes(tmp_path / "none.pbtxt")
