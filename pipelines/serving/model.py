"""A version of a model, loaded, that predicts rows."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from components.pusher.listing import SAVED_MODEL_FILES
from components.serving_check.clean_process import call_signature
from components.tfx.decision_file import DECISION_FILE, INTERVAL_FILE, read_model_file
from pipelines.errors import BadInputError, shown
from pipelines.root import Root
from pipelines.root.versions import Versions
from pipelines.serving.cells import CellError, Cells, several, to_cells
from pipelines.serving.saved_model import SERVING_ROWS, Column, Signature, read_signatures
from pipelines.terminal.quiet_tensorflow import quiet_tensorflow, without_harmless_warnings

if TYPE_CHECKING:
    from pipelines.serving.explanations import Explanation

MISSING: dict[str, Any] = {"INT": -(2**63), "FLOAT": float("nan"), "BYTES": b""}
"""Marks of a missing value in a tensor, by the type of the column."""
_PLAINEST: dict[str, Any] = {"INT": 0, "FLOAT": 0.0, "BYTES": b"-"}
"""Values of a column that needs one, by its type."""
_LISTS: dict[str, Callable[[Any], Any]] = {
    "INT": attrgetter("int64_list"),
    "FLOAT": attrgetter("float_list"),
    "BYTES": attrgetter("bytes_list"),
}


def signature_inputs(cells: Cells, signature: Signature, num_rows: int) -> dict[str, Any]:
    """Returns the inputs of a signature as NumPy arrays, by name."""
    if signature.takes_examples:
        (name,) = signature.inputs
        return {name: np.array(serialize(cells, signature.columns, num_rows), object)}
    return {
        name: _dense(cells.get(name), column, signature, num_rows)
        for name, column in signature.columns.items()
    }


def serialize(cells: Cells, columns: Mapping[str, Column], num_rows: int) -> list[bytes]:
    """Returns rows as serialized tf.Examples. A missing value is an absent feature."""
    features = [(name, _LISTS[columns[name].type], values) for name, values in cells.items()]
    examples = []
    for row in range(num_rows):
        example = tf.train.Example()
        feature = example.features.feature
        for name, list_of, values in features:
            value = values[row]
            if type(value) is list:
                list_of(feature[name]).value.extend(value)
            elif value is not None:
                list_of(feature[name]).value.append(value)
        examples.append(example.SerializeToString())
    return examples


def _dense(values: Any, column: Column, signature: Signature, num_rows: int) -> Any:
    """Returns a column with the mark of a missing value where there is none."""
    missing = MISSING[column.type]
    filled = [missing if value is None else value for value in values or [None] * num_rows]
    for row, value in enumerate(filled):
        if type(value) is list:
            raise CellError(row, column.name, several(value))
    tensor = signature.inputs[column.name]
    dtype = tensor.dtype.as_numpy_dtype
    if column.type == "INT":
        array = in_range(np.array(filled, np.int64), column.name, dtype)
    else:
        array = np.array(filled, object if column.type == "BYTES" else dtype)
    return array.reshape((num_rows, *(1 for _ in (tensor.shape or ())[1:])))


def in_range(numbers: Any, column: str, dtype: Any) -> Any:
    """Returns whole numbers in the type of an input, which may be smaller than int64."""
    limits = np.iinfo(dtype)
    outside = (numbers < limits.min) | (numbers > limits.max)
    if outside.any():
        row = int(outside.argmax())
        reason = f"{numbers[row]} is beyond {limits.dtype}, the type of the model's input"
        raise CellError(row, column, f"{reason} ({limits.min} to {limits.max}). Correct it.")
    return numbers.astype(dtype)


_ROWS_AT_A_TIME = 4_096


class Model:
    """A version of a model.

    model = pipelines.load("pipeline_root")
    model.predict([{"fare": 12, "company": None}])     # {"class": ..., "probability": ...}
    """

    def __init__(self, folder: Path, root: Root | None = None):
        self.version = _number(folder)
        self.folder = folder
        self.root = root
        self.signatures = read_signatures(folder)
        self.decision = read_model_file(str(folder), DECISION_FILE)
        self.interval = read_model_file(str(folder), INTERVAL_FILE)
        try:
            with without_harmless_warnings():
                # A TPUEstimator exports a second graph, for TPUs.
                self._loaded = tf.saved_model.load(str(folder), tags=["serve"])
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise BadInputError(f"The model in {folder} cannot be loaded: {error}") from error

    @property
    def columns(self) -> Mapping[str, Column]:
        """Columns that `predict` takes, by name."""
        return self.signature_for_rows().columns

    def predict(self, rows: Any) -> dict[str, Any]:
        """Returns the predictions as columns, NumPy arrays with a value for each row.

        A classifier has `class` (text), `probability` (of that class), and up to 20 classes
        `probability_CLASS` for each; a regression has `value`, and
        `lower` and `upper` if it was trained with `trainer.interval`. A model with other outputs has these.

        `rows`: list of dicts, a dict of columns, or a pandas DataFrame, with the columns of the CSV that
        the model was trained on. None, NaN, an empty text, or an absent column is a missing value.
        Other columns are ignored.
        """
        cells, num_rows = to_cells(rows, self.columns)
        return self.predict_cells(cells, num_rows)

    def explain(self, rows: Any, background: Any = None, of_class: str | None = None) -> "Explanation":
        """Returns how much each column contributes to the predictions, compared with other rows.

        The contributions of a row are Shapley values: they add up to the difference between its prediction
        and the mean prediction for the background. A class is explained by its log-odds, which is the
        logarithm of p / (1 - p), and a regression in the units of the label.

        Args:
            rows: Rows as `predict` takes them.
            background: Rows to compare with, such as some of the training data. Default: rows of the
                evaluation split, which the run that pushed the model has left in the root.
            of_class: Class to explain. Default: the second of two classes, otherwise the class predicted.

        Raises:
            BadInputError: No background rows were found, `of_class` is unknown, or the model predicts neither
                classes nor one number.

        Example:
            explanation = model.explain([{"fare": 12, "company": None}])
            explanation.base + sum(explanation.contributions.values())    # equals explanation.score
        """
        from pipelines.serving.explanations import background_rows, explain

        cells, num_rows = to_cells(rows, self.columns)
        background = background_rows(self) if background is None else background
        return explain(self, cells, num_rows, *to_cells(background, self.columns), of_class)

    def predict_cells(self, cells: Cells, num_rows: int) -> dict[str, Any]:
        """Returns the predictions of rows whose cells were cast; see `predict`."""
        signature = self.signature_for_rows()
        return self.predict_inputs(signature_inputs(cells, signature, num_rows), num_rows, signature)

    def predict_inputs(
        self, inputs: Mapping[str, Any], num_rows: int, signature: Signature
    ) -> dict[str, Any]:
        parts = []
        for start in range(0, max(num_rows, 1), _ROWS_AT_A_TIME):
            part = {name: rows[start : start + _ROWS_AT_A_TIME] for name, rows in inputs.items()}
            parts.append(plain_columns(self.run(signature.name, part), signature.method))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def run(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        dtypes = {name: tensor.dtype for name, tensor in self.signatures[signature].inputs.items()}
        tensors = {name: tf.constant(value, dtypes[name]) for name, value in inputs.items()}
        try:
            with without_harmless_warnings():
                outputs = call_signature(self._loaded.signatures[signature], tensors)
        except (tf.errors.InvalidArgumentError, ValueError, TypeError) as error:
            message = getattr(error, "message", None) or str(error)
            # Without the places in the graph and in Python, which TensorFlow adds.
            *_, reason = message.partition("\n\t [[")[0].split("\n\n")
            raise BadInputError(f"The model refuses the input: {reason.strip()}") from error
        return {name: value.numpy() for name, value in outputs.items()}

    def try_out(self, signature: Signature) -> dict[str, Any]:
        """Returns the outputs for a row without values, except that zero or text is where one is needed.

        The first prediction of a signature is slow, and TensorFlow may log messages then.
        """
        needed = [column for column in signature.columns.values() if column.is_required]
        cells: Cells = {column.name: [_PLAINEST[column.type]] for column in needed}
        return self.run(signature.name, signature_inputs(cells, signature, 1))

    def signature(self, name: str) -> Signature:
        if name not in self.signatures:
            names = ", ".join(self.signatures)
            raise BadInputError(f"There is no signature {shown(repr(name))}. There are: {names}.")
        return self.signatures[name]

    def signature_for_rows(self) -> Signature:
        """Returns the signature that predicts rows: one of tf.Examples, if the model has one."""
        signatures: Sequence[Signature] = sorted(
            (signature for signature in self.signatures.values() if signature.columns),
            # A classify signature has scores only, from which a decision threshold cannot be told.
            key=lambda signature: (
                not signature.takes_examples,
                self.decision is not None and "class_ids" not in signature.outputs,
                self.interval is not None and "lower" not in signature.outputs,
            ),
        )
        if not signatures:
            raise BadInputError(
                f"No signature of the model in {self.folder} takes rows: neither serialized tf.Examples that "
                "it parses itself, nor a tensor for each column. Its signatures: "
                f"{', '.join(self.signatures)}. Export one of these, or send the tensors to `serve`."
            )
        return signatures[0]

    @property
    def main_signature(self) -> Signature:
        """Signature for rows or, in a model that takes none, `serving_default` or the first one."""
        if any(signature.columns for signature in self.signatures.values()):
            return self.signature_for_rows()
        return next(iter(self.signatures.values()))

    def fast_signature(self) -> Signature:
        """Returns `serving_rows` if its predictions equal those of the signature for tf.Examples.

        Making tensors by column is several times faster. For canned models, both predict the same.
        """
        usual, fast = self.signature_for_rows(), self.signatures.get(SERVING_ROWS)
        if fast is not None and usual.columns == fast.columns:
            is_canned = usual.method == "classify" or self.decision is not None
            if is_canned and {"probabilities", "all_classes"} <= fast.outputs.keys():
                return fast
            is_canned = usual.method == "regress" or self.interval is not None
            if is_canned and set(fast.outputs) <= {"predictions", "lower", "upper"}:
                return fast
        return usual


MAX_CLASSES = 20
"""Number of classes up to which each has a column with its probability."""


def plain_columns(outputs: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Returns the predictions as NumPy arrays of shape [num_rows], by column."""
    if method == "regress" and list(outputs) == ["outputs"]:
        return _columns("value", outputs["outputs"])
    if (scores := class_scores(outputs, method)) is not None:
        return _class_columns(*scores)
    if list(outputs) == ["predictions"] or set(outputs) == {"predictions", "lower", "upper"}:
        ends = {name: outputs[name] for name in ("lower", "upper") if name in outputs}
        numbers = {"value": outputs["predictions"], **ends}  # of a canned regressor
        return {name: values.reshape(-1) for name, values in numbers.items()}
    columns: dict[str, Any] = {}
    for name, values in outputs.items():
        columns.update(_columns(name, values))
    return columns


