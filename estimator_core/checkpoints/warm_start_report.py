"""A report of a warm start: a table of the initial value of each variable, without any training."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints import reader
from estimator_core.checkpoints.latest import latest_checkpoint
from estimator_core.checkpoints.warm_start_settings import WarmStartSettings
from estimator_core.logs import logger
from estimator_core.run_config import check_path

Start = Literal["loaded", "remapped", "fresh", "missing", "shape mismatch"]


@dataclasses.dataclass(frozen=True)
class VariableStart:
    """The initial value of one variable.

    `start`: "loaded": the value comes from the checkpoint. "remapped": each row comes from the row of the
    same vocabulary word in the checkpoint. "fresh": the initializer is used, since the settings leave the
    variable out. "missing", "shape mismatch": training would fail.
    `source_shape`: its shape in the checkpoint; None if it is not there.
    """

    name: str
    shape: tuple[int, ...]
    start: Start
    source: str | None = None
    source_shape: tuple[int, ...] | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class WarmStartReport:
    """The initial value of each variable of a model; as text, a table."""

    checkpoint_path: str
    variables: tuple[VariableStart, ...]
    warnings: tuple[str, ...] = ()

    def of(self, start: Start) -> list[str]:
        """Returns the names of the variables with this `start`."""
        return [variable.name for variable in self.variables if variable.start == start]

    def check(self) -> None:
        """Checks that training can start."""
        reasons = []
        for variable in self.variables:
            if variable.start == "missing":
                reasons.append(f"{variable.name}: no {variable.source!r} in the checkpoint")
            elif variable.start == "shape mismatch":
                reasons.append(
                    f"{variable.name}: {_text(variable.shape)} in the model, "
                    f"{_text(variable.source_shape)} in the checkpoint"
                )
        if reasons:
            raise ValueError(
                f"Can't warm-start from {self.checkpoint_path}: leave these variables out through "
                "WarmStartSettings' vars_to_warm_start, name their counterparts in "
                "var_name_to_prev_var_name, or, when a vocabulary has changed, give a VocabInfo in "
                f"var_name_to_vocab_info. {'; '.join(reasons)}"
            )

    def __str__(self) -> str:
        rows = [("variable", "shape", "start", "in the checkpoint", "")]
        for variable in self.variables:
            source = variable.source or ""
            if source == variable.name:
                source = ""
            shape = "" if variable.source_shape is None else _text(variable.source_shape)
            origin = f"{source} {shape}".strip()
            rows.append((variable.name, _text(variable.shape), variable.start, origin, variable.note))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        starts: tuple[Start, ...] = ("loaded", "remapped", "fresh", "missing", "shape mismatch")
        counts = ", ".join(f"{len(self.of(start))} {start}" for start in starts if self.of(start))
        head = f"Warm start from {self.checkpoint_path}: {counts}"
        return "\n".join([head, *lines, *self.warnings])


def report(settings: WarmStartSettings) -> WarmStartReport:
    """Returns the initial values that the variables of the default graph would get from `settings`."""
    path = checkpoint_path(settings.ckpt_to_initialize_from)
    saved = reader.saved_shapes(path)
    shapes = _shapes(tf1.global_variables())
    selected, warnings = _selected(settings.vars_to_warm_start)
    vocabularies = dict(settings.var_name_to_vocab_info or {})
    previous = dict(settings.var_name_to_prev_var_name or {})
    selected |= set(vocabularies) & set(_shapes(tf1.trainable_variables()))
    for argument, names in (
        ("var_name_to_vocab_info", vocabularies),
        ("var_name_to_prev_var_name", previous),
    ):
        unused = sorted(set(names) - selected)
        if unused:
            raise ValueError(
                f"{argument} names variables that the model does not have, or that vars_to_warm_start "
                f"leaves out. Received: {unused}. Variables that start warm: {sorted(selected)}"
            )
    variables = []
    for name, shape in sorted(shapes.items()):
        if name not in selected:
            variables.append(VariableStart(name, shape, "fresh"))
            continue
        source = previous.get(name, name)
        variables.append(_variable_start(name, shape, source, saved.get(source), vocabularies.get(name)))
    return WarmStartReport(path, tuple(variables), tuple(warnings))


def checkpoint_path(path: str) -> str:
    """Returns `path` itself, or the newest checkpoint if `path` is a directory."""
    newest = latest_checkpoint(path) if tf.io.gfile.isdir(path) else path
    if newest is None and tf.io.gfile.exists(f"{path}.index"):
        newest = path  # a checkpoint on ram://, see `open_checkpoint`
    if newest is None or not tf.io.gfile.glob(f"{newest}*"):
        check_path("ckpt_to_initialize_from", path)
        raise ValueError(
            "There is no checkpoint to warm-start from: give the path of a checkpoint, without "
            f".index, or a directory that holds some. Received: {path!r}"
        )
    return newest


def _shapes(variables: Iterable[Any]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes by name; of a partitioned variable, the shape of the whole."""
    shapes = {}
    for variable in variables:
        name, shape = variable.op.name, variable.shape
        # There is no public way to get from a part of a partitioned variable to the whole.
        part = getattr(variable, "_save_slice_info", None)
        if part is not None:
            name, shape = part.full_name, part.full_shape
        shapes[name] = tuple(tf.TensorShape(shape).as_list())
    return shapes


