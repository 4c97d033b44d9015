"""The outcome of a run: of its push, or of what has ended it."""

import json
import logging
import os
from collections.abc import Callable
from typing import Any

from components.interruption import interruption
from pipelines.errors import BadInputError, RunFailedError
from pipelines.root import Root
from pipelines.root.records import HeldModel, RunOutcome
from pipelines.terminal.signals import ignore_further_signals, signal_has_come

_LOGGER = logging.getLogger(__name__)


def run_to_outcome(run_steps: Callable[[], RunOutcome], run_id: str) -> RunOutcome:
    """Runs the steps, and returns the outcome; from then on a signal raises no exception."""
    try:
        try:
            interruption.is_held = False
            interruption.check()
            return run_steps()
        finally:
            ignore_further_signals()
    except BaseException as error:  # an error of the user's, of ours, or of the installation
        if signal_has_come():
            return RunOutcome("interrupted", reason="stopped by a signal")
        if isinstance(error, RunFailedError):
            reason = f"{error.component}: {error}"
            return RunOutcome("failed", reason=reason, is_bad_input=error.is_bad_input)
        if isinstance(error, BadInputError):  # the input of the plan has changed since
            return RunOutcome("failed", reason=str(error), is_bad_input=True)
        _LOGGER.exception("run %s failed", run_id)
        return RunOutcome("failed", reason=f"{type(error).__name__}: {error}")


def push_outcome(pushed_model: Any, evaluation_uri: str, root: Root) -> RunOutcome:
    """Returns the outcome, with the version that was pushed."""
    import components
    from components.pusher.executor import HELD_MODEL_KEY

    if pushed_model.get_int_custom_property("pushed") == 1:
        version = pushed_model.get_string_custom_property("pushed_version")
        return RunOutcome("pushed", version=version)
    if unchanged := pushed_model.get_string_custom_property("unchanged_version"):
        reason = pushed_model.get_string_custom_property("not_pushed_reason")
        if root.versions.state(unchanged) == "withdrawn":
            reason += f" (`rollback --to {unchanged}` makes it live again)"
        return RunOutcome("unchanged", reason=reason)
    verdict = components.load_verdict(evaluation_uri)
    if held := pushed_model.get_string_custom_property(HELD_MODEL_KEY):
        inside = f"{root}{os.sep}"  # paths in the root are recorded relative to it
        paths = {name: value.removeprefix(inside) for name, value in json.loads(held).items()}
        return RunOutcome("held", reason="; ".join(verdict.doubts), held=HeldModel(**paths))
    if verdict.blessed or verdict.held:  # the ServingCheck did not bless it
        return RunOutcome("not_blessed", reason=pushed_model.get_string_custom_property("not_pushed_reason"))
    return RunOutcome("not_blessed", reason="; ".join(verdict.failures))
