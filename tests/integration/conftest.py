import json

import pytest


@pytest.fixture(scope="session")
def run_pipeline(warm_command):
    """Returns a function that runs the pipeline: the exit code, the last line, and the other output."""

    def run(data, root, *settings, label="y"):
        # Three trainings of a model tell no more than one; `test_training.py` has folds.
        settings = ("trainer.folds=1", *settings)
        options = [option for setting in settings for option in ("--set", setting)]
        result = warm_command("run", "--data", data, "--label", label, "--root", root, *options)
        return result.returncode, json.loads(result.stdout.splitlines()[-1]), result.stderr

    return run