def class_scores(outputs: Mapping[str, Any], method: str) -> tuple[Any, Any, Any] | None:
    """Returns the scores of all classes, their names and the ids of the decision, if the model has them."""
    if method == "classify" and "scores" in outputs:
        return outputs["scores"], outputs.get("classes"), None
    if "probabilities" in outputs and "all_classes" in outputs:  # of a canned classifier
        return outputs["probabilities"], outputs["all_classes"], outputs.get("class_ids")
    return None


def _class_columns(scores: Any, classes: Any, class_ids: Any = None) -> dict[str, Any]:
    scores = scores.reshape(len(scores), int(np.prod(scores.shape[1:])))
    if class_ids is not None:
        best = class_ids.reshape(-1)
    else:
        best = scores.argmax(axis=1) if len(scores) else np.zeros(0, np.int64)
    rows = np.arange(len(scores))
    if classes is None:
        names = np.array([str(number) for number in range(scores.shape[1])], object)
        classes = np.broadcast_to(names, scores.shape)
    classes = _text(classes)
    probability = scores[rows, best]
    names = classes[rows, best]
    names[np.isnan(probability)] = None  # the model has no answer
    columns = {"class": names, "probability": probability}
    if len(rows) and scores.shape[1] <= MAX_CLASSES:
        for position, name in enumerate(classes[0]):
            columns[f"probability_{name}"] = scores[:, position]
    return columns


