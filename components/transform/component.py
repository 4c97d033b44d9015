"""The Transform component."""

from tfx.components.transform import component
from tfx.dsl.components.base import executor_spec

from components.transform import executor


class Transform(component.Transform):
    """TFX's Transform: the same arguments, channels and files.

    It differs in one point. The same examples, in the same order, have the same result in each run, to the
    last digit, where Beam runs in one process with one worker. Of a serialized tf.Example only the order
    of its features differs: the encoder writes them in any order.

    Example:
        transform = Transform(
            examples=example_gen.outputs["examples"],
            schema=schema_gen.outputs["schema"],
            preprocessing_fn="my_project.taxi.preprocessing_fn",
        )
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
