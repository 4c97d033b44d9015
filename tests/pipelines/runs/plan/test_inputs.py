import pytest

from pipelines.errors import BadInputError
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
