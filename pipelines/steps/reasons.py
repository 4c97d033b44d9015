"""The reasons for which steps run: each plan is compared with that of an earlier step of its component."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.steps.step_folders import FinishedStep
from pipelines.steps.step_plan import StepPlan

_SHOWN = 3
_LONGEST = 60  # of a value in a reason
PARTS = {
    "libraries": "TensorFlow, TFX or another library was updated",
    "TFDV": "another version of TFDV is installed",
    "optuna": "another version of Optuna is installed",
    "components": "the code of `components` changed",
    "core": "the code of `estimator_core` changed",
    "code": "the code of its module changed",
    "executor": "its own code changed",
    "remains": "an output of it was removed",
    "content": "what it imports changed",
}
_FILES = "input_fingerprint"
_OF_FILES = (_FILES, "span", "version", "input_config")
_CODE = ("user_code", "module_path")


@dataclass(frozen=True)
class Difference:
    """Difference between the plan of a step and that of an earlier step."""

    parts: tuple[str, ...]  # fingerprints that differ, such as "code"
    settings: tuple[str, ...]  # execution properties
    inputs: tuple[str, ...]  # keys
    before: Mapping[str, Any]
    now: Mapping[str, Any]


def difference(earlier: FinishedStep, plan: StepPlan) -> Difference:
    """Returns how a plan differs from that of a finished step."""
    # Through JSON, as the earlier plan was: tuples are lists there.
    before, now = earlier.plan, json.loads(json.dumps(asdict(plan)))
    settings = _differing(*(_parameters(plan) for plan in (before, now)))
    return Difference(
        tuple(_differing(before["fingerprints"], now["fingerprints"])),
        tuple(sorted(settings)),
        tuple(sorted(_differing(before["inputs"], now["inputs"]))),
        before,
        now,
    )


def reason_of_run(plan: StepPlan, earlier: FinishedStep | None) -> str:
    """Returns one short line: how a plan differs from an earlier step of its component, if there is any."""
    if earlier is None:
        return "no earlier run has finished it"
    changes = list(dict.fromkeys(_changes(difference(earlier, plan))))
    if not changes:
        return f"nothing changed since run {earlier.run_id}, whose outputs no longer exist"
    return in_short(changes)


def in_short(changes: Sequence[str]) -> str:
    """Returns the first changes, and the number of the others."""
    more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return "; ".join(changes[:_SHOWN]) + more


def _changes(changed: Difference) -> Iterator[str]:
    before, now = changed.before, changed.now
    if "run" in now["fingerprints"]:
        yield "it uses no cache"
    yield from (PARTS[part] for part in changed.parts if part not in ("run", "push"))
    if before["executor"] != now["executor"]:
        yield "another executor"
    yield from _changed_settings(changed)
    earlier_outputs = [output for outputs in before["inputs"].values() for output in outputs]
    for key in changed.inputs:
        outputs = now["inputs"].get(key, ())
        producers = {output.get("component", key) for output in outputs}
        if not before["inputs"].get(key):  # such as a Resolver's that had nothing to find
            yield f"there is a {key} now"
        elif not outputs:
            yield f"there is no {key} any more"
        elif all(output in earlier_outputs for output in outputs):  # such as a baseline that was the model
            yield f"another {key}"
        else:
            yield " and ".join(f"{producer} has a new output" for producer in sorted(producers))
    if _differing(before["outputs"], now["outputs"]):
        yield "its outputs have other types"
    if changed.parts == ("push",) and not changed.inputs and not changed.settings:
        yield "what it pushed no longer exists"


def _changed_settings(difference: Difference) -> Iterator[str]:
    changed = list(difference.settings)
    if _FILES in changed:
        yield "the data changed"
        changed = [name for name in changed if name not in _OF_FILES]
    for name in changed:
        if name in _CODE:
            yield PARTS["code"]
        else:
            values = [_plain(_parameters(plan).get(name)) for plan in (difference.before, difference.now)]
            is_short = all(len(text) <= _LONGEST for text in values)
            yield f"{name} {' -> '.join(values)}" if is_short else f"{name} changed"


def _parameters(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters: Mapping[str, Any] = plan["parameters"]
    return parameters.get("parameters", parameters)


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]


def _plain(value: Any) -> str:
    """Returns the value of a `NodeParameters` entry: `{"fieldValue": {"intValue": "7"}}`."""
    field = value.get("fieldValue") if isinstance(value, dict) else None
    return " ".join(str(next(iter(field.values())) if field else value).split())
