from pipelines.scheduling.memory import Memory, read_memory, remember


def test_changes_are_remembered(tmp_path):
    folder = tmp_path / "trips"
    assert read_memory(folder) == Memory()
    remember(folder, told_missed="20260131T100000Z")
    remember(folder, problem="no such file", told_spans=["span-7"])
    assert read_memory(folder) == Memory("20260131T100000Z", ["span-7"], "no such file")
    before = (folder / "state.json").stat().st_mtime_ns
    remember(folder, problem="no such file")
    assert (folder / "state.json").stat().st_mtime_ns == before


def test_what_is_damaged_is_forgotten(tmp_path):
    for text in ("{", '{"who": 1}'):
        (tmp_path / "state.json").write_text(text)
        assert read_memory(tmp_path) == Memory()
