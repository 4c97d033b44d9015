"""The Transform component."""

from tfx.components.transform import component
from tfx.dsl.components.base import executor_spec

from components.transform import executor


class Transform(component.Transform):
    """TFX's Transform: the same arguments, channels and files.

    It differs in one point: the same examples, in the same files and order, give the same result in each
    run, bit for bit, on each engine of Beam and with any number of workers. There is one file of transformed
    examples for each file of examples, with its rows in the same order and their features sorted by name.

    Example:
        transform = Transform(
            examples=example_gen.outputs["examples"],
            schema=schema_gen.outputs["schema"],
            preprocessing_fn="my_project.taxi.preprocessing_fn",
        )
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
