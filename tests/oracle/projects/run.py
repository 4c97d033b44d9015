"""Runs these programs and prints as JSON what they showed.

python -m tests.oracle.projects.run [NAME ...]               here, after estimator_core.install()
python -m tests.oracle.projects.run --reference [NAME ...]   in the reference environment
"""

import argparse
import contextlib
import importlib
import json
import logging
import os
import pathlib
import re
import sys
import tempfile
import traceback

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

HERE = pathlib.Path(__file__).parent
ON_SHARDS = ("cnn_on_shards", "contrastive_on_shards", "gan_on_shards")
PROJECTS = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "run")
KERAS_2 = {"text_cnn"}  # tf.compat.v1.layers
# Of these, only the steps are the same.
MEASURE_OF_TIME = re.compile("(global_step/sec|examples/sec|fraction_of_32_full)$")

# 2.15 tells of its coordinator, of its TPU context, and that it reads old evaluations; we tell when the
# next one comes, where an export is in the end, and why a session call does not make many steps.
LOGGED_BY_ONE = re.compile(
    "Not using Distribute Coordinator|_TPUContext|Loading best metric|Next evaluation"
    "|SavedModel written to.*TIME$|(Training steps are run|Batches are evaluated) one by one"
    "|One (step|batch) per session call"
)
WORDED_OTHERWISE = re.compile(
    r"(Using config|Warm-starting with \w+|Signatures EXCLUDED|'\w+' : \w+ signatures).*", re.DOTALL
)
NUMBER = re.compile(r"\d+(\.\d+)?e[-+]?\d+|\d+\.\d+|(?<=/sec: )\d+")
# numpy_input_fn has no queues here, and only a busy machine writes our share of the waits for the input.
SCALARS_OF_ONE = ("enqueue_input/", "input_wait_share")
# It counts the step itself, beside TensorFlow's own hooks that read it: it is not settled, in 2.15 neither,
# which step a summary of the training is written for.
STEPS_RACE = {"deepfm"}
LOGGED = {"deepfm", "text_cnn"}  # whose log lines are compared
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
    """Returns what a program left in its directory."""
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


def as_plain(value):
    """Returns NumPy's numbers as Python's."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"not plain data. Received: {value!r}")


def seen_of(project, **arguments):
    """Returns what a program returned and left in its directory."""
    log = Log()
    if project in LOGGED:
        logging.getLogger("tensorflow").addHandler(log)
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(sys.stderr):
        os.chdir(directory)
        returned = importlib.import_module(f"tests.oracle.projects.{project}").main(**arguments)
        seen = {"returned": returned, **left_in(pathlib.Path(directory))}
        os.chdir(HERE)
    if project in LOGGED:
        seen["log"] = sorted(set(log.lines))
    if project in STEPS_RACE:
        for folder, found in seen["events"].items():
            if "eval" not in folder:
                found["scalars"] = list(found["scalars"])
    return seen


def in_a_child(project, **arguments):
    """Returns what a program showed in a process of its own, or {"error": traceback}.

    The process has the imports of this one, but what the program does to TensorFlow, such as
    `disable_v2_behavior()`, ends with it.
    """
    with tempfile.NamedTemporaryFile("w+") as file:
        child = os.fork()
        if not child:
            if project in KERAS_2:
                os.environ["TF_USE_LEGACY_KERAS"] = "1"
            try:
                seen = json.dumps(seen_of(project, **arguments), default=as_plain)
            except BaseException:
                seen = json.dumps({"error": traceback.format_exc()})
            file.write(seen)
            file.flush()
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        file.seek(0)
        text = file.read()
    return json.loads(text) if text else {"error": f"it ended with the code {code}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("projects", nargs="*")
    parser.add_argument("--reference", action="store_true")
    args = parser.parse_args()
    if args.reference:
        import tensorflow.compat.v1 as tf

        from tests.oracle import contrib_formulas

        tf.contrib = contrib_formulas
    else:
        import estimator_core

        estimator_core.install(contrib=True)
    runs = {project: in_a_child(project) for project in args.projects or PROJECTS}
    for project in ON_SHARDS:
        if not args.reference and project in runs:
            runs[f"{project} with use_tpu"] = in_a_child(project, use_tpu=True)
    json.dump(runs, sys.stdout, indent=None, sort_keys=True)
    print()
    return int(any("error" in seen for seen in runs.values()))


if __name__ == "__main__":
    sys.exit(main())
