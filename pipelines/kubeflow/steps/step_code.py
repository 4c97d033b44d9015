"""The code of a step: it must be what `Plan` saw, and importable.

Each step is a separate pod. Between two of them the tag of an image may be moved, or a module on the
volume edited; the step's outputs would then be kept under the name of other code.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from google.protobuf import json_format
from tfx.orchestration import data_types_utils
from tfx.orchestration.portable import inputs_utils
from tfx.proto.orchestration import pipeline_pb2

from components.user.code import importable_name
from pipelines.config.tfx_pipeline import PipelineSource
from pipelines.errors import RunFailedError
from pipelines.kubeflow.compile.user_code import loaded
from pipelines.kubeflow.run_folder import PlannedRun, PlannedStep
from pipelines.root import Root
from pipelines.steps.code_fingerprints import code_fingerprints
from pipelines.steps.step_plan import StepPlan, with_root

_WORDS = {
    "libraries": "the libraries",
    "components": "the package components",
    "core": "the package estimator_core",
    "code": "the model's code",
    "executor": "its own code",
}


def code_of_step(plan: StepPlan, root: Root) -> dict[str, str]:
    """Returns the fingerprints of the code that a step runs, as this process sees it."""
    parameters = json_format.ParseDict(with_root(plan.parameters, root.path), pipeline_pb2.NodeParameters())
    values = data_types_utils.build_parsed_value_dict(inputs_utils.resolve_parameters_with_schema(parameters))
    return code_fingerprints(plan.class_path, values)


def check_code(step: PlannedStep, root: Root) -> None:
    now = code_of_step(step.plan, root) if step.code else {}
    changed = [part for part, digest in step.code.items() if now.get(part) != digest]
    if changed:
        raise RunFailedError(
            step.plan.component,
            f"{' and '.join(_WORDS.get(part, part) for part in changed)} changed after the step Plan read "
            "them: the tag of the image was moved, or a module on a volume was edited. Start a new run; "
            "give each image its own tag",
        )


@contextmanager
def user_code(planned: PlannedRun) -> Iterator[None]:
    """Lets this process import the user's code by the names that the plan has for it."""
    for file in planned.user_files:
        importable_name(file)
    if planned.definition is not None:
        with loaded(PipelineSource(**planned.definition)):
            yield
    else:
        yield