def _selected(vars_to_warm_start: Any) -> tuple[set[str], list[str]]:
    """Returns the names of the variables to warm-start, and warnings.

    As in `tf.estimator`, a single expression is matched against the trainable variables and a list of
    expressions against all variables, each from the beginning of the name.
    """
    if vars_to_warm_start is None:
        return set(), []
    if isinstance(vars_to_warm_start, str):
        candidates, expressions = tf1.trainable_variables(), [vars_to_warm_start]
    elif all(isinstance(item, str) for item in vars_to_warm_start):
        candidates, expressions = tf1.global_variables(), list(vars_to_warm_start)
    else:
        return set(_shapes(vars_to_warm_start)), []
    selected: set[str] = set()
    warnings = []
    for expression in expressions:
        matching = [variable for variable in candidates if re.match(expression, variable.op.name)]
        if not matching:
            warnings.append(
                f"vars_to_warm_start={expression!r} matches no variable of the model: an expression "
                f"is matched from the beginning of the name. There are: {sorted(_shapes(candidates))}"
            )
        selected |= set(_shapes(matching))
    return selected, warnings


def _variable_start(
    name: str, shape: tuple[int, ...], source: str, source_shape: tuple[int, ...] | None, vocabulary: Any
) -> VariableStart:
    start: Start = "loaded" if vocabulary is None else "remapped"
    note = "" if source == name else "has another name there"
    if source_shape is None:
        start, note = "missing", ""
    elif vocabulary is None:
        if not tf.TensorShape(shape).is_compatible_with(source_shape):
            start = "shape mismatch"
    else:
        axis = vocabulary.axis % len(shape)
        new_words = _words(vocabulary.new_vocab, vocabulary.new_vocab_size)
        old_words = set(_words(vocabulary.old_vocab, vocabulary.old_vocab_size))
        num_known = sum(word in old_words for word in new_words)
        note = f"{num_known} of {len(new_words)} words are known"
        if _without(shape, axis) != _without(source_shape, axis):
            start = "shape mismatch"
    return VariableStart(name, shape, start, source, source_shape, note)


def _text(shape: Sequence[int] | None) -> str:
    return str(list(shape or ()))


def _without(shape: Sequence[int], axis: int) -> list[int]:
    return [size for index, size in enumerate(shape) if index != axis]


def _words(path: str, size: int) -> list[bytes]:
    with tf.io.gfile.GFile(path, "rb") as file:
        words = file.read().splitlines()
    return words if size < 0 else words[:size]


def warm_start(settings: WarmStartSettings) -> None:
    """Makes the variables of the default graph start with the values that `settings` select."""
    logger.info("Warm-starting with WarmStartSettings: %s", settings)
    sources = report(settings)
    sources.check()
    for warning in sources.warnings:
        logger.warning("%s", warning)
    path = sources.checkpoint_path
    # On ram://, see `open_checkpoint`; TensorFlow looks for a checkpoint in it.
    if tf.io.gfile.isdir(path):
        directory = os.path.dirname(path)
        if tf.train.latest_checkpoint(directory) != path:
            raise ValueError(
                "On this file system TensorFlow can warm-start only from the newest checkpoint of a "
                f"directory. Copy the checkpoint to a local folder. Received: {path!r}"
            )
        path = directory
    tf1.train.warm_start(
        path,
        settings.vars_to_warm_start,
        dict(settings.var_name_to_vocab_info or {}),
        dict(settings.var_name_to_prev_var_name or {}),
    )
