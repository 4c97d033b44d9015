import json

import pytest

from pipelines.atomic_files import read_json, remove, write_json
from pipelines.errors import BadInputError


def test_a_file_is_replaced_whole(tmp_path, monkeypatch):
    file = tmp_path / "a" / "b.json"
    write_json(file, {"x": 1})
    assert read_json(file) == {"x": 1}

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(json, "dump", fail)
    with pytest.raises(OSError, match="disk full"):
        write_json(file, {"x": 2})
    assert read_json(file) == {"x": 1}


def test_what_is_damaged_is_said(tmp_path):
    file = tmp_path / "b.json"
    with pytest.raises(FileNotFoundError):
        read_json(file)
    for text in ("{", "[]"):
        file.write_text(text)
        with pytest.raises(BadInputError, match=r"b\.json.*Mend it, or remove it"):
            read_json(file)
    remove(file)
    remove(file)
    assert not file.exists()
