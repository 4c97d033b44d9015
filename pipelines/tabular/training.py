"""The generic `trainer_fn`: a DNNLinearCombined estimator, driven by a `TabularPlan`."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core
from estimator_core.export import (
    EvalInputReceiver,
    ServingInputReceiver,
    build_parsing_serving_input_receiver_fn,
)
from pipelines.tabular.best_checkpoint import BestCheckpointExporter
from pipelines.tabular.held_out import Part, only
from pipelines.tabular.plan import LABEL_KEY, TabularPlan, TrainingPlan
from pipelines.tabular.preprocessing import (
    BUCKET_KEY,
    IS_MISSING_KEY,
    NUMERIC_KEY,
    VOCABULARY,
    category_key,
    text_key,
)
from pipelines.tabular.rescaled_regressor import rescaled_regressor

EXPORTER_NAME = "tabular"
_PATIENCE = 3  # evaluations without a lower loss
_TEXT_DIMENSION = 16
_SHUFFLE_BUFFER = 20_000
_CACHED_EXAMPLES_BYTES = 256 << 20  # compressed; smaller training data stay in memory


def trainer_fn(trainer_fn_args: Any, schema: Any) -> dict[str, Any]:
    """Returns the estimator and what trains, evaluates and exports it.

    Args:
      trainer_fn_args: TFX's `TrainerFnArgs`.
      schema: Of the raw data.

    Returns:
      A dict with `estimator`, `train_spec`, `eval_spec` and `eval_input_receiver_fn`.
    """
    plan = TabularPlan.from_custom_config(trainer_fn_args.custom_config)
    training = plan.training
    transform = tft.TFTransformOutput(trainer_fn_args.transform_output)
    receive_serving = _serving_input_receiver_fn(plan, transform, schema)
    max_steps = trainer_fn_args.train_steps or training.train_steps
    estimator = build_estimator(plan, transform, trainer_fn_args.serving_model_dir)
    # In a cluster, each task that trains reads the data in an order of its own.
    seed = training.seed + (estimator.config.global_id_in_cluster or 0)
    hooks: list[Any] = []
    exporter: estimator_core.Exporter
    if training.early_stopping:
        train_part, eval_part, eval_files = Part.TRAIN, Part.VALIDATION, trainer_fn_args.train_files
        exporter = BestCheckpointExporter(EXPORTER_NAME, receive_serving)
        every = estimator.config.save_checkpoints_steps
        hooks.append(
            estimator_core.experimental.stop_if_no_decrease_hook(
                estimator,
                "loss",
                max_steps_without_decrease=_PATIENCE * every,
                eval_dir=estimator.eval_dir(EXPORTER_NAME),
                run_every_secs=None,
                run_every_steps=every,
            )
        )
    else:
        train_part, eval_part, eval_files = Part.ALL, Part.ALL, trainer_fn_args.eval_files
        exporter = estimator_core.FinalExporter(EXPORTER_NAME, receive_serving)
    return {
        "estimator": estimator,
        "train_spec": estimator_core.TrainSpec(
            input_fn=lambda: _read(
                transform, trainer_fn_args.train_files, plan, train_part, shuffle_seed=seed
            ),
            max_steps=max_steps,
            hooks=hooks,
        ),
        "eval_spec": estimator_core.EvalSpec(
            input_fn=lambda: _read(transform, eval_files, plan, eval_part),
            steps=training.eval_steps,
            exporters=[exporter],
            name=EXPORTER_NAME,
            start_delay_secs=0,
            throttle_secs=0 if training.early_stopping else 60,
        ),
        "eval_input_receiver_fn": _eval_input_receiver_fn(plan, transform, schema),
    }


def build_estimator(plan: TabularPlan, transform: tft.TFTransformOutput, model_dir: str) -> Any:
    """Returns the DNNLinearCombined estimator of the plan."""
    training = plan.training
    linear, dnn = _feature_columns(plan, transform)
    settings: dict[str, Any] = {
        "model_dir": model_dir,
        "linear_feature_columns": linear,
        "linear_optimizer": tf.keras.optimizers.Adam(training.linear_learning_rate),
        "dnn_feature_columns": dnn,
        "dnn_optimizer": tf.keras.optimizers.Adam(training.learning_rate),
        "dnn_hidden_units": list(training.hidden_units),
        "dnn_dropout": training.dropout or None,
        "config": estimator_core.RunConfig(
            model_dir=model_dir,
            tf_random_seed=training.seed,
            save_checkpoints_steps=_save_checkpoints_steps(training),
            keep_checkpoint_max=2,
        ),
    }
    if plan.label.problem_type == "regression":
        return rescaled_regressor(mean=plan.label.mean, stddev=plan.label.stddev, **settings)
    return estimator_core.DNNLinearCombinedClassifier(
        n_classes=len(plan.label.classes), label_vocabulary=list(plan.label.classes), **settings
    )


def _save_checkpoints_steps(training: TrainingPlan) -> int:
    """Returns the steps between checkpoints; with early stopping each of them is evaluated."""
    if training.early_stopping:
        return max(50, min(1_000, training.train_steps // 8))
    return max(100, min(1_000, training.train_steps // 5))


def _feature_columns(
    plan: TabularPlan, transform: tft.TFTransformOutput
) -> tuple[list[Any], list[Any]]:
    """Returns the columns of the linear part and those of the DNN."""
    columns = tf.feature_column
    linear: list[Any] = []
    dnn: list[Any] = []
    if plan.numeric:
        num_ids = len(plan.numeric) * (plan.num_buckets + 1)
        linear.append(columns.categorical_column_with_identity(BUCKET_KEY, num_ids))
        dnn.append(columns.numeric_column(NUMERIC_KEY, shape=(len(plan.numeric),)))
        num_missing = sum(part.has_missing for part in plan.numeric)
        if num_missing:
            dnn.append(columns.numeric_column(IS_MISSING_KEY, shape=(num_missing,)))
    for index, part in enumerate(plan.categorical):
        num_ids = part.hash_buckets or transform.vocabulary_size_by_name(VOCABULARY) + 1
        ids = columns.categorical_column_with_identity(category_key(index), num_ids)
        linear.append(ids)
        dnn.append(columns.embedding_column(ids, dimension=_embedding_dimension(part.num_values)))
    for index, text in enumerate(plan.text):
        ids = columns.categorical_column_with_identity(text_key(index), text.hash_buckets)
        linear.append(ids)
        dnn.append(columns.embedding_column(ids, dimension=_TEXT_DIMENSION, combiner="sqrtn"))
    return linear, dnn


def _embedding_dimension(num_values: int) -> int:
    return min(16, round(2 * num_values**0.25))


def _read(
    transform: tft.TFTransformOutput,
    files: Any,
    plan: TabularPlan,
    part: Part = Part.ALL,
    shuffle_seed: int | None = None,
) -> Any:
    """Returns a dataset of (features, label) batches from transformed examples.

    To train, they are shuffled and repeat without end; without a seed they come once, in order.
    """
    paths = sorted(tf.io.gfile.glob(files))
    dataset = only(part, tf.data.TFRecordDataset(paths, compression_type="GZIP"))
    if shuffle_seed is not None:
        if sum(tf.io.gfile.stat(path).length for path in paths) <= _CACHED_EXAMPLES_BYTES:
            dataset = dataset.cache()
        dataset = dataset.shuffle(_SHUFFLE_BUFFER, seed=shuffle_seed).repeat()
    spec = transform.transformed_feature_spec()

    def parse(serialized: Any) -> tuple[dict[str, Any], Any]:
        features = tf.io.parse_example(serialized, spec)
        return features, features.pop(LABEL_KEY)

    batches = dataset.batch(plan.training.batch_size).map(
        parse, num_parallel_calls=tf.data.AUTOTUNE
    )
    return batches.prefetch(tf.data.AUTOTUNE)


def _raw_feature_spec(schema: Any) -> dict[str, Any]:
    return dict(schema_utils.schema_as_feature_spec(schema).feature_spec)


def _serving_input_receiver_fn(
    plan: TabularPlan, transform: tft.TFTransformOutput, schema: Any
) -> Callable[[], ServingInputReceiver]:
    """Serialized raw tf.Examples without a label -> transformed features."""

    def serving_input_receiver_fn() -> ServingInputReceiver:
        spec = _raw_feature_spec(schema)
        spec.pop(plan.label.column)
        raw = build_parsing_serving_input_receiver_fn(spec)()
        features = dict(transform.transform_raw_features(raw.features))
        features.pop(LABEL_KEY, None)
        return ServingInputReceiver(features, raw.receiver_tensors)

    return serving_input_receiver_fn


def _eval_input_receiver_fn(
    plan: TabularPlan, transform: tft.TFTransformOutput, schema: Any
) -> Callable[[], EvalInputReceiver]:
    """Serialized raw tf.Examples -> transformed features and label."""

    def eval_input_receiver_fn() -> EvalInputReceiver:
        raw = build_parsing_serving_input_receiver_fn(_raw_feature_spec(schema))()
        features = dict(transform.transform_raw_features(raw.features))
        return EvalInputReceiver(features, raw.receiver_tensors, features.pop(LABEL_KEY))

    return eval_input_receiver_fn
