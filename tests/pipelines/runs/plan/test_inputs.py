import sqlite3
from contextlib import closing

import pytest

from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.runs.definitions.fingerprints import file_hashes
from pipelines.runs.plan.inputs import RunRequest, read_inputs


def test_what_is_asked_for_and_its_data_and_spans(data, root, display, spans):
    inputs = read_inputs(RunRequest(root=root, data=str(data), label="y"), display)
    assert (inputs.root, inputs.config.data.label) == (root, "y")
    assert inputs.data.profile.num_rows == 40
    assert (inputs.root_schema, inputs.unfinished, inputs.spans) == (None, None, ())
    assert not inputs.root.path.exists()
    request = RunRequest(root=root, data=spans, label="y", settings=("data.spans=last 2",))
    assert [span["span"] for span in read_inputs(request, display).spans] == [9, 10]


def test_a_killed_run_is_gone_on_with(killed, root, display):
    assert read_inputs(RunRequest(root=root, resume=True), display).unfinished.run_id == killed.run_id


def test_a_run_reads_new_rows_and_a_resumed_one_those_that_it_began_with(killed, root, display, tmp_path):
    def insert(first, last):
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS t (x REAL, y INTEGER)")
            rows = [(row + 0.5, row % 2) for row in range(first, last)]
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)

    def read(**options):
        return read_inputs(RunRequest(root=root, **options), display).data.profile

    request = {
        "data": f"sqlite:///{tmp_path}/shop.db",
        "label": "y",
        "settings": ("name=data", "data.query=SELECT * FROM t"),
    }
    insert(0, 40)
    first = read(**request)
    assert read(**request).fingerprint == first.fingerprint
    config = load_config(None, *request.values()).model_dump(mode="json")
    root.records.write(killed.changed(config=config, data_files=file_hashes(first)))
    insert(40, 50)
    assert read(**request).num_rows == 50
    for options in ({}, request):
        assert read(resume=True, **options).fingerprint == first.fingerprint
    other = {**request, "settings": ("name=data", "data.query=SELECT * FROM t WHERE x < 30")}
    assert read(resume=True, **other).num_rows == 30  # which is refused later


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "pushed"}, "20260102-030405 has ended \\(pushed\\)"),
        ({"status": "not_blessed"}, "20260102-030405 has ended \\(not_blessed\\)"),
        ({"kubeflow_run": "k-1"}, "20260102-030405 is on Kubeflow"),
    ],
)
def test_with_nothing_to_resume_it_is_said_and_refused(killed, root, display, changes, why):
    root.records.write(killed.changed(**changes))
    with pytest.raises(BadInputError, match=f"nothing to resume in .*{why}.* Leave --resume out"):
        read_inputs(RunRequest(root=root, resume=True), display)
