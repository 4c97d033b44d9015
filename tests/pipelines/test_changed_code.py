from dataclasses import replace

import pytest

from pipelines.changed_code import hand_training_over, touches_training, trained_step
from pipelines.errors import BadInputError
from pipelines.fingerprints import code_definitions, code_fingerprint
from pipelines.run_plan import RunRequest, plan_run

MODULE = """
def preprocessing_fn(inputs):
    return scaled(inputs)

def trainer_fn(args, schema):
    return {}

def scaled(inputs):
    return inputs

def plot(history):
    return 1
"""
RUN_ID = "20260102-030405"


@pytest.fixture
def module(tmp_path):
    file = tmp_path / "project" / "a_module.py"
    file.parent.mkdir()
    file.write_text(MODULE)
    return file


@pytest.fixture
def code(module, data, tmp_path, display):
    """What a run of the module trains."""
    request = RunRequest(root=tmp_path / "root", data=str(data), label="y")
    return replace(
        plan_run(request, display).code,
        preprocessing_fn="a_module.preprocessing_fn",
        trainer_path=None,
        module_file=str(module),
    )


@pytest.fixture
def record(killed, code):
    """Of a run that began with the module as it is."""
    return killed.changed(
        code_fingerprint=code_fingerprint(code),
        code_definitions={name: part.digest for name, part in code_definitions(code).items()},
    )


@pytest.mark.parametrize(
    "edit", [("", ""), ("def plot", "# draws\ndef plot"), ("return 1", "return 2")]
)
def test_a_change_that_nothing_reaches_does_not_count(edit, module, record, code, tmp_path):
    module.write_text(MODULE.replace(*edit))
    for force in (False, True):
        assert not touches_training(tmp_path / "root", record, code, "a_module.py", force)


def test_a_change_that_is_reached_says_what_would_be_lost(module, record, code, tmp_path):
    root = tmp_path / "root"
    module.write_text(MODULE.replace("return inputs", "return dict(inputs)"))
    checkpoints = (
        root / "artifacts/Trainer/model_run/unfinished" / f"{RUN_ID}-0a" / "Format-Serving"
    )
    checkpoints.mkdir(parents=True)
    (checkpoints / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-250"\n')
    with pytest.raises(BadInputError) as refused:
        touches_training(root, record, code, "a_module.py", force=False)
    assert str(refused.value) == (
        "--resume: the code of a_module.py has changed since run 20260102-030405 started "
        "(a_module.py:scaled). --resume=force keeps what the old code has made, and goes on with its "
        "training, at step 250, with the new code. A run without --resume begins anew: components "
        "that the change does not touch are reused, but the training of that run is removed."
    )
    assert touches_training(root, record, code, "a_module.py", force=True)


def test_a_record_without_definitions_counts_as_changed_all_over(module, record, code, tmp_path):
    record = record.changed(code_definitions={})
    module.write_text(MODULE.replace("return 1", "return 2"))
    with pytest.raises(
        BadInputError,
        match=r"started\. --resume=force keeps what the old code has made, and goes on with the rest",
    ):
        touches_training(tmp_path / "root", record, code, "a_module.py", force=False)


def test_the_training_of_the_run_is_handed_over_and_no_others(tmp_path):
    model_runs = tmp_path / "artifacts" / "Trainer" / "model_run"
    for name, step in ((f"{RUN_ID}-0a", 250), ("20250101-000000-0b", 900)):
        (model_runs / "unfinished" / name).mkdir(parents=True)
        state = model_runs / "unfinished" / name / "checkpoint"
        state.write_text(f'model_checkpoint_path: "/a/model.ckpt-{step}"\n')
    assert trained_step(tmp_path, RUN_ID) == 250
    assert trained_step(tmp_path, "20990101-000000") is None
    hand_training_over(tmp_path, RUN_ID, RUN_ID)
    left = sorted(path.name for path in (model_runs / "unfinished").iterdir())
    assert left == ["20250101-000000-0b", f"{RUN_ID}-handed-over"]
    (model_runs / "7").mkdir()
    (model_runs / "7" / "model").write_text("finished")
    hand_training_over(tmp_path, RUN_ID, RUN_ID, finished=model_runs / "7")
    assert (model_runs / "unfinished" / f"{RUN_ID}-handed-over" / "model").read_text() == "finished"
    assert (model_runs / "7" / "model").exists()
