"""Runs one of these programs and prints as JSON its output, and the files it left.

python -m tests.integration.old_projects.run PROGRAM         here, after estimator_core.install()
python -m tests.integration.old_projects.run PROGRAM 2.15    in the reference environment
"""

import contextlib
import io
import json
import logging
import os
import pathlib
import re
import runpy
import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

HERE = pathlib.Path(__file__).parent
# Of these, only the steps are the same.
MEASURE_OF_TIME = re.compile("(global_step/sec|examples/sec|fraction_of_32_full)$")

# 2.15 tells of its coordinator, of its TPU context, and that it reads old evaluations; we tell when the
# next one comes, where an export is in the end, and why a session call does not make many steps.
LOGGED_BY_ONE = re.compile(
    "Not using Distribute Coordinator|_TPUContext|Loading best metric|Next evaluation"
    "|SavedModel written to.*TIME$|(Training steps are run|Batches are evaluated) one by one"
    "|Running one (step|batch) per session call"
)
WORDED_OTHERWISE = re.compile(
    r"(Using config|Warm-starting with \w+|Signatures EXCLUDED|'\w+' : \w+ signatures).*", re.DOTALL
)
NUMBER = re.compile(r"\d+(\.\d+)?e[-+]?\d+|\d+\.\d+|(?<=/sec: )\d+")
# numpy_input_fn has no queues here, and only a busy machine writes our share of the waits for the input.
SCALARS_OF_ONE = ("enqueue_input/", "input_wait_share")
# They count the step themselves, beside TensorFlow's own hooks that read it: it is not settled, in
# 2.15 neither, which step a summary of the training is written for.
STEPS_RACE = {"bert_classifier", "deepfm"}
OURS_ALONE = "best_eval_result.*.json"  # the state of the BestExporter


def masked(path):
    """Returns a path without the times, process numbers and host names in it."""
    path = re.sub(r"(events\.out\.tfevents)\..*", r"\1.*", path)
    path = re.sub(r"\d{4}-\d\d-\d\d[T-]\d\d:\d\d:\d\d", "TIME", path)
    path = re.sub(r"variables\.data-\d+-of-\d+", "variables.data", path)
    return re.sub(r"(?<![.\d])\d{10}\b", "TIME", path)


class Log(logging.Handler):
    """Keeps the messages of TensorFlow's logger, without numbers, times and paths."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        line = masked(record.getMessage().replace(os.getcwd(), "HERE"))
        if record.levelno < logging.WARNING and not LOGGED_BY_ONE.match(line):
            line = WORDED_OTHERWISE.sub(r"\1", line)
            # 2.15 names the folder, we name the checkpoint in it.
            line = re.sub(r"^(Warm-starting from: .*)/model\.ckpt-\d+$", r"\1", line)
            # 2.15 reads a ref variable of the step beside the operation that counts it.
            line = re.sub(r"step = \d+( \(.* sec\))?$", r"step = STEP\1", line)
            self.lines.append(NUMBER.sub("NUMBER", line))


def files_in(root):
    """Returns the paths of all files, masked, with the number of those that became the same."""
    paths = [path for path in root.rglob("*") if path.is_file() and not path.match(OURS_ALONE)]
    found = [masked(str(path.relative_to(root))) for path in paths]
    return {path: found.count(path) for path in sorted(found)}


def events_in(folder):
    """Returns the scalars and the other tags of a folder's event files."""
    scalars, others = {}, set()
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag.startswith(SCALARS_OF_ONE):
                    continue
                if value.HasField("simple_value"):
                    scalars.setdefault(value.tag, []).append([event.step, value.simple_value])
                else:
                    others.add(value.tag)
    for tag in filter(MEASURE_OF_TIME.search, scalars):
        scalars[tag] = [step for step, _ in scalars[tag]]
    return {"scalars": dict(sorted(scalars.items())), "others": sorted(others)}


def variables_of(checkpoint):
    """Returns the shape and the norm of each number in a checkpoint, and the text of the others."""
    found = {}
    for name, shape in sorted(tf.train.list_variables(checkpoint)):
        value = tf.train.load_variable(checkpoint, name)
        is_number = np.asarray(value).dtype.kind in "fiu"
        found[name] = [shape, float(np.sqrt(np.sum(np.square(value))))] if is_number else [shape]
    return found


def signatures_of(saved_model):
    """Returns by tags and name the inputs and outputs of each signature of a SavedModel."""

    def plain(tensors):
        return {
            name: [
                tf.as_dtype(tensor.dtype).name,
                None if tensor.tensor_shape.unknown_rank else [dim.size for dim in tensor.tensor_shape.dim],
            ]
            for name, tensor in sorted(tensors.items())
        }

    model = saved_model_pb2.SavedModel.FromString(saved_model.read_bytes())
    return {
        ",".join(graph.meta_info_def.tags): {
            name: [signature.method_name, plain(signature.inputs), plain(signature.outputs)]
            for name, signature in sorted(graph.signature_def.items())
            if name != "__saved_model_init_op"
        }
        for graph in model.meta_graphs
    }


def left_in(root):
    """Returns the files that a program left in its directory."""
    folders = [root, *sorted(path for path in root.rglob("*") if path.is_dir())]
    checkpoints = {str(f.relative_to(root)): tf.train.get_checkpoint_state(f) for f in folders}
    events = {str(f.relative_to(root)): events_in(f) for f in folders}
    return {
        "files": files_in(root),
        "events": {f: found for f, found in events.items() if any(found.values())},
        "checkpoints": {
            f: [os.path.basename(path) for path in state.all_model_checkpoint_paths]
            for f, state in checkpoints.items()
            if state
        },
        "variables": {
            f: variables_of(root / f / os.path.basename(state.model_checkpoint_path))
            for f, state in checkpoints.items()
            if state
        },
        "signatures": {
            masked(str(path.parent.relative_to(root))): signatures_of(path)
            for path in sorted(root.rglob("saved_model.pb"))
        },
    }


def main(program, version=None):
    if version != "2.15":
        import estimator_core

        estimator_core.install()
    printed, log = io.StringIO(), Log()
    logging.getLogger("tensorflow").addHandler(log)
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(printed):
        os.chdir(directory)
        sys.argv = [f"{program}.py"]
        sys.path.insert(0, str(HERE))  # as for any script
        try:
            runpy.run_path(str(HERE / f"{program}.py"), run_name="__main__")
        except SystemExit as stop:
            if stop.code:
                raise
        seen = {"printed": json.loads(printed.getvalue()), "log": sorted(set(log.lines))}
        seen |= left_in(pathlib.Path(directory))
        if program in STEPS_RACE:
            for folder, found in seen["events"].items():
                if "eval" not in folder:
                    found["scalars"] = list(found["scalars"])
        os.chdir(HERE)
    json.dump(seen, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
