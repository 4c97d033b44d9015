"""Writer of SavedModels: graphs by mode, one checkpoint, published atomically."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints import reader
from estimator_core.logs import logger
from estimator_core.run_config import check_path
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE, EstimatorSpec
from estimator_core.spec.export_outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from estimator_core.spec.mode_keys import ModeKeys

TAGS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "serve"}
# The method names of the kinds of signatures, in the order of the log lines.
_METHOD_NAMES = {
    "Classify": "tensorflow/serving/classify",
    "Regress": "tensorflow/serving/regress",
    "Predict": "tensorflow/serving/predict",
    "Train": "tensorflow/supervised/training",
    "Eval": "tensorflow/supervised/eval",
}
SERVING_ROWS = "serving_rows"
"""Name of the receiver tensors, and of their one signature, that are raw columns."""

_TRAIN_OP_COLLECTION = "saved_model_train_op"  # loaders look here for the operation of a step
_CHECKPOINTS = (tf.train.Checkpoint, tf1.train.Checkpoint)
_MAX_DIRECTORY_ATTEMPTS = 10


class SavedModelWriter:
    """Collects the graphs of one SavedModel and publishes it under a timestamp.

    It is written to a temporary directory and renamed at the end, so that readers see only complete
    models. On an exception the temporary directory is removed.
    """

    def __init__(
        self, export_dir_base: str, assets_extra: Mapping[str, str] | None = None, as_text: bool = False
    ):
        check_path("export_dir_base", export_dir_base)
        self.path = timestamped_directory(export_dir_base)
        head, timestamp = os.path.split(self.path)
        self._temporary = os.path.join(head, f"temp-{timestamp}")
        self._assets_extra = dict(assets_extra or {})
        self._as_text = as_text
        self._builder = tf1.saved_model.Builder(self._temporary)
        self._has_variables = False

    def __enter__(self) -> SavedModelWriter:
        return self

    def __exit__(self, exception_type: Any, exception: Any, traceback: Any) -> None:
        is_published = False
        try:
            if exception_type is None:
                self._builder.save(self._as_text)
                for name, source in self._assets_extra.items():
                    target = os.path.join(self._temporary, "assets.extra", name)
                    tf.io.gfile.makedirs(os.path.dirname(target))
                    tf.io.gfile.copy(source, target)
                _rename_directory(self._temporary, self.path)
                is_published = True
                logger.info("SavedModel written to: %s", self.path)
        finally:
            if not is_published and tf.io.gfile.exists(self._temporary):
                tf.io.gfile.rmtree(self._temporary)

    def add(
        self,
        mode: str,
        spec: EstimatorSpec,
        export_outputs: Mapping[str, ExportOutput],
        receiver_tensors: Mapping[str, Any],
        alternatives: Mapping[str, Mapping[str, Any]] | None,
        checkpoint_path: str,
        session_config: Any = None,
        tags: Sequence[str] = (),
    ) -> None:
        """Adds the default graph as the graph of `mode`, with variables from `checkpoint_path`.

        `alternatives`: further groups of tensors that may be fed instead.
        `tags`: tags of the graph; () means the tag of `mode`. A graph with tags is not run here, and must
        be added after one with the same variables.
        """
        signatures = signature_defs(export_outputs, receiver_tensors, alternatives)
        with tf1.Session(config=session_config) as session:
            scaffold = spec.scaffold
            if scaffold.local_init_op is not None:
                local_init_op = scaffold.local_init_op
            else:
                local_init_op = tf1.train.Scaffold.default_local_init_op()
            saver = scaffold.saver
            if not tags:
                saver = _restored(session, saver, mode, checkpoint_path)
            elif saver is None or isinstance(saver, _CHECKPOINTS):
                saver = tf1.train.Saver(sharded=True)
            common = {
                "signature_def_map": signatures,
                "assets_collection": tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS),
                "main_op": local_init_op,
                "saver": saver,
                "strip_default_attrs": True,
            }
            if mode == ModeKeys.TRAIN:
                tf1.add_to_collection(_TRAIN_OP_COLLECTION, spec.train_op)
            tags = list(tags) or [TAGS[mode]]
            if self._has_variables:
                self._builder.add_meta_graph(tags, **common)
            else:
                self._builder.add_meta_graph_and_variables(session, tags, **common)
                self._has_variables = True


def _rename_directory(source: str, target: str) -> None:
    tf.io.gfile.rename(source, target)
    if tf.saved_model.contains_saved_model(target):
        return
    # ram:// has renamed the directory's own entry, and left the files where they were.
    tf.io.gfile.makedirs(source)
    for folder, _, names in list(tf.io.gfile.walk(source)):
        new_folder = f"{target}{folder.removeprefix(source)}"
        tf.io.gfile.makedirs(new_folder)
        for name in names:
            tf.io.gfile.rename(os.path.join(folder, name), os.path.join(new_folder, name))
    tf.io.gfile.rmtree(source)


def _restored(session: Any, saver: Any, mode: str, checkpoint_path: str) -> Any:
    """Restores the variables of the default graph; returns the `Saver` that writes them."""
    try:
        if isinstance(saver, _CHECKPOINTS):
            saver.read(checkpoint_path).initialize_or_restore(session)
            return tf1.train.Saver(sharded=True)
        if saver is None:
            reader.check_shapes(checkpoint_path)
            saver = tf1.train.Saver(sharded=True)
        saver.restore(session, checkpoint_path)
    except tf.errors.NotFoundError as error:
        raise ValueError(
            f"Couldn't load checkpoint {checkpoint_path} into the {mode!r} graph: {error.message}"
        ) from error
    return saver


def signature_defs(
    export_outputs: Mapping[str, ExportOutput],
    receiver_tensors: Mapping[str, Any],
    alternatives: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Returns the `SignatureDef`s of all outputs for all groups of receiver tensors.

    The signatures of an alternative are `ALTERNATIVE:OUTPUT`. Those of `serving_rows` are one, of that name,
    whose outputs are the predictions.

    Outputs that the receiver tensors can't feed (classification without serialized examples, or outputs
    of other placeholders) are left out, and the log gives the reason.
    """
    groups: dict[str | None, Mapping[str, Any]] = {None: receiver_tensors}
    groups.update(alternatives or {})
    included: dict[str, Any] = {}
    excluded: dict[str, str] = {}
    for receiver_name, tensors in groups.items():
        outputs = _rows_outputs(export_outputs) if receiver_name == SERVING_ROWS else export_outputs
        for output_name, output in outputs.items():
            name = output_name if receiver_name is None else f"{receiver_name}:{output_name}"
            if receiver_name == SERVING_ROWS:
                name = SERVING_ROWS
            try:
                signature = output.as_signature_def(tensors)
                if unfed := _unfed_placeholders(signature):
                    excluded[name] = f"it needs placeholders that are not fed: {unfed}"
                else:
                    included[name] = signature
            except ValueError as error:
                excluded[name] = str(error)
                if isinstance(output, (ClassificationOutput, RegressionOutput)):
                    continue
                raise
    _log_signatures(included, excluded)
    if not included:
        raise ValueError(f"No signature can be exported. Reasons: {excluded}")
    if not included.keys() & {DEFAULT_SERVING_SIGNATURE, ModeKeys.EVAL, ModeKeys.TRAIN}:
        logger.warning("Export includes no default signature!")
    return included


