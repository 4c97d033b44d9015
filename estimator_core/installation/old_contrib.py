"""The names of tf.contrib that `install(contrib=True)` provides, and advice for others.

The names were chosen by what public Estimator programs use. docs/projects.md lists them.
"""

from __future__ import annotations

from collections.abc import Mapping

ROOT = "tensorflow.contrib"
_CORE, _EXPERIMENTAL = "estimator_core", "estimator_core.experimental"
_TF1, _LOOKUP = "tensorflow.compat.v1", "tensorflow.python.ops.lookup_ops"
_FUNCTIONS = f"{_CORE}.installation.contrib_functions"


def _all_of(module: str, *names: str, inside: str = "") -> dict[str, str]:
    return {name: f"{module}:{inside}{name}" for name in names}


# Module of tf.contrib to its names; each name to "module of today:name in it".
CONTRIB: Mapping[str, Mapping[str, str]] = {
    "": {},
    "cluster_resolver": _all_of(_TF1, "TPUClusterResolver", inside="distribute.cluster_resolver."),
    "data": _all_of(
        _TF1,
        "AUTOTUNE",
        "Counter",
        "CsvDataset",
        "bucket_by_sequence_length",
        "choose_from_datasets",
        "dense_to_sparse_batch",
        "enumerate_dataset",
        "get_single_element",
        "group_by_window",
        "ignore_errors",
        "make_batched_features_dataset",
        "make_csv_dataset",
        "map_and_batch",
        "parallel_interleave",
        "prefetch_to_device",
        "rejection_resample",
        "sample_from_datasets",
        "scan",
        "shuffle_and_repeat",
        "unbatch",
        "unique",
        inside="data.experimental.",
    )
    | _all_of(_TF1, "Dataset", "Iterator", "TFRecordDataset", "TextLineDataset", inside="data.")
    | _all_of(_FUNCTIONS, "batch_and_drop_remainder"),
    "estimator": _all_of(
        f"{_CORE}.v1",
        "BaselineEstimator",
        "DNNEstimator",
        "DNNLinearCombinedEstimator",
        "LinearEstimator",
        "add_metrics",
    )
    | _all_of(
        _EXPERIMENTAL,
        "InMemoryEvaluatorHook",
        "build_raw_supervised_input_receiver_fn",
        "call_logit_fn",
        "dnn_logit_fn_builder",
        "linear_logit_fn_builder",
        "make_early_stopping_hook",
        "make_stop_at_checkpoint_step_hook",
        "stop_if_higher_hook",
        "stop_if_lower_hook",
        "stop_if_no_decrease_hook",
        "stop_if_no_increase_hook",
    )
    | _all_of(
        _FUNCTIONS, "clip_gradients_by_norm", "forward_features", "poisson_regression_head", "regression_head"
    )
    | {
        "RNNClassifier": f"{_FUNCTIONS}:rnn_classifier",
        "RNNEstimator": f"{_FUNCTIONS}:rnn_estimator",
        "binary_classification_head": f"{_CORE}:BinaryClassHead",
        "export_all_saved_models": f"{_CORE}:Estimator.experimental_export_all_saved_models",
        "logistic_regression_head": f"{_CORE}:LogisticRegressionHead",
        "multi_class_head": f"{_CORE}:MultiClassHead",
        "multi_head": f"{_CORE}:MultiHead",
        "multi_label_head": f"{_CORE}:MultiLabelHead",
        "read_eval_metrics": f"{_CORE}.installation.old_helpers:read_eval_metrics",
    },
    "framework": _all_of(
        _TF1,
        "assert_global_step",
        "create_global_step",
        "get_global_step",
        "get_or_create_global_step",
        "init_from_checkpoint",
        "list_variables",
        "load_checkpoint",
        "load_variable",
        inside="train.",
    )
    | _all_of(_TF1, "is_tensor", "nest"),
    "layers": _all_of(
        _FUNCTIONS,
        "apply_regularization",
        "l1_l2_regularizer",
        "l1_regularizer",
        "l2_regularizer",
        "optimize_loss",
        "variance_scaling_initializer",
        "xavier_initializer",
    )
    | _all_of(_TF1, "safe_embedding_lookup_sparse", inside="nn.")
    | {
        "create_feature_spec_for_parsing": f"{_TF1}:feature_column.make_parse_example_spec",
        "xavier_initializer_conv2d": f"{_FUNCTIONS}:xavier_initializer",
    },
    "lookup": _all_of(
        _LOOKUP,
        "IdTableWithHashBuckets",
        "KeyValueTensorInitializer",
        "MutableHashTable",
        "TextFileIdTableInitializer",
        "TextFileIndex",
        "TextFileInitializer",
        "TextFileStringTableInitializer",
        "index_table_from_file",
        "index_to_string_table_from_file",
    )
    | _all_of(_FUNCTIONS, "index_table_from_tensor", "index_to_string_table_from_tensor")
    | {"HashTable": f"{_LOOKUP}:StaticHashTableV1", "MutableDenseHashTable": f"{_LOOKUP}:DenseHashTable"},
    "tpu": _all_of(
        f"{_CORE}.tpu",
        "CrossShardOptimizer",
        "InputPipelineConfig",
        "RunConfig",
        "TPUConfig",
        "TPUEstimator",
        "TPUEstimatorSpec",
        "cross_replica_sum",
    )
    | _all_of(
        _TF1,
        "batch_parallel",
        "bfloat16_scope",
        "core",
        "initialize_system",
        "outside_compilation",
        "replicate",
        "rewrite",
        "shard",
        "shutdown_system",
        inside="tpu.",
    )
    | {"AsyncCheckpointSaverHook": f"{_CORE}:CheckpointSaverHook"},
    "training": _all_of(f"{_CORE}.installation.hparams", "HParams")
    | _all_of(_TF1, "checkpoints_iterator", inside="train."),
}

