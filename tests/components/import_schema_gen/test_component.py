import components  # noqa: I001  Before TFX: makes TFDV importable.

import hashlib
import tempfile
from pathlib import Path

import pytest
from tfx.types.standard_artifacts import Schema

from components.errors import SettingError
from components.import_schema_gen.component import Executor, ImportSchemaGen

SCHEMA = 'feature { name: "x" type: FLOAT }\n'


@pytest.fixture
def copy(tmp_path):
    """Returns a function that copies a schema file; the text of the copy is returned."""
    file = tmp_path / "mine.pbtxt"
    file.write_text(SCHEMA)

    def run(sha256=None):
        artifact = Schema()
        artifact.uri = tempfile.mkdtemp(dir=tmp_path)
        properties = ImportSchemaGen(str(file), sha256).exec_properties
        Executor().Do({}, {"schema": [artifact]}, properties)
        return (Path(artifact.uri) / "schema.pbtxt").read_text()

    return run


def test_a_schema_is_copied_only_with_the_content_that_it_is_meant_to_have(copy):
    assert components.ImportSchemaGen is ImportSchemaGen
    assert copy() == copy(hashlib.sha256(SCHEMA.encode()).hexdigest()) == SCHEMA
    with pytest.raises(SettingError, match=r"mine\.pbtxt was changed after its fingerprint"):
        copy(hashlib.sha256(b"another").hexdigest())
