"""The Trainer with boosted trees compared with LightGBM used directly on the same rows.

python -m benchmarks.trees_in_trainer ROOT ... [--model boosted_trees|auto] [--rounds N] [--seed N]

Each root is one that `pipelines run` has filled; its newest Trainer's inputs and settings are used. Both
learn from the same float32 matrix with the same parameters, held-out rows and early stopping, in turns, each
in a process of its own. Our seconds are those of the Trainer's executor: reading the transformed examples,
growing, evaluating, writing checkpoints and both SavedModels. LightGBM's are those of `Dataset`, `train` and
`predict` on a matrix that is in memory already. Imports count for neither. The losses are those of all
evaluation rows.
"""

import argparse
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(REPOSITORY))  # behind the project's

from benchmarks import tables  # noqa: E402


def read_trainer(root: pathlib.Path) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Returns the execution properties and the input artifacts of a root's newest Trainer."""
    from google.protobuf import json_format
    from tfx.orchestration import data_types_utils
    from tfx.orchestration.portable import inputs_utils
    from tfx.proto.orchestration import pipeline_pb2

    from pipelines.steps.step_folders import StepFolders
    from pipelines.steps.step_plan import StepPlan, with_root

    folders = StepFolders(root.absolute() / "artifacts")
    plan = StepPlan.from_json(folders.all_finished("Trainer")[-1].plan)
    parameters = json_format.ParseDict(
        with_root(plan.parameters, folders.root), pipeline_pb2.NodeParameters()
    )
    properties = data_types_utils.build_parsed_value_dict(
        inputs_utils.resolve_parameters_with_schema(parameters)
    )
    inputs = {
        key: [folders.artifact(output) for output in outputs]
        for key, outputs in plan.inputs.items()
    }
    return properties, inputs