_LAYERS = "tf.compat.v1.layers.{}, with tf_keras and TF_USE_LEGACY_KERAS=1"
_COLUMN = "tf.feature_column.{}"
_METRICS = "tf.compat.v1.metrics, whose functions take the labels first"
_RECURRENT = "tf.compat.v1.nn.rnn_cell and dynamic_rnn, with tf_keras and TF_USE_LEGACY_KERAS=1"
_STRATEGY = "tf.distribute.MirroredStrategy(devices) in RunConfig(train_distribute=...)"
_TREES = "estimator_core.BoostedTreesClassifier or BoostedTreesRegressor"
_OWN_COPY = "a copy of the function in your project; no package for this TensorFlow has it"

# Advice for missing names and modules, by their path below tf.contrib.
CONTRIB_ADVICE = {
    "boosted_trees": _TREES,
    "cudnn_rnn": _RECURRENT,
    "crf": _OWN_COPY,
    "data.Optional": "tf.data.experimental.Optional",
    "data.padded_batch_and_drop_remainder": "Dataset.padded_batch(..., drop_remainder=True)",
    "data.sliding_window_batch": "Dataset.window",
    "distribute": _STRATEGY,
    "eager": "tf.GradientTape and tf.Variable",
    "estimator.SavedModelEstimator": "warm_start_from= with the directory of the SavedModel",
    "estimator.TowerOptimizer": _STRATEGY,
    "estimator.boosted_trees_classifier_train_in_memory": _TREES,
    "estimator.boosted_trees_regressor_train_in_memory": _TREES,
    "estimator.export_saved_model_for_mode": "estimator.export_saved_model(..., experimental_mode=mode)",
    "estimator.replicate_model_fn": _STRATEGY,
    "factorization": "estimator_core.experimental.KMeans for KMeansClustering",
    "feature_column": "the sequence columns of tf.feature_column",
    "framework.arg_scope": "functools.partial",
    "framework.assign_from_checkpoint_fn": "tf.compat.v1.train.init_from_checkpoint",
    "framework.get_variables": "tf.compat.v1.get_collection",
    "framework.get_variables_to_restore": "tf.compat.v1.get_collection",
    "image": "tf.image, or " + _OWN_COPY,
    "layers.batch_norm": _LAYERS.format("batch_normalization"),
    "layers.bucketized_column": _COLUMN.format("bucketized_column"),
    "layers.conv2d": _LAYERS.format("conv2d(..., activation=tf.nn.relu)"),
    "layers.crossed_column": _COLUMN.format("crossed_column"),
    "layers.dropout": "tf.nn.dropout(x, rate=1 - keep_prob) in mode TRAIN",
    "layers.embed_sequence": "tf.nn.embedding_lookup",
    "layers.embedding_column": _COLUMN.format("embedding_column"),
    "layers.flatten": "tf.reshape(x, [-1, size])",
    "layers.fully_connected": _LAYERS.format("dense(..., activation=tf.nn.relu)"),
    "layers.layer_norm": "tf.keras.layers.LayerNormalization",
    "layers.linear": _LAYERS.format("dense"),
    "layers.max_pool2d": "tf.nn.max_pool2d",
    "layers.one_hot_column": _COLUMN.format("indicator_column"),
    "layers.one_hot_encoding": "tf.one_hot",
    "layers.real_valued_column": _COLUMN.format("numeric_column"),
    "layers.sparse_column_with_hash_bucket": _COLUMN.format("categorical_column_with_hash_bucket"),
    "layers.sparse_column_with_integerized_feature": _COLUMN.format("categorical_column_with_identity"),
    "layers.sparse_column_with_keys": _COLUMN.format("categorical_column_with_vocabulary_list"),
    "learn": "the Estimators of estimator_core, and its train_and_evaluate instead of Experiment",
    "losses": "tf.compat.v1.losses, whose functions take the labels first",
    "lite": "tf.lite",
    "metrics": _METRICS,
    "opt": "tf.compat.v1.train, or tf.keras.optimizers for AdamW",
    "predictor": "tf.saved_model.load(directory).signatures['serving_default'], or Estimator.predictor",
    "rnn": _RECURRENT,
    "saved_model": "tf.saved_model",
    "seq2seq": _OWN_COPY,
    "slim": "tf.compat.v1.layers, with tf_keras and TF_USE_LEGACY_KERAS=1; tf_slim 1.1.0 fails here",
    "summary": "tf.compat.v1.summary",
    "tensorboard": "the package tensorboard",
    "tpu.TPUDistributionStrategy": "TPUEstimator(use_tpu=True), which trains on virtual shards",
    "tpu.keras_to_tpu_model": "estimator_core.model_to_estimator, and estimator_core.tpu.to_tpu_estimator",
    "training.train": "tf.compat.v1.train.MonitoredTrainingSession, or an Estimator",
}
