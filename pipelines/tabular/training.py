"""Generic `trainer_fn`: a canned Estimator, or the best of several, driven by a `TabularPlan`."""

import logging
import math
import os
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import schema_pb2

import estimator_core
from components.errors import SettingError
from components.tfx.decision_file import DECISION_FILE, INTERVAL_FILE
from pipelines.config.trainer import describe_goal
from pipelines.data.formats.cell_format import FILE, TEXT_FILE, CellFormat, TextFormat, formats_to_json
from pipelines.tabular.best_checkpoint import LOSS, BestCheckpointExporter
from pipelines.tabular.columns import keys_of_words
from pipelines.tabular.decision import Decision, choose_decision, deciding, read_decision, write_decision
from pipelines.tabular.estimators import build_estimator
from pipelines.tabular.held_out import HeldOut
from pipelines.tabular.inputs import (
    Part,
    check_held_out,
    eval_input_receiver_fn,
    in_memory,
    read,
    read_marked,
    serving_input_receiver_fn,
)
from pipelines.tabular.interval import choose_interval, read_interval, with_interval, write_interval
from pipelines.tabular.label_means import TextMeans, has_label_means, has_text_means, label_means, num_means
from pipelines.tabular.model_selection import Combination, Training, select_model
from pipelines.tabular.plan import WEIGHT_KEY, ModelName, TabularPlan, possible_models
from pipelines.tabular.preprocessing import VOCABULARY
from pipelines.tabular.tuning import with_values

EXPORTER_NAME = "tabular"
_LOGGER = logging.getLogger(__name__)
_PATIENCE = 3  # evaluations without a lower loss
_SHARE = 8  # the first rung has one in so many of the steps
_SOON_GROWN = 20_000_000  # rows times trees
_EXPECTED_TREES = 800  # early stopping leaves hardly ever more
_EVALUATIONS_OF_RUNG = 4

# In a search. The four before a trial can be pruned are half of the trees: with fewer, a low learning
# rate would always be behind.
_REPORTS_OF_TREES = 8


def trainer_fn(trainer_fn_args: Any, schema: Any) -> dict[str, Any]:
    """Returns the Estimator and the specs of its training, evaluation and export.

    With the model "auto", each model is trained here, and the best one on held-out training rows, or an
    ensemble, is returned, see `select_model`. The values of a Tuner are those of the model that they name.
    Outside of a trial, trees are grown here, too, with early stopping: the number of trees that is best on
    held-out rows is that of the trees that are returned, which learn from all rows.
    """
    configured = TabularPlan.from_custom_config(trainer_fn_args.custom_config)
    values = (trainer_fn_args.hyperparameters or {}).get("values", {})
    plan = with_values(configured, values)
    transform = tft.TFTransformOutput(trainer_fn_args.transform_output)

    def check_fold(fold: int) -> None:
        if plan.group and plan.training.early_stopping:
            one_in = plan.training.one_held_out_in
            check_held_out(transform, trainer_fn_args.train_files, one_in, plan.group, fold)

    check_fold(trainer_fn_args.trial.fold if trainer_fn_args.trial else 0)

    def prepare(model: ModelName, model_dir: str, steps: int | None = None, fold: int = 0) -> Training:
        # Only the model that a Tuner has chosen has its values.
        planned = plan if model == plan.training.model else configured
        return _training(model, model_dir, planned, transform, trainer_fn_args, schema, steps, fold)

    model_dir = trainer_fn_args.serving_model_dir
    settings = plan.training
    run_dir = trainer_fn_args.model_run_dir
    decides = plan.decides and trainer_fn_args.trial is None
    decision_file = os.path.join(run_dir, DECISION_FILE)
    if decides and isinstance(settings.decide, float):
        goal = describe_goal(settings.decide)
        write_decision(decision_file, Decision(settings.decide, plan.label.classes[1], goal))
    chooses = decides and not isinstance(settings.decide, float)
    level = None if trainer_fn_args.trial else settings.interval
    interval_file = os.path.join(run_dir, INTERVAL_FILE)

    def choose(held_out: HeldOut) -> None:
        if chooses:
            decision = choose_decision(settings.decide or "accuracy", plan.label, held_out)
            write_decision(decision_file, decision)
        if level is not None:
            write_interval(interval_file, choose_interval(level, held_out))

    is_auto = configured.training.model == "auto"
    grows_again = settings.model == "boosted_trees" and settings.early_stopping
    if trainer_fn_args.trial is None and (is_auto or grows_again or chooses or level):
        models: tuple[ModelName, ...] = possible_models(configured)
        if settings.model != "auto" and not is_auto:
            models = (settings.model,)
        folds = settings.folds if is_auto else 1
        for fold in range(1, folds):
            try:
                check_fold(fold)
            except SettingError:  # a fold without groups
                _LOGGER.warning("Only %d of %d folds have rows: there are few groups.", fold, folds)
                folds = fold
                break
        combination = Combination(
            plan.label, WEIGHT_KEY if plan.weight else None, folds, settings.time_limit or math.inf
        )
        on_held_out = choose if chooses or level is not None else None
        training = select_model(
            prepare, model_dir, run_dir, models, settings.held_out_rows, combination, on_held_out
        )
    elif settings.model == "auto":
        raise ValueError("A trial of the generic models names its model. Received: no hyperparameters")
    else:
        training = prepare(settings.model, model_dir)
    estimator = training.estimator
    if decides:
        estimator = deciding(estimator, read_decision(decision_file).threshold)
    if level is not None:
        estimator = with_interval(estimator, read_interval(interval_file))
    return {
        "estimator": estimator,
        "train_spec": training.train_spec,
        "eval_spec": training.eval_spec,
        "eval_input_receiver_fn": training.eval_input_receiver_fn,
    }


