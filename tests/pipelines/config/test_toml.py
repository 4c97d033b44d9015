from pathlib import Path

import pytest
import tomllib

from pipelines import atomic_files
from pipelines.config.toml import columns_entry, flat_settings, read_toml, split_setting, toml_value
from pipelines.errors import BadInputError


def test_values_of_a_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('name = "trips"\n[pusher]\nkeep = 3\n')
    assert read_toml(path) == {"name": "trips", "pusher": {"keep": 3}}


def test_values_have_the_keys_that_set_takes():
    tree = {"name": "taxi", "data": {"path": "a.csv", "x": {"y": [1, {"z": 2}]}}, "columns": {}}
    assert flat_settings(tree) == {"name": "taxi", "data.path": "a.csv", "data.x.y": [1, {"z": 2}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name = \n", "is not valid TOML"),
        (b"name = '\xff'\n", "is not UTF-8 text"),
        (b"a = 1\nb = " + b"9" * 5000 + b"\n", r"999\.\.\. on line 2 has 5000 digits"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
    ],
    ids=["value missing", "not UTF-8", "long integer", "nested"],
)
def test_what_cannot_be_read_is_said(tmp_path, content, message):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match=message):
        read_toml(path)


def test_a_folder_a_missing_file_and_one_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "MAX_SMALL_BYTES", 1_000)
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "none.toml", "does not exist"),
        (Path("/dev/zero"), r"/dev/zero holds more than .* for a configuration"),
    ):
        with pytest.raises(BadInputError, match=message):
            read_toml(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_any_system_are_read(tmp_path, end):
    file = tmp_path / "a.toml"
    file.write_bytes(f"[data]{end}path = 'é'{end}".encode())
    assert read_toml(file) == {"data": {"path": "é"}}


def test_a_setting_is_toml_or_text():
    assert toml_value("3", "pusher.keep") == 3
    assert toml_value("[1, 2]", "x") == [1, 2]
    assert toml_value("plain text", "x") == "plain text"
    with pytest.raises(BadInputError, match="--set x=999"):
        toml_value("9" * 5000, "x")


@pytest.mark.parametrize(
    ("setting", "names", "value"),
    [
        ("data.path=a=b.csv", ["data", "path"], "a=b.csv"),
        ('columns."a.b"="number"', ["columns", "a.b"], '"number"'),
        ("columns.'a=\\b'.c=", ["columns", "a=\\b", "c"], ""),
        (r'columns."say \"x\"=1"=text', ["columns", 'say "x"=1'], "text"),
        ("columns.Miller's height=number", ["columns", "Miller's height"], "number"),
    ],
)
def test_a_setting_is_split_at_the_dots_outside_of_quotes(setting, names, value):
    found, key, text = split_setting(setting)
    assert (found, text) == (names, value)
    assert f"{key}={text}" == setting


@pytest.mark.parametrize(
    "setting", ["trainer", "=1", "a..b=1", ".a=1", "a.=1", 'columns."a.b=1', r'a."\q"=1', 'a."b"c=1']
)
def test_a_setting_without_a_key_is_refused(setting):
    with pytest.raises(BadInputError, match=r"--set takes section\.key=value, .*columns\.\"a\.b\"=number"):
        split_setting(setting)


@pytest.mark.parametrize("name", ["zip", "Lease term", "a.b", 'a "quoted" one', "Straße", "1\\2\x7f", ""])
def test_an_advised_entry_of_columns_can_be_copied(name):
    section, entry = columns_entry(name, "number").split(" ", 1)
    assert tomllib.loads(f"{section}\n{entry}\n") == {"columns": {name: "number"}}


def test_a_plain_name_is_not_quoted():
    assert columns_entry("zip-code_2", "category") == '[columns] zip-code_2 = "category"'
