"""Reads the curves of a training from its event files for TensorBoard."""

import logging
import math
from pathlib import Path
from typing import Any

MAX_POINTS = 300
"""Maximal number of points of a curve; evenly spaced, including the first and the last one."""

MAX_CURVES = 60
"""Maximal number of curves; of more, the first ones by name."""

_FILES = "*tfevents*"
_LEFT_OUT = ("graph", "checkpoint_path")

_LOGGER = logging.getLogger(__name__)


def read_curves(model_run: str) -> dict[str, Any]:
    """Returns the scalars of a training: `curves`, each with its `run`, `tag` and `points` [step, value].

    The run is the folder of the event file: empty for that of the training, `eval` for evaluations.
    `num_curves` is the number of all curves. Values that are not finite are left out.
    """
    root = Path(model_run)
    files = sorted(root.rglob(_FILES))
    base = _common_folder([file.parent for file in files], root)
    points: dict[tuple[str, str], dict[int, float]] = {}
    for file in files:
        run = file.parent.relative_to(base).as_posix()
        for tag, step, value in _scalars(file):
            points.setdefault(("" if run == "." else run, tag), {})[step] = value
    curves = [
        {"run": run, "tag": tag, "points": _thinned(sorted(values.items()))}
        for (run, tag), values in sorted(points.items())
    ]
    return {"curves": curves[:MAX_CURVES], "num_curves": len(curves)}


def _common_folder(folders: list[Path], root: Path) -> Path:
    """Returns the folder that the training wrote to, which contains all others."""
    if not folders:
        return root
    base = min(folders, key=lambda folder: len(folder.parts))
    while base != root and not all(folder.is_relative_to(base) for folder in folders):
        base = base.parent
    return base.parent if base.name in ("eval", "train", "validation") and base != root else base


def _scalars(file: Path) -> list[tuple[str, int, float]]:
    """Returns tag, step and value of the scalars in a file, up to the point where it was cut off."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto import event_pb2
    from tensorboard.util import tensor_util

    scalars = []
    try:
        for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
            event = event_pb2.Event.FromString(record)
            for value in event.summary.value:
                if value.tag in _LEFT_OUT:
                    continue
                kind = value.WhichOneof("value")
                if kind == "simple_value":
                    number = float(value.simple_value)
                elif (
                    kind == "tensor"
                    and not value.tensor.tensor_shape.dim
                    and value.tensor.dtype in (1, 2, 3, 9)  # float, double, int32, int64
                ):
                    number = float(tensor_util.make_ndarray(value.tensor))
                else:
                    continue
                if math.isfinite(number):
                    scalars.append((value.tag, int(event.step), float(f"{number:.6g}")))
    except (tf.errors.DataLossError, DecodeError) as error:
        _LOGGER.warning("%s is cut off, as if the training had been killed: %s", file, error)
    return scalars


def _thinned(points: list[tuple[int, float]]) -> list[list[float]]:
    if len(points) > MAX_POINTS:
        last = len(points) - 1
        wanted = {round(number * last / (MAX_POINTS - 1)) for number in range(MAX_POINTS)}
        points = [points[number] for number in sorted(wanted)]
    return [[step, value] for step, value in points]
