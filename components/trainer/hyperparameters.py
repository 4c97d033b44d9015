"""The values of a Tuner, as a user's training function reads them."""

from collections.abc import Mapping
from typing import Any

from components.errors import SettingError
from components.nearest import nearest_first

_KERAS_TUNERS_OWN = "tuner/"  # such as `tuner/epochs`, of Hyperband


def hyperparameters(fn_args: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the hyperparameters of a training: the Tuner's values, and the defaults of all others.

    It reads `fn_args.hyperparameters`, which is KerasTuner's form of them (a dict with `space` and `values`),
    or None without a Tuner. The same code trains with our Tuner, with TFX's, and without a Tuner.

    Args:
        fn_args: First argument of trainer_fn or run_fn.
        defaults: Value of each hyperparameter that the code reads, by name.

    Raises:
        SettingError: The Tuner has values that the code does not read. It is a ValueError, and ends a search.

    Example:
        def trainer_fn(fn_args, schema):
            values = hyperparameters(fn_args, {"learning_rate": 0.01, "units": 64})
            optimizer = tf.keras.optimizers.Adam(values["learning_rate"])
    """
    config = fn_args.hyperparameters or {}
    tuned = {
        name: value
        for name, value in config.get("values", {}).items()
        if not name.startswith(_KERAS_TUNERS_OWN)
    }
    for name in tuned:
        if name not in defaults:
            nearest = nearest_first(name, defaults)
            meant = f" Did you mean {nearest[0]!r}? It reads {', '.join(nearest)}." if nearest else ""
            raise SettingError(
                f"The Tuner searches {name!r}, which the training function does not read.{meant}"
            )
    return {**defaults, **tuned}