def _rows_outputs(export_outputs: Mapping[str, ExportOutput]) -> dict[str, ExportOutput]:
    """Returns the output for raw columns, of a kind that takes any tensors; `predict` if there is one."""
    predict_outputs = {
        name: output for name, output in export_outputs.items() if isinstance(output, PredictOutput)
    }
    first = next((name for name in ("predict", *predict_outputs) if name in predict_outputs), None)
    return {} if first is None else {first: predict_outputs[first]}


def _unfed_placeholders(signature: Any) -> list[str]:
    """Returns the placeholders that the outputs of a signature need and its inputs do not feed."""
    graph = tf1.get_default_graph()
    fed = set(_tensor_names(signature.inputs.values()))
    pending: list[Any] = [
        graph.get_tensor_by_name(name) for name in _tensor_names(signature.outputs.values())
    ]
    seen: set[str] = set()
    unfed = []
    while pending:
        wanted = pending.pop()
        operation = wanted.op if tf.is_tensor(wanted) else wanted
        if wanted.name in fed or operation.name in seen:
            continue
        seen.add(operation.name)
        if operation.type == "Placeholder" and operation.outputs[0].name not in fed:
            unfed.append(operation.name)
        pending += [*operation.inputs, *operation.control_inputs]
    return sorted(unfed)


def _tensor_names(infos: Iterable[Any]) -> Iterator[str]:
    for info in infos:
        kind = info.WhichOneof("encoding")
        if kind == "coo_sparse":
            sparse = info.coo_sparse
            yield sparse.values_tensor_name
            yield sparse.indices_tensor_name
            yield sparse.dense_shape_tensor_name
        elif kind == "composite_tensor":
            yield from _tensor_names(info.composite_tensor.components)
        else:
            yield info.name


def _log_signatures(included: Mapping[str, Any], excluded: Mapping[str, str]) -> None:
    """Logs the names of the signatures by kind, and the reasons for the others."""
    for kind, method_name in _METHOD_NAMES.items():
        names = [name for name, value in included.items() if value.method_name == method_name]
        logger.info("Signatures INCLUDED in export for %s: %s", kind, names or None)
    if excluded:
        logger.info("Signatures EXCLUDED from export because they cannot be served:")
    for name, reason in excluded.items():
        logger.info("%r : %s", name, reason)


def timestamped_directory(
    export_dir_base: str, clock: Callable[[], float] = time.time, wait: Callable[[float], None] = time.sleep
) -> str:
    """Returns a directory named by seconds since the epoch that no other export has taken."""
    for _ in range(_MAX_DIRECTORY_ATTEMPTS):
        path = os.path.join(export_dir_base, str(int(clock())))
        if not tf.io.gfile.exists(path) and not tf.io.gfile.exists(
            os.path.join(export_dir_base, f"temp-{os.path.basename(path)}")
        ):
            return path
        wait(1)
    raise RuntimeError(
        f"Failed to obtain a unique export directory name after {_MAX_DIRECTORY_ATTEMPTS} attempts. "
        f"Received: export_dir_base={export_dir_base}"
    )
