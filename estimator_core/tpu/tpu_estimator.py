"""TPUEstimator: an Estimator whose batch sizes are for all cores together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.execution.base import Execution
from estimator_core.execution.cluster.server import answers
from estimator_core.graphs.predictor import Predictor
from estimator_core.graphs.program import Program
from estimator_core.logs import logger
from estimator_core.spec import calling
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook, InputFn, ReceiverFn, SavingListener
from estimator_core.tpu.experimental.embedding_config_spec import EmbeddingConfigSpec
from estimator_core.tpu.hooks import (
    AllStepsHook,
    ExamplesPerSecondHook,
    LossHook,
    log_every_n_loops,
    log_every_n_steps,
)
from estimator_core.tpu.host_estimator import ConvertedModelFn, HostEstimator
from estimator_core.tpu.input_partitions import input_fn_with_partitions
from estimator_core.tpu.run_config import RunConfig
from estimator_core.tpu.serving_graph import model_fn_for_serving
from estimator_core.tpu.settings_for_shards import check_settings
from estimator_core.tpu.sharding import ShardedModes
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec
from estimator_core.tpu.user_functions import (
    RESERVED_PARAMS,
    input_fn_with_batch_size,
    model_fn_on_host,
    model_fn_on_shards,
    rebatched_input_fn,
    replaceable,
)


class TPUEstimator(Estimator):
    """An Estimator for a model_fn that is written for TPUs.

    With `use_tpu=True` it runs on virtual shards: copies of the model on CPU devices of this process,
    `TPUConfig.num_shards` of them, or 8. With `use_tpu=False` there is one copy.

    `params["batch_size"]` of input_fn and model_fn is the batch size of the mode, and `params["use_tpu"]`
    of model_fn is True on shards. `CrossShardOptimizer` may stay in place.

    Example:
        >>> estimator = TPUEstimator(  # doctest: +SKIP
        ...     model_fn,
        ...     config=RunConfig(model_dir="model"),
        ...     use_tpu=False,
        ...     train_batch_size=128,
        ...     eval_batch_size=128,
        ... )
        >>> estimator.train(input_fn, max_steps=1000)  # doctest: +SKIP

    Args:
        model_fn: See `Estimator`; takes `params`, and returns a `TPUEstimatorSpec` or, if it never
            runs on a TPU, an `EstimatorSpec`.
        model_dir: Directory of checkpoints, summaries and exports. None takes `config.model_dir`,
            or a new temporary directory.
        config: `tpu.RunConfig`; needed.
        params: Dict of hyperparameters, without the reserved keys "batch_size" and "context".
        use_tpu: Trains, evaluates and predicts on shards if true.
        train_batch_size: Examples of one training step on all cores together; needed on a TPU.
        eval_batch_size: Examples of one evaluation step on all cores together; None leaves "batch_size"
            out of `params`.
        predict_batch_size: Examples of one prediction step on all cores together.
        batch_axis: Dimension along which a batch is split into shards, for each tensor of features and
            labels; None is the first.
        eval_on_tpu: False evaluates on this machine even with `use_tpu=True`.
        export_to_tpu: Exports a graph with the tags "serve" and "tpu" if true.
        export_to_cpu: Exports a graph with the tag "serve" if true.
        warm_start_from: Checkpoint, SavedModel or `WarmStartSettings` to start from if
            `model_dir` has no checkpoint yet.
        embedding_config_spec: `EmbeddingConfigSpec` of tables to train with `use_tpu=True`, or None.
        export_saved_model_api_version: Version of the graph for TPUs, a number or an
            `ExportSavedModelApiVersion`: 1 puts the whole model on the TPU; with 2 `params["use_tpu"]` is
            True, and model_fn puts parts of the model there.

    Raises:
        ValueError: An argument is missing, out of range or contradicts another.
        TypeError: An argument has the wrong type.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimator`. Differences: shards are virtual, a
    `CrossShardOptimizer` works with `use_tpu=False` too, and without a `train_batch_size` the log has no
    examples/sec.
    """

    def __init__(
        self,
        model_fn: Callable[..., TPUEstimatorSpec | EstimatorSpec] | None = None,
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Sequence[int] | None = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: EmbeddingConfigSpec | None = None,
        export_saved_model_api_version: int = 1,
    ):
        if not isinstance(config, RunConfig):
            raise ValueError(f"config must be given, a tpu.RunConfig. Received: config={config!r}")
        is_converted = isinstance(model_fn, ConvertedModelFn)  # with the other Estimator's params
        if not is_converted and params is not None and any(key in params for key in RESERVED_PARAMS):
            raise ValueError(
                f"{RESERVED_PARAMS} are reserved keys: TPUEstimator sets them. Received: params={params}"
            )
        if model_fn is None:
            raise TypeError("model_fn must be callable. Received: model_fn=None")
        if export_saved_model_api_version not in (1, 2):
            raise ValueError(
                "export_saved_model_api_version should be 1 or 2. Received: "
                f"export_saved_model_api_version={export_saved_model_api_version!r}"
            )
        if embedding_config_spec is not None and not isinstance(embedding_config_spec, EmbeddingConfigSpec):
            raise TypeError(
                "embedding_config_spec must be a tpu.experimental.EmbeddingConfigSpec. "
                f"Received: embedding_config_spec={embedding_config_spec!r}"
            )
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        if use_tpu:
            check_settings(config, self._batch_sizes, embedding_config_spec)
        calling.check_model_fn(model_fn, params)
        self._user_model_fn = model_fn
        self._tpu_config = config.tpu_config
        self._eval_on_tpu = eval_on_tpu
        self._is_converted = is_converted
        modes = {ModeKeys.TRAIN, ModeKeys.PREDICT, *([ModeKeys.EVAL] if eval_on_tpu else [])}
        self._sharded = ShardedModes(
            frozenset(modes if use_tpu else ()),
            self._batch_sizes,
            None if batch_axis is None else tuple(batch_axis),
            self._is_converted,
            embedding_config_spec is not None,
        )
        self._config_on_host = config.replace(log_step_count_steps=None)
        self._embedding_config_spec = embedding_config_spec
        self._export_to_tpu = export_to_tpu
        self._export_to_cpu = export_to_cpu
        self._export_api_version = export_saved_model_api_version
        # ExamplesPerSecondHook logs the speed, with examples as well.
        self._log_every_n_steps = log_every_n_steps(config)
        on_host = model_fn_on_host(model_fn, self._batch_sizes)
        on_shards = model_fn_on_shards(
            model_fn, on_host, self._sharded, config.tpu_config, embedding_config_spec
        )
        on_shards, self._with_wrapper = replaceable(on_shards)
        super().__init__(
            on_shards,
            model_dir,
            self._config_on_host.with_shards(self._sharded),
            params,
            warm_start_from,
        )
        if not use_tpu and eval_on_tpu:
            logger.warning("eval_on_tpu ignored because use_tpu is False.")

    def train(
        self,
        input_fn: InputFn,
        hooks: Sequence[Hook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[SavingListener] | None = None,
    ) -> TPUEstimator:
        """Trains the model and returns this TPUEstimator.

        Args:
            input_fn: See `Estimator.train`; it takes `params`, with "batch_size".
            hooks: `SessionRunHook`s called around each step; with `use_tpu=True` around each loop of
                `TPUConfig.iterations_per_loop` steps.
            steps: Steps to train from where the model is; None trains to the end of the input.
            max_steps: Global step at which training ends; nothing happens when it was reached. With
                `use_tpu=True`, one of the two is needed.
            saving_listeners: `CheckpointSaverListener`s called around each checkpoint.

        Raises:
            ValueError: Both `steps` and `max_steps` are given, or `input_fn` takes no `params`.
            RuntimeError: It would run on another machine, or needs a feature that shards lack.
        """
        self._check_runs_here(ModeKeys.TRAIN)
        if self._runs_on_shards(ModeKeys.TRAIN) and steps is None and max_steps is None:
            raise ValueError(
                "With use_tpu=True, one of steps and max_steps must be set for training. Received: "
                "steps=None, max_steps=None"
            )
        hooks = list(hooks or ())
        batch_size = self._batch_sizes[ModeKeys.TRAIN]
        if self._log_every_n_steps:
            output_dir = self.model_dir if self.config.is_chief else None
            hooks.append(ExamplesPerSecondHook(batch_size, self._log_every_n_steps, output_dir))
            if self._runs_on_shards(ModeKeys.TRAIN):
                config: Any = self.config  # a tpu.RunConfig
                hooks.append(LossHook(log_every_n_loops(config, self._log_every_n_steps)))
        super().train(input_fn, hooks, steps, max_steps, saving_listeners)
        logger.info("training_loop marked as finished")
        return self

    def evaluate(
        self,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Returns the metrics of the model over `input_fn`; see `Estimator.evaluate`.

        `input_fn` takes `params`, with "batch_size". With `use_tpu=True`, `steps` is needed.

        Raises:
            ValueError: The input is empty, or `input_fn` takes no `params`.
            RuntimeError: It would run on another machine, or needs a feature that shards lack.
        """
        self._check_runs_here(ModeKeys.EVAL)
        if self._runs_on_shards(ModeKeys.EVAL):
            if steps is None:
                raise ValueError(
                    "With use_tpu=True, evaluation needs to know its steps; eval_on_tpu=False evaluates to "
                    "the end of the input. Received: steps=None"
                )
            hooks = [*(hooks or ()), AllStepsHook(steps)]
        results = super().evaluate(input_fn, steps, hooks, checkpoint_path, name)
        logger.info("evaluation_loop marked as finished")
        return results

    def predict(
        self,
        input_fn: InputFn,
        predict_keys: Any = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields the predictions for `input_fn`, example by example; see `Estimator.predict`.

        `input_fn` takes `params`, with "batch_size".

        Raises:
            ValueError: `input_fn` takes no `params`, or batch sizes differ.
            RuntimeError: It would run on another machine, or needs a feature that shards lack.
        """
        self._check_runs_here(ModeKeys.PREDICT)
        yield from super().predict(input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples)
        logger.info("prediction_loop marked as finished")

    def predictor(
        self, serving_input_receiver_fn: ReceiverFn, checkpoint_path: str | None = None
    ) -> Predictor:
        """Returns a function from feature values to predictions; see `Estimator.predictor`.

        Raises:
            RuntimeError: It would run on another machine, or needs a feature that shards lack.
        """
        self._check_runs_here(ModeKeys.PREDICT)
        return self._on_host().predictor(serving_input_receiver_fn, checkpoint_path)

    @property
    def batch_sizes(self) -> Mapping[str, int | None]:
        """Examples of a batch on all cores together, by mode; None where it was not given."""
        return dict(self._batch_sizes)

    def with_shards(self, num_shards: int) -> TPUEstimator:
        """Returns a TPUEstimator of the same model on `num_shards` shards, even if `use_tpu` is False.

        Raises:
            RuntimeError: The model needs a feature that shards lack, or several cores for each shard.
        """
        self._check_needs_of_shards()
        if self._embedding_config_spec is not None:
            raise RuntimeError(
                "Tables in the memory of a TPU have no place in the model of one core: leave "
                f"embedding_config_spec out. Received: {self._embedding_config_spec!r}"
            )
        cores = self._tpu_config.num_cores_per_replica
        if cores and cores > 1:
            raise RuntimeError(
                "Each shard has one core: leave num_cores_per_replica out. "
                f"Received: num_cores_per_replica={cores}"
            )
        config: Any = self.config  # a tpu.RunConfig
        tpu_config = self._tpu_config._replace(num_shards=num_shards)
        estimator = TPUEstimator(
            self._user_model_fn,
            config=config.replace(tpu_config=tpu_config),
            params=self.params,
            use_tpu=True,
            train_batch_size=self._batch_sizes[ModeKeys.TRAIN],
            eval_batch_size=self._batch_sizes[ModeKeys.EVAL],
            predict_batch_size=self._batch_sizes[ModeKeys.PREDICT],
            batch_axis=self._sharded.batch_axis,
            eval_on_tpu=self._eval_on_tpu,
            export_to_tpu=self._export_to_tpu,
        )
        estimator._model_fn = self._with_wrapper(self._model_fn, estimator._model_fn)
        return estimator

    def build_program(
        self,
        mode: str,
        input_fn: InputFn,
        starts_from_checkpoint: bool = True,
        execution: Execution | None = None,
    ) -> Program:
        """Returns the graph of one mode, built and not run; see `Estimator.build_program`."""
        batch_size, num_shards = self._batch_sizes[mode], None
        cores = self._tpu_config.num_cores_per_replica
        if self._runs_on_shards(mode):
            batch_size = self._sharded.input_batch_size(mode, self._tpu_config)
            num_shards = self._sharded.num_shards(self._tpu_config)
        if self._is_converted:
            sharding = self._sharded.sharding(mode, self._tpu_config)
            input_fn = rebatched_input_fn(
                input_fn,
                None if sharding is None else batch_size,
                mode != ModeKeys.PREDICT,
                None if sharding is None else sharding.batch_axis,
            )
        input_fn = input_fn_with_batch_size(input_fn, batch_size, num_shards, cores)
        dims = self._tpu_config.input_partition_dims
        if dims is not None and self._runs_on_shards(mode):
            input_fn = input_fn_with_partitions(input_fn, dims, cores or 1, mode)
        return super().build_program(mode, input_fn, starts_from_checkpoint, execution)

    def experimental_export_all_saved_models(
        self,
        export_dir_base: str,
        input_receiver_fn_map: Mapping[str, ReceiverFn],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Exports one SavedModel with a graph for each mode, and returns its directory.

        With `export_to_tpu`, mode PREDICT has two graphs: one with the tag "serve" for CPUs and GPUs,
        and one with "serve" and "tpu" for TPUs. `params` has no "batch_size" here: clients choose it.
        See `Estimator.experimental_export_all_saved_models` for the arguments.

        Raises:
            ValueError: Neither `export_to_cpu` nor `export_to_tpu` is True, there is no checkpoint,
                or a mode can't be exported.
            RuntimeError: `export_to_cpu` is False: a graph for TPUs alone can't export variables.
        """
        if not (self._export_to_cpu or self._export_to_tpu):
            raise ValueError(
                "One of export_to_cpu and export_to_tpu must be true. Received: export_to_cpu=False, "
                "export_to_tpu=False"
            )
        if not self._export_to_cpu:
            raise RuntimeError(
                "Exporting only a graph for TPUs needs a TPU, which saves its variables by running it. "
                "Export with export_to_cpu=True. Received: export_to_cpu=False"
            )
        return self._on_host().experimental_export_all_saved_models(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
        )

    def _on_host(self) -> Estimator:
        """Returns an Estimator of one copy of the model, without "batch_size" in its params."""
        on_tpu = None
        if self._export_to_tpu:
            model_fn = self._with_wrapper(self._model_fn, self._user_model_fn)
            on_tpu = model_fn_for_serving(model_fn, self._export_api_version)
        return HostEstimator(
            self._with_wrapper(self._model_fn, model_fn_on_host(self._user_model_fn, {})),
            on_tpu,
            self._config_on_host.replace(model_dir=self.model_dir),
            self.params,
        )

    def _runs_on_shards(self, mode: str) -> bool:
        return mode in self._sharded.modes

    def _check_runs_here(self, mode: str) -> None:
        master = self.config.evaluation_master if mode == ModeKeys.EVAL else self.config.master
        if self._runs_on_shards(mode):
            if self.config.is_in_cluster:
                raise RuntimeError(
                    "Virtual shards are in one process: leave TF_CONFIG's cluster out, or train with "
                    f"use_tpu=False. Received: a cluster with {sorted(self.config.cluster_spec.jobs)}"
                )
            self._check_needs_of_shards()
            if master:
                raise RuntimeError(
                    "Virtual shards are on CPU devices of this process: leave master, evaluation_master and "
                    f"cluster out of tpu.RunConfig. Received: master={master!r}"
                )
        address = master.partition("://")[2]
        has_port = address.rpartition(":")[2].isdecimal()
        if address and not self.config.is_in_cluster and not (has_port and answers(address)):
            raise RuntimeError(
                "No TensorFlow server answers: start it, correct its address (grpc://host:port), or leave "
                "master, evaluation_master and cluster out of tpu.RunConfig to run in this process. "
                f"Received: master={master!r}"
            )

    def _check_needs_of_shards(self) -> None:
        spec = self._embedding_config_spec
        if spec is not None and spec.feature_columns is None:
            raise RuntimeError(
                "Virtual shards support only the tables of feature_columns: leave feature_to_config_dict and "
                f"table_to_config_dict out of EmbeddingConfigSpec. Received: {spec!r}"
            )
