"""The lines that the `tensorflow` logger writes, which people grep."""

import contextlib
import logging
import os
import re

from tests.oracle.programs import small
from tests.oracle.programs.program import Scenario

# Lines that people search for, and that we promise to write in the same order.
PATTERNS = (
    r"loss = \S+, step = \d+",
    r"global_step/sec: \S+",
    r"Saving checkpoints for \d+ into .*",
    r"Loss for final step: .*",
    r"Saving dict for global step \d+: .*",
    r"Saving 'checkpoint_path' summary for global step \d+: .*",
    r"Starting evaluation at .*",
    r"Finished evaluation at .*",
    r"Evaluation \[\d+/\d+\]",
    r"Restoring parameters from .*",
    r"Calling model_fn\.",
    r"Done calling model_fn\.",
    r"Graph was finalized\.",
    r"Running local_init_op\.",
    r"Done running local_init_op\.",
    r"Create CheckpointSaverHook\.",
    r"Calling checkpoint listeners (before|after) saving checkpoint \d+\.\.\.",
    r"Skipping training since max_steps has already saved\.",
    r"Start train and evaluate loop.*",
    r"Performing best model export\.",
    r"Performing the final export in the end of training\.",
    r"Signatures INCLUDED in export for .*",
    r"SavedModel written to: .*saved_model\.pb",
    r"Requesting early stopping at global step \d+",
    r"Could not find trained model in model_dir: .*, running initialization to .*",
    r"Using config: .*",
    r"Warm-starting .*",
    r"Skip the current checkpoint eval due to throttle secs .*",
)

BUILDING = r"(Done )?[cC]alling model_fn|Graph was finalized|(Done r|R)unning local_init_op"


class _Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@contextlib.contextmanager
def collected():
    """Collects the lines of the `tensorflow` logger."""
    logger = logging.getLogger("tensorflow")
    handler, level = _Handler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def normalised(lines, model_dir):
    """Returns the lines that `PATTERNS` name, without directories, times and last digits."""
    wanted = [line for line in lines if any(re.fullmatch(p, line, re.DOTALL) for p in PATTERNS)]
    normal = []
    for line in wanted:
        line = line.replace(model_dir, "MODEL_DIR")
        line = re.sub(r"\d{4}-\d\d-\d\d[T-]\d\d:\d\d:\d\d", "TIME", line)
        line = re.sub(r"(global_step/sec: )\S+", r"\1RATE", line)
        line = re.sub(r"\(\d+\.\d+ sec\)", "(SECS sec)", line)
        line = re.sub(r"/(temp-)?\d{10}\b", "/TIMESTAMP", line)
        line = re.sub(r"(\d+\.\d{4})\d+", r"\1", line)
        line = re.sub(r"Using config: .*", "Using config: CONFIG", line, flags=re.DOTALL)
        line = re.sub(r"(Warm-starting with WarmStartSettings: ).*", r"\1SETTINGS", line)
        normal.append(line)
    return normal


def lines(e, model_dir):
    """A life of an Estimator, call by call."""
    logs = {}

    def log(call, function, *args, **kwargs):
        with collected() as seen:
            result = function(*args, **kwargs)
        logs[call] = normalised(seen, model_dir)
        return result

    def make(**config):
        return small.regressor(e, model_dir, save_checkpoints_steps=6, log_step_count_steps=4, **config)

    estimator = log("constructor", make)
    log("evaluate_untrained", estimator.evaluate, small.eval_input_fn)
    log("train", estimator.train, small.train_input_fn, steps=10)
    log("train_on", estimator.train, small.train_input_fn, max_steps=13)
    log("train_again", estimator.train, small.train_input_fn, max_steps=13)
    log("evaluate", make().evaluate, small.eval_input_fn)
    log("evaluate_steps", make().evaluate, small.eval_input_fn, steps=5, name="test")
    log("evaluate_many", make().evaluate, small.train_input_fn, steps=25, name="many")
    log("predict", lambda: list(make().predict(small.eval_input_fn)))
    base = os.path.join(model_dir, "export")
    log("export", make().export_saved_model, base, small.receiver_fn(e))
    exporters = [e.FinalExporter("final", small.receiver_fn(e)), e.BestExporter("best", small.receiver_fn(e))]
    log(
        "train_and_evaluate",
        e.train_and_evaluate,
        make(),
        e.TrainSpec(small.train_input_fn, max_steps=20),
        e.EvalSpec(small.eval_input_fn, steps=None, exporters=exporters, throttle_secs=0),
    )
    # That the graph of the first evaluation serves the others as well is an improvement.
    logs["train_and_evaluate"] = [line for line in logs["train_and_evaluate"] if not re.match(BUILDING, line)]
    return logs


SCENARIOS = {"log_lines": Scenario(lines)}