def _training(
    model: ModelName,
    model_dir: str,
    plan: TabularPlan,
    transform: tft.TFTransformOutput,
    args: Any,
    schema: Any,
    steps: int | None,
    fold: int,
) -> Training:
    settings = plan.training
    one_in = settings.one_held_out_in
    holds_out = settings.early_stopping and steps is None
    is_trees = model == "boosted_trees"
    fold = args.trial.fold if args.trial else fold
    _LOGGER.info("Steps of a tree: %d", settings.trees.steps_per_tree if is_trees else 0)

    def read_train() -> Any:
        if is_trees and holds_out:
            return read_marked(transform, args.train_files, one_in, settings.trees.batch_size, fold)
        if is_trees:  # they read all rows once
            return read(transform, args.train_files, Part.ALL, one_in, settings.trees.batch_size)
        part = Part.TRAIN if holds_out else Part.ALL
        # In a cluster, each worker reads the data in its own order.
        seed = settings.seed + (estimator.config.global_id_in_cluster or 0)
        return read(transform, args.train_files, part, one_in, settings.batch_size, seed, fold)

    train_input_fn: Any = read_train
    means = texts = derive = None
    keys, reads_text = keys_of_words(plan), has_text_means(plan)
    counts_words = bool(keys) and has_label_means(plan.label, keys, _num_ids(transform))
    if is_trees and (counts_words or reads_text):
        batches = list(read_train())
        if counts_words:
            means = label_means(batches, plan.label, keys, _num_ids(transform))
        if reads_text:
            texts = TextMeans(batches, plan)
            derive = texts.with_text_means
        more = texts.of_rows if texts else None
        train_input_fn = in_memory(batches, settings.trees.batch_size, more)  # read only once
    losses: dict[int, float] = {}
    between = max(1, min(settings.trees.n_trees, _EXPECTED_TREES) // _REPORTS_OF_TREES)

    def note(iterations: int, loss: float) -> None:
        step = settings.trees.steps_per_tree * iterations
        losses[step] = loss
        if args.trial and iterations % between == 0:
            args.trial.report({LOSS: loss}, step)

    report = note if holds_out else None
    estimator = build_estimator(
        model, plan, transform, model_dir, means, num_means(plan.label) if texts else 0, report
    )
    receive_serving = serving_input_receiver_fn(plan, transform, schema, derive)
    hooks: list[Any] = []
    assets_extra = _write_formats(plan, schema, args.model_run_dir)
    if plan.decides and args.trial is None:
        assets_extra[DECISION_FILE] = os.path.join(args.model_run_dir, DECISION_FILE)
    if settings.interval is not None and args.trial is None:
        assets_extra[INTERVAL_FILE] = os.path.join(args.model_run_dir, INTERVAL_FILE)
    exporter: estimator_core.Exporter = estimator_core.FinalExporter(
        EXPORTER_NAME, receive_serving, assets_extra
    )
    eval_part, eval_files = Part.ALL, args.eval_files
    if holds_out:
        eval_part, eval_files = Part.VALIDATION, args.train_files
    if holds_out and not is_trees:
        exporter = BestCheckpointExporter(EXPORTER_NAME, receive_serving, assets_extra)
        every = estimator.config.save_checkpoints_steps
        hooks.append(
            estimator_core.experimental.stop_if_no_decrease_hook(
                estimator,
                LOSS,
                max_steps_without_decrease=_PATIENCE * every,
                eval_dir=estimator.eval_dir(EXPORTER_NAME),
                run_every_secs=None,
                run_every_steps=every,
            )
        )

    def read_eval() -> Any:
        batches = read(transform, eval_files, eval_part, one_in, settings.batch_size, fold=fold)
        if derive is None:
            return batches
        with_features = tf.autograph.experimental.do_not_convert(
            lambda features, label: (derive(features), label)
        )
        return batches.map(with_features)

    def best_step() -> int:
        num_trees = int(estimator.get_variable_value("boosted_trees/finished"))
        return settings.trees.steps_per_tree * num_trees

    return Training(
        estimator=estimator,
        train_spec=estimator_core.TrainSpec(
            input_fn=train_input_fn,
            max_steps=steps
            or (settings.model != "auto" and not args.hyperparameters and args.train_steps)
            or settings.max_steps(model),
            hooks=hooks,
        ),
        eval_spec=estimator_core.EvalSpec(
            input_fn=read_eval,
            steps=settings.eval_steps,
            exporters=[exporter],
            name=EXPORTER_NAME,
            start_delay_secs=0,
            throttle_secs=0 if holds_out and not is_trees else 60,
            keeps_graph=True,
        ),
        best_step=best_step if is_trees else None,
        steps_per_tree=settings.trees.steps_per_tree if is_trees else 0,
        first_rung=_first_rung(plan, estimator) if holds_out else None,
        losses=(lambda: losses) if is_trees and holds_out else None,
        eval_input_receiver_fn=eval_input_receiver_fn(plan, transform, schema, derive),
    )


def _write_formats(plan: TabularPlan, schema: Any, folder: str) -> dict[str, str]:
    """Writes the formats of columns of text, for `assets.extra/`; empty without such columns."""
    formats = {
        part.column: CellFormat(part.number_format, part.date, part.unreadable)
        for part in plan.numeric
        if any(part.kind)
    }
    plain_numbers = {part.column: TextFormat(width=1, is_number=True) for part in plan.numeric}
    known = {**plan.text_formats, **plain_numbers}
    texts = [feature.name for feature in schema.feature if feature.type == schema_pb2.BYTES]
    text_formats = {name: known[name] for name in texts if name in known and name not in formats}
    files: dict[str, str] = {}
    for name, content in ((FILE, formats), (TEXT_FILE, text_formats)):
        if content:
            tf.io.gfile.makedirs(folder)
            files[name] = os.path.join(folder, name)
            with tf.io.gfile.GFile(files[name], "w") as stream:
                stream.write(formats_to_json(content))
    return files


def _first_rung(plan: TabularPlan, estimator: Any) -> int | None:
    """Returns the steps after which a model is compared with the others: an eighth, and some evaluations.

    None if the trees are grown in the time that it takes to pause trainings: then the others must
    beat their loss.
    """
    settings = plan.training
    num_rows = settings.held_out_rows * settings.one_held_out_in
    trees_of_iteration = len(plan.label.classes) if len(plan.label.classes) > 2 else 1
    n_trees = min(settings.trees.n_trees, _EXPECTED_TREES)
    if num_rows * n_trees * trees_of_iteration < _SOON_GROWN:
        return None
    every = estimator.config.save_checkpoints_steps
    if not every:
        return settings.trees.steps_per_tree * max(1, n_trees // _SHARE)
    return every * max(_EVALUATIONS_OF_RUNG, math.ceil(settings.train_steps / _SHARE / every))


def _num_ids(transform: tft.TFTransformOutput) -> int:
    """Returns the number of ids of words: those of the vocabulary and one of unknown words."""
    return int(transform.vocabulary_size_by_name(VOCABULARY)) + 1
