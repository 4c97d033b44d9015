"""The outcome of a run, from the outputs of its Pusher and its Evaluator."""

import json
import os
from typing import Any

from pipelines.root import Root
from pipelines.root.records import HeldModel, RunOutcome


def push_outcome(pushed_model: Any, evaluation_uri: str, root: Root) -> RunOutcome:
    """Returns the outcome, with the version that was pushed.

    Args:
      pushed_model: Output artifact of the Pusher.
      evaluation_uri: URI of the Evaluator's output artifact.
      root: Root of the runs.
    """
    import components
    from components.pusher.executor import HELD_MODEL_KEY

    if pushed_model.get_int_custom_property("pushed") == 1:
        version = pushed_model.get_string_custom_property("pushed_version")
        return RunOutcome("pushed", version=version)
    if unchanged := pushed_model.get_string_custom_property("unchanged_version"):
        reason = pushed_model.get_string_custom_property("not_pushed_reason")
        if root.versions.state(unchanged) == "withdrawn":
            reason += f" (`rollback --to {unchanged}` serves it again)"
        return RunOutcome("unchanged", reason=reason)
    verdict = components.load_verdict(evaluation_uri)
    if held := pushed_model.get_string_custom_property(HELD_MODEL_KEY):
        return RunOutcome(
            "held", reason="; ".join(verdict.doubts), held=_relative(json.loads(held), root)
        )
    if verdict.blessed or verdict.held:  # the ServingCheck did not bless it
        return RunOutcome(
            "not_blessed", reason=pushed_model.get_string_custom_property("not_pushed_reason")
        )
    return RunOutcome("not_blessed", reason="; ".join(verdict.failures))


def _relative(fields: dict[str, str], root: Root) -> HeldModel:
    """Returns a held model, with the paths inside the root relative to it."""
    inside = f"{root}{os.sep}"
    return HeldModel(**{name: value.removeprefix(inside) for name, value in fields.items()})
