"""to_tpu_estimator: converts any Estimator to a TPUEstimator, without rewriting its model_fn."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from estimator_core.estimator import Estimator
from estimator_core.tpu.host_estimator import ConvertedModelFn
from estimator_core.tpu.run_config import RunConfig
from estimator_core.tpu.tpu_config import TPUConfig
from estimator_core.tpu.tpu_estimator import TPUEstimator


def to_tpu_estimator(
    estimator: Estimator,
    train_batch_size: int,
    eval_batch_size: int | None = None,
    predict_batch_size: int | None = None,
    config: RunConfig | TPUConfig | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    use_tpu: bool = True,
    batch_axis: Sequence[int] | None = None,
    eval_on_tpu: bool = True,
) -> TPUEstimator:
    """Returns a TPUEstimator with the model of another Estimator: canned, custom or of a Keras model.

    Its model_fn is not changed. With any optimizer (of `tf.compat.v1.train`, of Keras, or of a
    canned Estimator), gradients are averaged over the shards before they are applied; for a head that sums
    the losses of a batch, they are summed. Batches are those of one device, divided: training makes the
    same steps.

    Its input_fn may take `params`: the params of `estimator` and "batch_size". Otherwise it may return
    batches of any size: a dataset with batches of other sizes than these is rebatched. In
    training and evaluation, the examples of an incomplete last batch are then dropped.

    Example:
        >>> classifier = DNNClassifier([10], [numeric_column("x")])  # doctest: +SKIP
        >>> estimator = to_tpu_estimator(  # doctest: +SKIP
        ...     classifier, train_batch_size=128, config=TPUConfig(num_shards=4)
        ... )
        >>> estimator.train(input_fn, steps=100)  # doctest: +SKIP

    Args:
        estimator: Estimator with the model. Training continues in its `model_dir`, if no other is given.
        train_batch_size: Examples of one training step on all shards together.
        eval_batch_size: Examples of one evaluation step on all shards together.
        predict_batch_size: Examples of one prediction step on all shards together.
        config: `tpu.RunConfig`; or a `TPUConfig` to use with the other settings of `estimator`; None is the
            default `TPUConfig`.
        model_dir: Directory of checkpoints, summaries and exports; None takes that of `config`, or else of
            `estimator`.
        use_tpu: See `TPUEstimator`.
        batch_axis: See `TPUEstimator`.
        eval_on_tpu: See `TPUEstimator`.

    Raises:
        ValueError: An argument is out of range, or the Estimator trains on several devices already.
        TypeError: `estimator` is not an Estimator, or is a TPUEstimator already.
    """
    if not isinstance(estimator, Estimator) or isinstance(estimator, TPUEstimator):
        raise TypeError(
            f"estimator must be an Estimator, and not a TPUEstimator. Received: estimator={estimator!r}"
        )
    if not isinstance(config, RunConfig):
        config = _as_tpu_config(estimator, config or TPUConfig())
    if config.model_dir is None:
        model_dir = model_dir or estimator.model_dir
    return TPUEstimator(
        ConvertedModelFn(estimator),
        model_dir,
        config,
        params=estimator.params,
        use_tpu=use_tpu,
        train_batch_size=train_batch_size,
        eval_batch_size=eval_batch_size,
        predict_batch_size=predict_batch_size,
        batch_axis=batch_axis,
        eval_on_tpu=eval_on_tpu,
        warm_start_from=estimator.warm_start_settings,
        export_to_tpu=False,
    )


def _as_tpu_config(estimator: Estimator, tpu_config: TPUConfig) -> RunConfig:
    """Returns the settings of the Estimator as a `tpu.RunConfig`."""
    settings: dict[str, Any] = {
        field.name: getattr(estimator.config, field.name)
        for field in dataclasses.fields(estimator.config)
        if field.init and field.name != "model_dir"
    }
    for name in ("train_distribute", "eval_distribute", "experimental_distribute"):
        if settings.pop(name) is not None:
            raise ValueError(
                f"An Estimator with {name} can't be made a TPUEstimator, which has shards instead: leave it "
                f"out of its RunConfig. Received: {name} is set"
            )
    return RunConfig(tpu_config, **settings)
