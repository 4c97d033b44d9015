from dataclasses import replace

import pytest

from pipelines.errors import BadInputError
from pipelines.runs.definitions.fingerprints import code_definitions, code_fingerprint
from pipelines.runs.plan.run_plan import touches_training

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


@pytest.fixture
def module(tmp_path):
    file = tmp_path / "project" / "a_module.py"
    file.parent.mkdir()
    file.write_text(MODULE)
    return file


@pytest.fixture
def code(module, plan):
    """The code that a run of the module trains."""
    names = {"preprocessing_fn": "a_module.preprocessing_fn", "trainer_path": None}
    return replace(plan().code, **names, module_file=str(module))


@pytest.fixture
def record(killed, code):
    """The record of a run that began with the module as it is."""
    definitions = {name: part.digest for name, part in code_definitions(code).items()}
    return killed.changed(code_fingerprint=code_fingerprint(code), code_definitions=definitions)


@pytest.mark.parametrize("edit", [("", ""), ("def plot", "# draws\ndef plot"), ("return 1", "return 2")])
def test_a_change_that_nothing_reaches_does_not_count(edit, module, record, code, root):
    module.write_text(MODULE.replace(*edit))
    for force in (False, True):
        assert not touches_training(root, (record,), code, "a_module.py", force)


def test_a_record_without_definitions_counts_as_changed_all_over(module, record, code, root):
    record = record.changed(code_definitions={})
    module.write_text(MODULE.replace("return 1", "return 2"))
    with pytest.raises(BadInputError, match=r"started\. --resume=force keeps .* continues the training with"):
        touches_training(root, (record,), code, "a_module.py", force=False)


def test_what_was_removed_counts_as_used(module, record, code, root):
    module.write_text(MODULE[: MODULE.index("def plot")])
    assert touches_training(root, (record,), code, "a_module.py", force=True)


def test_a_change_that_is_reached_says_what_would_be_lost(module, record, code, root):
    module.write_text(MODULE.replace("return inputs", "return dict(inputs)").replace("return 1", "return 2"))
    # This run was stopped before its Trainer began, which was to continue that of an older one.
    older = record.changed(run_id="20250101-000000")
    trainings = root.artifacts / "Trainer/model_run/unfinished"
    checkpoints = trainings / f"{older.run_id}-0a" / "Format-Serving"
    checkpoints.mkdir(parents=True)
    (checkpoints / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-250"\n')
    with pytest.raises(BadInputError) as refused:
        touches_training(root, (record, older), code, "a_module.py", force=False)
    assert str(refused.value) == (
        "--resume: the code of a_module.py has changed since run 20260102-030405 started "
        "(a_module.py:scaled). --resume=force keeps Transform's output of the old code, and continues the "
        "training, which has reached step 250, with the new code. Without --resume, a new run trains from "
        "the start."
    )
    assert touches_training(root, (record, older), code, "a_module.py", force=True)