def with_plan(properties: dict[str, Any], **training: Any) -> dict[str, Any]:
    """Returns execution properties with other settings of the plan's training."""
    from pipelines.tabular.plan import PLAN_KEY

    custom = json.loads(properties["custom_config"])
    plan = custom[PLAN_KEY]
    custom[PLAN_KEY] = {**plan, "training": {**plan["training"], **training}}
    steps = json.dumps({"splits": ["train"]})  # the plan's number of steps
    return {**properties, "custom_config": json.dumps(custom), "train_args": steps}


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Returns the result of a function, its seconds and its processor seconds."""
    gc.freeze()  # as a run does: the garbage collector would look through everything that is imported
    start, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - start, time.process_time() - cpu


def train_ours(root: pathlib.Path, model: str, seed: int | None) -> dict[str, Any]:
    """Runs the Trainer, and returns its seconds and the loss on the evaluation rows."""
    from tfx.types import standard_artifacts

    import pipelines.tabular.training  # noqa: F401
    from components.trainer.executor import Executor
    from estimator_core.boosted_trees.library import lightgbm

    lightgbm()  # imports don't count
    properties, inputs = read_trainer(root)
    changes: dict[str, Any] = {"model": model}
    if seed is not None:
        changes["seed"] = seed
    properties = with_plan(properties, **changes)
    with tempfile.TemporaryDirectory() as folder:
        outputs = {}
        for key, kind in (("model", "Model"), ("model_run", "ModelRun")):
            artifact = getattr(standard_artifacts, kind)()
            artifact.uri = f"{folder}/{key}/1"
            pathlib.Path(artifact.uri).mkdir(parents=True)
            outputs[key] = [artifact]
        _, secs, cpu = timed(lambda: Executor().Do(inputs, outputs, properties))
        served = str(
            next(pathlib.Path(folder).glob("model/1/Format-Serving/**/saved_model.pb")).parent
        )
        answer = {"secs": secs, "cpu": cpu, **evaluated(served, root, inputs, properties)}
        selection = pathlib.Path(folder) / "model_run/1/model_selection.json"
        if selection.is_file():
            answer["models"] = json.loads(selection.read_text())
    return answer


def evaluated(
    served: str, root: pathlib.Path, inputs: dict[str, list[Any]], properties: dict[str, Any]
) -> dict[str, Any]:
    """Returns the mean loss of a SavedModel on all evaluation rows, and the number of its trees."""
    import numpy as np
    import tensorflow as tf

    from benchmarks.tabular_run import read_rows, serialized_split

    plan = _plan(properties)
    rows = serialized_split(root, "eval")
    labels = read_rows(rows)[plan.label.column]
    signature = tf.saved_model.load(served).signatures["predict"]
    (name,) = signature.structured_input_signature[1]
    answers = []
    for start in range(0, len(rows), 10_000):
        outputs = signature(**{name: tf.constant(rows[start : start + 10_000])})
        answers.append({key: value.numpy() for key, value in outputs.items()})
    is_known = labels.notna().to_numpy()
    if plan.label.problem_type == "regression":
        values = np.concatenate([one["predictions"][:, 0] for one in answers])
        errors = values.astype(np.float64) - labels.to_numpy(np.float64)
        return {"loss": float(np.mean(errors[is_known] ** 2)), "rows": int(is_known.sum())}
    chances = np.concatenate([one["probabilities"] for one in answers])
    names = [str(one) for one in plan.label.classes]
    found = labels.map(lambda cell: _class_of(cell, names)).to_numpy()
    of_label = chances[np.arange(len(found)), found.astype(int)]
    losses = -np.log(np.clip(of_label[is_known].astype(np.float64), 1e-15, 1))
    return {"loss": float(losses.mean()), "rows": int(is_known.sum())}


def _class_of(cell: Any, names: list[str]) -> int:
    for text in (str(cell), f"{cell:g}" if isinstance(cell, float) else str(cell)):
        if text in names:
            return names.index(text)
    return 0


def _plan(properties: dict[str, Any]) -> Any:
    from pipelines.tabular.plan import TabularPlan

    return TabularPlan.from_custom_config(json.loads(properties["custom_config"]))


def train_library(root: pathlib.Path, threads: int | None) -> dict[str, Any]:
    """Trains LightGBM with our parameters, and returns its seconds and the loss on the evaluation rows."""
    import numpy as np

    from estimator_core.boosted_trees.library import lightgbm as load
    from estimator_core.boosted_trees.settings import BoostingSettings

    lightgbm = load()
    plan, (matrix, labels, marks), (unseen, answers, _) = read_matrices(root)
    trees, classes = plan.training.trees, len(plan.label.classes)
    own = BoostingSettings(
        trees.num_batches,
        trees.n_trees,
        trees.max_depth,
        trees.learning_rate,
        l2_regularization=trees.l2_regularization,
        min_node_weight=trees.min_node_weight,
        min_node_examples=trees.min_node_examples,
    )
    learned = np.ascontiguousarray(matrix[~marks])
    objective, metric, scale = {
        0: ("regression", "l2", 2.0),
        2: ("binary", "binary_logloss", 1.0),
    }.get(classes, ("multiclass", "multi_logloss", 1.0))
    parameters = {
        **own.parameters(*learned.shape, scale),
        "objective": objective,
        "metric": metric,
        "boost_from_average": True,
        **({"num_class": classes} if classes > 2 else {}),
        **({"num_threads": threads} if threads else {}),
    }
    held_out = np.ascontiguousarray(matrix[marks])
    patience = 3 * max(10, trees.n_trees // 16)

    def train_and_predict() -> tuple[Any, Any]:
        data = lightgbm.Dataset(learned, labels[~marks], params=parameters)
        valid = lightgbm.Dataset(held_out, labels[marks], reference=data)
        stopping = lightgbm.early_stopping(patience, verbose=False)
        booster = lightgbm.train(parameters, data, trees.n_trees, [valid], callbacks=[stopping])
        return booster, booster.predict(unseen)

    (booster, predicted), secs, cpu = timed(train_and_predict)
    if not classes:
        loss = np.mean((predicted - answers) ** 2)
    else:
        chances = np.stack([1 - predicted, predicted], 1) if classes == 2 else predicted
        loss = -np.log(np.maximum(chances[np.arange(len(answers)), answers], 1e-15)).mean()
    trained = {"trees": booster.best_iteration, "shape": learned.shape}
    return {"secs": secs, "cpu": cpu, "loss": float(loss), "rows": len(answers), **trained}


def read_matrices(root: pathlib.Path) -> tuple[Any, Any, Any]:
    """Returns the plan and (matrix, labels, marks of held-out rows) of the training and evaluation rows."""
    import numpy as np
    import tensorflow as tf
    import tensorflow_transform as tft

    from estimator_core import tf1
    from estimator_core.boosted_trees.columns import checked_columns, column_matrix
    from pipelines.tabular import columns, inputs, label_means
    from pipelines.tabular.inputs import Part
    from pipelines.tabular.preprocessing import VOCABULARY

    properties, artifacts = read_trainer(root)
    plan = _plan(properties)
    settings = plan.training
    transform = tft.TFTransformOutput(artifacts["transform_graph"][0].uri)
    train, unseen = (
        [f"{artifacts['examples'][0].uri}/Split-{split}/*"] for split in ("train", "eval")
    )
    batch_size = settings.trees.batch_size

    def read_train() -> Any:
        return inputs.read_marked(transform, train, settings.one_held_out_in, batch_size)

    keys = columns.keys_of_words(plan)
    num_ids = transform.vocabulary_size_by_name(VOCABULARY) + 1 if keys else 0
    means = None
    if label_means.has_label_means(plan.label, keys, num_ids):
        means = label_means.label_means(read_train(), plan.label, keys, num_ids)
    used = checked_columns(columns.tree_columns(plan, transform, means))

    def matrix_of(read: Callable[[], Any]) -> tuple[Any, Any, Any]:
        parts = []
        with tf.Graph().as_default(), tf1.Session() as session:
            iterator = tf1.data.make_initializable_iterator(read())
            features, labels = iterator.get_next()
            marks = features.get(inputs.HELD_OUT_KEY, tf.zeros_like(labels, tf.bool))
            fetched = (column_matrix(features, used), labels, marks)
            tables_of_words = tf1.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)
            session.run([tables_of_words, iterator.initializer])
            while True:
                try:
                    parts.append(session.run(fetched))
                except tf.errors.OutOfRangeError:
                    break
        matrix, labels, marks = (np.concatenate(values) for values in zip(*parts, strict=True))
        if plan.label.classes:
            names = [one.encode() for one in plan.label.classes]
            labels = np.array([names.index(one) for one in labels])
        return matrix, labels, marks

    rows = matrix_of(read_train)
    return plan, rows, matrix_of(lambda: inputs.read(transform, unseen, Part.ALL, 6, batch_size))


def run_side(side: str, root: pathlib.Path, args: argparse.Namespace) -> dict[str, Any]:
    """Runs one side in a process of its own, by the sources in the project's folder."""
    command = [sys.executable, str(pathlib.Path(__file__).resolve()), str(root), "--side", side]
    command += ["--model", args.model]
    for name in ("threads", "seed"):
        value = getattr(args, name)
        command += [f"--{name}", str(value)] if value is not None else []
    environment = {**os.environ, "PYTHONPATH": str(args.project), "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        command, cwd=args.project, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{side} failed on {root}:\n{done.stderr[-2_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Prints a table, or the figures of one side as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("roots", nargs="+", type=pathlib.Path, metavar="ROOT")
    parser.add_argument("--model", default="boosted_trees")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of LightGBM alone; default: the same as ours")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--project", type=pathlib.Path, default=REPOSITORY)
    parser.add_argument("--side", choices=("ours", "library"), help="run it here, and print JSON")
    args = parser.parse_args()
    args.project = args.project.resolve()
    roots = [root.resolve() for root in args.roots]
    if args.side:
        is_ours = args.side == "ours"
        print(
            json.dumps(
                train_ours(roots[0], args.model, args.seed)
                if is_ours
                else train_library(roots[0], args.threads)
            )
        )
        return
    lines = []
    for root in roots:
        pairs = [
            [run_side(side, root, args) for side in ("ours", "library")] for _ in range(args.rounds)
        ]
        figures = [
            [statistics.median(pair[who][kind] for pair in pairs) for who in (0, 1)]
            for kind in ("secs", "cpu")
        ]
        (secs, of_library), (cpu, cpu_of_library) = figures
        cells = [f"{secs:.1f}", f"{of_library:.1f}", f"{cpu:.1f}", f"{cpu_of_library:.1f}"]
        losses = [f"{pairs[0][who]['loss']:.6g}" for who in (0, 1)]
        lines.append([root.name, *cells, f"{cpu / cpu_of_library:.2f}", *losses])
    header = ["root", "ours, s", "LightGBM, s", "ours, CPU s", "LightGBM, CPU s", "CPU ratio"]
    print(tables.format_table([*header, "our loss", "LightGBM's loss"], lines))


if __name__ == "__main__":
    main()
