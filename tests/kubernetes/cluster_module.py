"""The taxi module with two switches: files next to it that make its steps slow, or let one of them fail."""

import pathlib
import time

import estimator_core as estimator
from pipelines.examples.taxi import taxi_module
from pipelines.examples.taxi.taxi_module import preprocessing_fn  # noqa: F401  - of this module, too

FOLDER = pathlib.Path(__file__).parent


class Switches(estimator.SessionRunHook):
    """Looks at the files before each step."""

    def before_run(self, run_context):
        """Waits, or fails."""
        if (FOLDER / "slow").exists():
            time.sleep(0.5)
        if (FOLDER / "fail").exists():
            raise ValueError("the 13th taxi has no driver")


def trainer_fn(trainer_fn_args, schema):
    """Trains like the taxi module; a checkpoint is saved every ten steps."""
    taxi_module.SAVE_CHECKPOINTS_STEPS = 10
    training = taxi_module.trainer_fn(trainer_fn_args, schema)
    return {**training, "train_spec": training["train_spec"]._replace(hooks=(Switches(),))}
