"""The ServingCheck component."""

import json
from collections.abc import Sequence

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.serving_check import executor
from components.serving_check.settings import ServingCheckSettings


class ServingCheckSpec(ComponentSpec):
    PARAMETERS = {
        "label": ExecutionParameter(type=str, optional=True),
        "example_splits": ExecutionParameter(type=str, optional=True),
        "settings": ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        "model": ChannelParameter(type=standard_artifacts.Model),
        # Optional for an InfraValidator, which may only load the model.
        "examples": ChannelParameter(type=standard_artifacts.Examples, optional=True),
        "model_blessing": ChannelParameter(type=standard_artifacts.ModelBlessing, optional=True),
    }
    OUTPUTS = {"blessing": ChannelParameter(type=standard_artifacts.InfraBlessing)}


class ServingCheck(base_component.BaseComponent):
    """Blesses a model if its SavedModel for serving gives the answers that the Evaluator judged.

    It loads the SavedModel in a process that imports TensorFlow and NumPy alone, sends raw rows without
    the label through every signature, all together and one by one, and compares. The other side of the
    comparison is the evaluation model (`Format-TFMA`) on the same rows; a model without one is compared with
    its own `serving_default`, as the Evaluator asks it: in a process with all packages, with the label.

    A model that the Evaluator did not bless is not asked, and not blessed here either. One that it holds is
    asked.

    Outputs:
        blessing: `InfraBlessing`, with the custom properties `blessed` (1 or 0) and `blessing_message`.
            `load_serving_check` reads the comparisons and measurements. Our Pusher copies
            `assets.extra/tf_serving_warmup_requests` from it into the version.

    Example:
        serving_check = ServingCheck(
            model=trainer.outputs["model"],
            examples=example_gen.outputs["examples"],
            model_blessing=evaluator.outputs["blessing"],
            label="tips",
            settings=ServingCheckSettings(max_latency_ms=20),
        )
        pusher = Pusher(
            model=trainer.outputs["model"],
            model_blessing=evaluator.outputs["blessing"],
            infra_blessing=serving_check.outputs["blessing"],
            ...
        )

    Source: TFX's InfraValidator. Unlike TFX's, it needs no Docker and compares the answers.
    """

    SPEC_CLASS = ServingCheckSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        model: BaseChannel,
        examples: BaseChannel,
        model_blessing: BaseChannel | None = None,
        label: str | None = None,
        example_splits: Sequence[str] | None = None,
        settings: ServingCheckSettings | None = None,
    ) -> None:
        """Declares the component.

        Args:
            model: Channel of the `Model`, from a Trainer.
            examples: Channel of raw `Examples`, from an ExampleGen.
            model_blessing: Channel of `ModelBlessing` artifacts, from an Evaluator. None asks every model.
            label: Raw feature that no client has. Default: all features are sent.
            example_splits: Splits to take rows from. Default: `eval`.
            settings: Number of rows, tolerance and limits. Default: `ServingCheckSettings()`.
        """
        super().__init__(
            spec=ServingCheckSpec(
                model=model,
                examples=examples,
                model_blessing=model_blessing,
                label=label,
                example_splits=json.dumps(list(example_splits)) if example_splits else None,
                settings=(settings or ServingCheckSettings()).to_json(),
                blessing=Channel(type=standard_artifacts.InfraBlessing),
            )
        )
