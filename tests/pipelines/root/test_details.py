import logging

import pytest

from pipelines.root import Root


def test_sections_are_files_beside_the_records_and_no_records(tmp_path):
    details = Root(tmp_path).details("r1")
    assert (details.read("training"), details.read_all(), details.files()) == (None, {}, [])
    details.write("training", {"curves": [[1, 0.5]]})
    details.write("training", {"curves": [[1, 0.25]]})
    details.write("anomalies", {"found": ["ü"]})
    assert details.read_all() == {"anomalies": {"found": ["ü"]}, "training": {"curves": [[1, 0.25]]}}
    assert [file.name for file in details.files()] == ["anomalies.json", "training.json"]
    assert not list((tmp_path / "runs").glob("*.json"))
    assert Root(tmp_path).details("r2").read_all() == {}


def test_what_is_no_section_is_refused_and_a_damaged_file_costs_its_section_alone(tmp_path, caplog):
    details = Root(tmp_path).details("r1")
    with pytest.raises(ValueError, match="Received: section='curves'"):
        details.write("curves", {})
    with pytest.raises(ValueError, match="JSON"):
        details.write("training", {"loss": float("nan")})
    assert details.files() == []
    details = Root(tmp_path).details("r1")
    details.write("training", {})
    details.write("anomalies", {})
    (details.folder / "training.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert details.read_all() == {"anomalies": {}}
    assert "training.json cannot be read" in caplog.text