def _columns(name: str, values: Any) -> dict[str, Any]:
    """Returns one column, or one for each number of a row, `NAME_0` and so on."""
    if values.dtype == object:
        values = _text(values)
    rest = int(np.prod(values.shape[1:]))
    flat = values.reshape(len(values), rest)
    if rest == 1:
        return {name: flat[:, 0]}
    return {f"{name}_{position}": flat[:, position] for position in range(rest)}


def _text(values: Any) -> Any:
    flat = [
        value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values.ravel()
    ]
    return np.array(flat, object).reshape(values.shape)


class ModelFolder:
    """A SavedModel, or a folder of numbered ones as TensorFlow Serving takes it, without a root."""

    def __init__(self, path: Path):
        self.path = path.absolute()
        if is_saved_model(self.path):
            self.versions: Versions = _OneModel(self.path)
        else:
            self.versions = Versions(self.path, self.path / "no versions are withdrawn")
        if not self.versions.served():
            raise BadInputError(
                f"{path} is neither a SavedModel, which is a folder with a saved_model.pb, nor a folder of "
                "SavedModels named by numbers. Give the folder that export_saved_model was given or returned."
            )

    @property
    def name(self) -> str:
        """Name of the model, for addresses."""
        return self.path.parent.name if self.path.name.isdecimal() else self.path.name


