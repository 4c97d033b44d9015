"""Estimator: trains, evaluates, predicts with and exports a model that a `model_fn` defines."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import summaries, tf1
from estimator_core.checkpoints import latest, reader, warm_start_settings
from estimator_core.execution.base import Execution
from estimator_core.execution.evaluation_metrics import with_metric_ops
from estimator_core.execution.select import select_execution
from estimator_core.export.saved_model import SavedModelWriter
from estimator_core.former_members import FormerMembers, check_obeyed, check_overrides
from estimator_core.graphs import loops, predictions
from estimator_core.graphs.build import Model, build, build_for_receiver
from estimator_core.graphs.predictor import Predictor
from estimator_core.graphs.program import Program
from estimator_core.graphs.restoring import RestoringSessionCreator
from estimator_core.keras_in_graph.calling import call_model_fn
from estimator_core.logs import logger
from estimator_core.run_config import RunConfig
from estimator_core.spec import calling
from estimator_core.spec.arguments import checked_instances, checked_steps, config_with_model_dir
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.export_outputs import EvalOutput, ExportOutput, TrainOutput
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.settled import take_fingerprint
from estimator_core.spec.types import Hook, InputFn, ModelFn, ReceiverFn, SavingListener


class Estimator(FormerMembers):
    """Trains and evaluates a TensorFlow model, and exports it for serving.

    All state is in `model_dir`: an Estimator made for a directory that holds checkpoints continues
    from the newest.

    Example:
        >>> estimator = Estimator(model_fn, model_dir="model")  # doctest: +SKIP
        >>> estimator.train(input_fn, max_steps=1000)  # doctest: +SKIP
        >>> estimator.evaluate(eval_input_fn)["loss"]  # doctest: +SKIP

    Args:
        model_fn: Function of (features, labels, mode, params, config), all but the first optional,
            that builds the model and returns an `EstimatorSpec`.
        model_dir: Directory of checkpoints, summaries and exports. None takes `config.model_dir`,
            or a new temporary directory.
        config: `RunConfig`; None takes the defaults.
        params: Dict of hyperparameters for `model_fn`.
        warm_start_from: Checkpoint, SavedModel or `WarmStartSettings` to start from when
            `model_dir` has no checkpoint yet.

    Raises:
        ValueError: An argument contradicts another, or `model_fn` can't be called.

    Source: `tf.estimator.Estimator`, and `tf.compat.v1.estimator.Estimator`, which is the same class here.
    """

    def __init__(
        self,
        model_fn: ModelFn,
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ):
        type(self)._assert_members_are_not_overridden(self)  # noqa: SLF001
        check_obeyed(type(self))
        calling.check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy({} if params is None else params)
        self._config = config_with_model_dir(config, model_dir)
        self._model_dir = self._config.model_dir or ""  # subclasses of tf.estimator's time read it
        self._warm_start_settings = warm_start_settings.as_settings(warm_start_from)
        logger.info("Using config: %s", self._config)

    @staticmethod
    def _assert_members_are_not_overridden(estimator: Estimator) -> None:
        """Refuses a subclass that overrides members.

        Old programs replace this function to switch the check off.
        """
        check_overrides(type(estimator), Estimator)

    @property
    def model_dir(self) -> str:
        """Directory of checkpoints, summaries and exports."""
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """The settings of this run."""
        return self._config

    @property
    def params(self) -> Any:
        """A copy of the hyperparameters."""
        return copy.deepcopy(self._params)

    @property
    def warm_start_settings(self) -> warm_start_settings.WarmStartSettings | None:
        """Settings of the warm start while `model_dir` has no checkpoint; None starts from initializers."""
        return self._warm_start_settings

    @property
    def model_fn(self) -> ModelFn:
        """The model function, as a function of (features, labels, mode, config)."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return with_metric_ops(self._call_model_fn(features, labels, mode, config))

        return public_model_fn

    # Training

    def train(
        self,
        input_fn: InputFn,
        hooks: Sequence[Hook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[SavingListener] | None = None,
    ) -> Estimator:
        """Trains the model and returns this Estimator.

        Args:
            input_fn: Function that returns a `tf.data.Dataset` of (features, labels), or such
                tensors; it may take `mode`, `params`, `config`.
            hooks: `SessionRunHook`s called around each step.
            steps: Steps to train from where the model is; None trains to the end of the input.
            max_steps: Global step at which training ends; nothing happens when it was reached.
            saving_listeners: `CheckpointSaverListener`s called around each checkpoint.

        Raises:
            ValueError: Both `steps` and `max_steps` are given, or one is not above 0.
        """
        steps, max_steps = checked_steps("steps", steps), checked_steps("max_steps", max_steps)
        if steps is not None and max_steps is not None:
            raise ValueError(
                f"Can not provide both steps and max_steps. Received: steps={steps}, max_steps={max_steps}"
            )
        hooks = list(checked_instances(hooks, "hooks"))
        listeners = checked_instances(saving_listeners, "saving_listeners", tf1.train.CheckpointSaverListener)
        if max_steps is not None:
            if reader.saved_global_step(self.model_dir) >= max_steps:
                logger.info("Skipping training since max_steps has already saved.")
                return self
            hooks.append(tf1.train.StopAtStepHook(last_step=max_steps))
        elif steps is not None:
            hooks.append(tf1.train.StopAtStepHook(num_steps=steps))

        program = self.build_program(ModeKeys.TRAIN, input_fn, bool(self.latest_checkpoint()))
        trained = loops.train(program, hooks, listeners)
        if trained.input_ended and (steps or max_steps):
            logger.warning(
                "The input ended at global step %s, before steps=%s, max_steps=%s. Let the dataset "
                "repeat() to train on.",
                trained.global_step,
                steps,
                max_steps,
            )
        logger.info("Loss for final step: %s.", trained.loss)
        return self

    # Evaluation

    def evaluate(
        self,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Returns the metrics of the model over `input_fn`, and writes them as summaries.

        Args:
            input_fn: See `train`.
            steps: Batches to evaluate; None goes to the end of the input.
            hooks: `SessionRunHook`s called around each batch.
            checkpoint_path: Checkpoint to evaluate; None takes the newest, or the initial
                variables when there is none.
            name: Name of this evaluation: its summaries go to `eval_<name>`.

        Returns:
            Metric name to NumPy value, with "loss" (mean over batches) and "global_step".

        Raises:
            ValueError: `steps` is not above 0, or a metric is named "loss".
        """
        steps = checked_steps("steps", steps)
        hooks = checked_instances(hooks, "hooks")
        newest = self._checkpoint_to_restore(checkpoint_path, "evaluate")

        program = self.build_program(ModeKeys.EVAL, input_fn, newest() is not None)
        return self._run_evaluation(program, newest, steps, hooks, name)

    def evaluate_program(
        self,
        program: Program,
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Returns the metrics like `evaluate`, by a graph that may have been used before.

        It saves the time to build a graph. What `input_fn` and `model_fn` read is as it was when the graph
        was built.

        Args:
            program: Graph of mode EVAL, from `build_program`.
            steps: See `evaluate`.
            hooks: See `evaluate`.
            checkpoint_path: See `evaluate`.
            name: See `evaluate`.

        Raises:
            ValueError: See `evaluate`.
        """
        steps = checked_steps("steps", steps)
        hooks = checked_instances(hooks, "hooks")
        newest = self._checkpoint_to_restore(checkpoint_path, "evaluate")
        return self._run_evaluation(program, newest, steps, hooks, name)

    def _run_evaluation(
        self,
        program: Program,
        newest: Callable[[], str | None],
        steps: int | None,
        hooks: Sequence[Hook],
        name: str | None,
    ) -> dict[str, Any]:
        has_hooks = bool(hooks or program.spec.evaluation_hooks)
        restoring = RestoringSessionCreator(program, newest, has_hooks)
        results = loops.evaluate(program, restoring, steps, hooks)
        step = int(results[tf1.GraphKeys.GLOBAL_STEP])
        eval_dir = self.eval_dir(name)
        summaries.write_evaluation(eval_dir, results, step)
        if restoring.checkpoint_path:
            summaries.write_checkpoint_path(eval_dir, restoring.checkpoint_path, step)
        return results

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the directory of evaluation summaries: `eval`, or `eval_<name>`."""
        return os.path.join(self.model_dir, "eval" if not name else f"eval_{name}")

    # Prediction

    def predict(
        self,
        input_fn: InputFn,
        predict_keys: Any = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields the predictions for `input_fn`, example by example.

        Args:
            input_fn: See `train`; labels, if any, are left out.
            predict_keys: Names of the predictions to yield; None yields all. Only for a `model_fn`
                whose predictions are a dict.
            hooks: `SessionRunHook`s called around each batch.
            checkpoint_path: Checkpoint to predict with; None takes the newest, or the initial
                variables when there is none.
            yield_single_examples: False yields whole batches.

        Yields:
            Dict of name to NumPy value, or a NumPy value when predictions are a `Tensor`.

        Raises:
            ValueError: `predict_keys` names none of the predictions, or batch sizes differ.
        """
        hooks = checked_instances(hooks, "hooks")
        newest = self._checkpoint_to_restore(checkpoint_path, "predict")

        if hooks or type(self).build_program is not Estimator.build_program:
            program = self.build_program(ModeKeys.PREDICT, input_fn, newest() is not None)
            batches = predictions.batches_of_program(program, predict_keys, newest, hooks)
        else:
            execution = select_execution(self._config, ModeKeys.PREDICT)
            batches = predictions.batches_of_model(
                self, self._model_now(), execution, input_fn, predict_keys, newest
            )
        yield from predictions.split_examples(batches) if yield_single_examples else batches

    def predictor(
        self, serving_input_receiver_fn: ReceiverFn, checkpoint_path: str | None = None
    ) -> Predictor:
        """Returns a function from feature values to predictions, for many small predictions.

        Its graph is built once; it follows the newest checkpoint.

        Example:
            >>> receiver_fn = export.build_raw_serving_input_receiver_fn(
            ...     {"x": tf.TensorSpec([None], tf.float32)}
            ... )
            >>> with estimator.predictor(receiver_fn) as predict:  # doctest: +SKIP
            ...     predict({"x": [1.0, 2.0]})

        Args:
            serving_input_receiver_fn: See `export_saved_model`; its receiver tensors are the values to feed.
            checkpoint_path: Checkpoint to predict with; None takes the newest at each call.

        Raises:
            ValueError: There is no checkpoint.
        """
        if not (checkpoint_path or self.latest_checkpoint()):
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        program, receiver = self._build_for_receiver(
            self._model_now(), ModeKeys.PREDICT, serving_input_receiver_fn
        )
        follow = self._checkpoint_to_restore(checkpoint_path, "predict")
        return Predictor(program, receiver.receiver_tensors, follow)

    # Export

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: ReceiverFn,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Exports the model as a SavedModel and returns its directory, a timestamp below the base.

        Args:
            export_dir_base: Directory that holds the exports.
            serving_input_receiver_fn: Function without arguments that returns a
                `ServingInputReceiver` or `TensorServingInputReceiver`.
            assets_extra: Paths below `assets.extra/` to the files to copy there.
            as_text: Writes the graph as text if true.
            checkpoint_path: Checkpoint to export; None takes the newest.
            experimental_mode: The mode whose graph is exported.

        Raises:
            ValueError: There is no checkpoint, or no signature can be exported.
        """
        if serving_input_receiver_fn is None:
            raise ValueError("serving_input_receiver_fn must be defined. Received: None")
        return self.experimental_export_all_saved_models(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
        )

    def export_savedmodel(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: ReceiverFn,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Exports a SavedModel: the name of `export_saved_model` until TensorFlow 1.13.

        `strip_default_attrs` is not used: attributes at their defaults are always left out, which
        TensorFlow reads as the same model.

        Source: `tf.compat.v1.estimator.Estimator.export_savedmodel`.
        """
        del strip_default_attrs
        return self.export_saved_model(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: str,
        input_receiver_fn_map: Mapping[str, ReceiverFn],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Exports one SavedModel with a graph for each mode, and returns its directory.

        A graph of mode EVAL has the signature "eval", with loss, predictions and metrics, and with
        the labels when its receiver gives them; one of mode TRAIN has the signature "train", and
        its train op.

        Args:
            export_dir_base: Directory that holds the exports.
            input_receiver_fn_map: Mode to the function that returns its receiver.
            assets_extra: Paths below `assets.extra/` to the files to copy there.
            as_text: Writes the graph as text if true.
            checkpoint_path: Checkpoint to export; None takes the newest.

        Raises:
            ValueError: There is no checkpoint, no mode is given, or a mode can't be exported.
        """
        return self._export_all_saved_models(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
        )

    def _export_all_saved_models(
        self,
        export_dir_base: str,
        input_receiver_fn_map: Mapping[str, ReceiverFn],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = True,
    ) -> bytes:
        """Exports the modes. Subclasses written for tf.estimator may override it."""
        del strip_default_attrs
        checkpoint_path = checkpoint_path or self.latest_checkpoint()
        if not checkpoint_path:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        modes = [mode for mode in ModeKeys.ALL if input_receiver_fn_map.get(mode)]
        if not modes or set(input_receiver_fn_map) - set(modes):
            raise ValueError(
                f"A model can be exported for the modes {ModeKeys.ALL}, with a function for each. "
                f"Received: {dict(input_receiver_fn_map)}"
            )
        base = tf.compat.as_str_any(export_dir_base)
        with SavedModelWriter(base, assets_extra, as_text) as writer:
            for mode in modes:
                receiver_fn = input_receiver_fn_map[mode]
                self._export_mode(writer, mode, receiver_fn, os.fspath(checkpoint_path))
        return tf.compat.as_bytes(writer.path)

    def _export_mode(
        self, writer: SavedModelWriter, mode: str, receiver_fn: ReceiverFn, checkpoint_path: str
    ) -> None:
        for model, tags in self._graphs_to_export(mode):
            program, receiver = self._build_for_receiver(model, mode, receiver_fn)
            spec = program.spec
            with program.scope():
                outputs: Mapping[str, ExportOutput] = spec.export_outputs or {}
                parts = (spec.loss, spec.predictions, spec.eval_metric_ops)
                if spec.mode == ModeKeys.EVAL:
                    labels = getattr(receiver, "labels", None)
                    outputs = {ModeKeys.EVAL: EvalOutput(*parts, labels, receiver.features)}
                elif spec.mode == ModeKeys.TRAIN:
                    outputs = {ModeKeys.TRAIN: TrainOutput(*parts)}
                writer.add(
                    mode,
                    spec,
                    outputs,
                    receiver.receiver_tensors,
                    getattr(receiver, "receiver_tensors_alternatives", None),
                    checkpoint_path,
                    self._config.session_config,
                    tags,
                )

    def _graphs_to_export(self, mode: str) -> Iterator[tuple[Model, Sequence[str]]]:
        """Yields the models to export for a mode, each with its tags; () means the tags of the mode."""
        del mode
        yield self._model_now(), ()

    # Graphs

    # Not `_model`: subclasses store their own model under that name.
    def _model_now(self) -> Model:
        """Returns the model as it is now: old programs replace `_model_fn` and `_params`."""
        return Model(
            self._call_model_fn,
            self._call_input_fn,
            self._create_and_assert_global_step,
            self.config,
            self._warm_start_settings,
            self._fingerprint_of_model,
        )

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        return call_model_fn(self._model_fn, features, labels, mode, self.params, config)

    def _call_input_fn(self, input_fn: InputFn, mode: str, input_context: Any = None) -> Any:
        return calling.call_input_fn(input_fn, mode, self.params, self.config, input_context)

    def _fingerprint_of_model(self) -> Any:
        is_own = getattr(self._call_model_fn, "__func__", None) is Estimator._call_model_fn
        return take_fingerprint(self._model_fn) if is_own else None

    def build_program(
        self,
        mode: str,
        input_fn: InputFn,
        starts_from_checkpoint: bool = True,
        execution: Execution | None = None,
    ) -> Program:
        """Returns the graph of one mode, built by calling `input_fn` and `model_fn`, and not run.

        Args:
            mode: One of `ModeKeys`.
            input_fn: See `train`.
            starts_from_checkpoint: True if variables will be restored; False initializes them by
                `warm_start_from` and their initializers.
            execution: Execution to build the graph for; None selects it by `config`.
        """
        execution = execution or select_execution(self._config, mode)
        return build(self._model_now(), execution, mode, input_fn, starts_from_checkpoint)

    def _build_for_receiver(self, model: Model, mode: str, receiver_fn: ReceiverFn) -> tuple[Program, Any]:
        # One copy of the model, as for prediction, however many replicas trained it.
        execution = select_execution(self._config, ModeKeys.PREDICT)
        return build_for_receiver(model, execution, mode, receiver_fn)

    def _create_and_assert_global_step(self, graph: tf.Graph) -> Any:
        """Returns the new global step of a graph. Subclasses written for tf.estimator may override it."""
        return tf1.train.create_global_step(graph)

    # Checkpoints

    def latest_checkpoint(self) -> str | None:
        """Returns the path of the newest checkpoint whose files are whole; None when there is none.

        Raises:
            ValueError: There are checkpoints, and none is whole.
        """
        return latest.latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """Returns the names of all variables in the newest checkpoint.

        Raises:
            ValueError: There is no checkpoint yet.
        """
        return reader.variable_names(self.model_dir)

    def get_variable_value(self, name: str) -> Any:
        """Returns the value of a variable in the newest checkpoint, a NumPy array.

        Raises:
            ValueError: There is no checkpoint yet, or no such variable.
        """
        return reader.variable_value(self.model_dir, name)

    def _checkpoint_to_restore(self, checkpoint_path: str | None, purpose: str) -> Callable[[], str | None]:
        """Returns a function that returns the checkpoint; always None if there is none now."""
        if checkpoint_path:
            return lambda: os.fspath(checkpoint_path)
        if self.latest_checkpoint():
            return self.latest_checkpoint
        logger.info(
            "Could not find trained model in model_dir: %s, running initialization to %s.",
            self.model_dir,
            purpose,
        )
        return lambda: None
