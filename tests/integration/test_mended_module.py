"""A module that fails after its training is mended, and the run goes on: no step is made twice."""

import json
import pathlib

import pytest

MODULE = pathlib.Path(__file__).with_name("mended_module.py").read_text()
LABELS = 'labels = features.pop("label")'
NO_LABELS = 'labels = features.pop("labels")'  # fails when the Trainer exports
WRONG_LABELS = f"{LABELS} + tf.size(tf.io.read_file('/no/such/file'), tf.int64)"  # and this, in the Evaluator
STEPS = 30


@pytest.fixture
def run(warm_command, tmp_path):
    """Returns a function that runs the pipeline with a module; returns the last line, and all lines."""
    rows = "".join(f"{number}.5,{int(number > 90)}\n" for number in range(200))
    (tmp_path / "data.csv").write_text("x,y\n" + rows)
    module = tmp_path / "my_module.py"

    def run_it(source, *options):
        module.write_text(source)
        command = ["run", "--root", tmp_path / "root", *options]
        if not options:
            command += ["--data", tmp_path / "data.csv", "--label", "y"]
            for setting in (
                f"module.file={module}",
                f"trainer.train_steps={STEPS}",
                f"trainer.custom_config.steps={tmp_path / 'steps'}",
                'evaluator.thresholds=[{metric="binary_accuracy", lower=0.0}]',
                "evaluator.default_checks=false",  # a few steps teach little
            ):
                command += ["--set", setting]
        ended = warm_command(*command)
        return ended.returncode, json.loads(ended.stdout.splitlines()[-1]), ended.stderr

    return run_it


@pytest.mark.slow
def test_a_module_that_is_mended_goes_on_from_the_trained_checkpoint(run, tmp_path):
    code, line, _ = run(MODULE.replace(LABELS, NO_LABELS))
    assert (code, line["status"]) == (1, "failed")
    assert "labels must be defined; one is None" in line["reason"]

    code, line, _ = run(MODULE.replace(LABELS, WRONG_LABELS), "--resume")
    assert code == 2
    assert "my_module.py:eval_input_receiver_fn" in line["reason"]
    assert f"continues the training, which has reached step {STEPS}, with the new code" in line["reason"]

    code, line, shown = run(MODULE.replace(LABELS, WRONG_LABELS), "--resume=force")
    assert (code, line["status"]) == (1, "failed")
    assert "Evaluator: " in line["reason"]
    assert "labels between 0 and 1" in line["reason"]
    assert "= Transform  unchanged, reused" in shown

    # The Trainer finished this time, with an evaluation model that is of no use: it runs again.
    code, line, shown = run(MODULE, "--resume=force")
    assert (code, line["status"]) == (0, "pushed")
    assert "= Transform  unchanged, reused" in shown
    assert "= Trainer  unchanged, reused" not in shown
    assert len((tmp_path / "steps").read_text().split()) == STEPS  # in all three runs
    assert not list(tmp_path.glob("root/artifacts/*/*/unfinished"))