class _OneModel(Versions):
    def __init__(self, path: Path):
        super().__init__(path.parent, path)
        self._path = path

    def served(self) -> list[int]:
        return [_number(self._path)]

    def folder(self, version: int) -> Path:
        return self._path


def _number(folder: Path) -> int:
    return int(folder.name) if folder.name.isdecimal() else 1


def is_saved_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in SAVED_MODEL_FILES)


def load(root: str | os.PathLike[str], version: int | None = None) -> Model:
    """Loads the model of a root, or any SavedModel, to predict rows in Python.

    It needs TensorFlow and NumPy only.

    Args:
        root: Folder of a pipeline's runs; or a SavedModel, such as `export_saved_model` writes it, or a
            folder of numbered ones.
        version: Version, which may be withdrawn. Default: the live version, or the highest number.

    Raises:
        BadInputError: There is no such version.

    Example:
          model = pipelines.load("pipeline_root")
          model.predict([{"fare": 12.5, "company": "Prairie Cab"}])
    """
    path = Path(root)
    is_folder = is_saved_model(path) or (not Root(path).serving.exists() and Versions(path, path).served())
    with quiet_tensorflow():
        model = load_model(ModelFolder(path) if is_folder else Root(path), version)
        with contextlib.suppress(BadInputError):  # a model may refuse such a row
            model.try_out(model.main_signature)
    return model


def load_model(place: Root | ModelFolder, version: int | None = None) -> Model:
    """Loads a version; None takes the live one."""
    if isinstance(place, Root):
        return Model(version_folder(place, version), place)
    served = place.versions.served()
    if version is not None and version not in served:
        raise BadInputError(f"There is no version {version} in {place.path}: {', '.join(map(str, served))}.")
    return Model(place.versions.folder(served[-1] if version is None else version))


def version_folder(root: Root, version: int | None = None) -> Path:
    """Returns the folder of a version.

    `version`: version, served or withdrawn. Default: the live version.
    """
    served, withdrawn = root.versions.served(), root.versions.withdrawn()
    if version is None and served:
        return root.versions.folder(served[-1])
    if version in served:
        return root.versions.folder(version)
    if version in withdrawn:
        return root.withdrawn / str(version)
    if not served and not withdrawn:
        raise BadInputError(
            f"There is no model in {root}: no run has pushed one there. Give the root of `run`, or the "
            "folder (--model) that your own pipeline pushes to."
        )
    listed = [", ".join(map(str, versions)) or "none" for versions in (served, withdrawn)]
    wanted = "that is live" if version is None else str(version)
    raise BadInputError(
        f"There is no version {wanted} in {root}. Served: {listed[0]}; withdrawn: {listed[1]}."
    )
