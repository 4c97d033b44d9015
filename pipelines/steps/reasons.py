"""The reasons for which steps run: each plan is compared with the newest finished step of its component."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pipelines.steps.step_folders import FinishedStep
from pipelines.steps.step_plan import StepPlan

_SHOWN = 3
_LONGEST = 60  # of a value in a reason
_PARTS = {
    "libraries": "TensorFlow, TFX or another library was updated",
    "components": "the code of `components` changed",
    "core": "the code of `estimator_core` changed",
    "code": "the code of its module changed",
    "executor": "its own code changed",
    "content": "what it imports changed",
    "run": "it uses no cache",
    "push": "what it pushed no longer exists",
}
_FILES = "input_fingerprint"
_CODE = ("user_code", "module_path")


def reason_of_run(plan: StepPlan, former: FinishedStep | None) -> str:
    """Returns one short line.

    Args:
      plan: Plan of a step without a folder.
      former: Newest finished step of its component; None without one.
    """
    if former is None:
        return "no earlier run has finished it"
    # Through JSON, as the former plan was: tuples are lists there.
    changes = list(dict.fromkeys(_changes(former.plan, json.loads(json.dumps(asdict(plan))))))
    if not changes:
        return f"nothing changed since run {former.run_id}, whose outputs no longer exist"
    more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return "; ".join(changes[:_SHOWN]) + more


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if "run" in now["fingerprints"]:
        yield _PARTS["run"]
    parts = _differing(before["fingerprints"], now["fingerprints"])
    yield from (_PARTS[part] for part in parts if part not in ("run", "push"))
    if before["executor"] != now["executor"]:
        yield "another executor"
    yield from _changed_parameters(before["parameters"], now["parameters"])
    for key in _differing(before["inputs"], now["inputs"]):
        producers = {output["component"] for output in now["inputs"].get(key, ())}
        if before["inputs"].get(key):
            yield (
                " and ".join(f"{one} has a new output" for one in sorted(producers))
                or f"there is no {key} any more"
            )
        else:  # such as a Resolver's that had nothing to find
            yield f"there is a {key} now"
    if _differing(before["outputs"], now["outputs"]):
        yield "its outputs have other types"
    if parts == ["push"] and all(before[part] == now[part] for part in ("inputs", "parameters")):
        yield _PARTS["push"]


def _changed_parameters(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    first, second = (plan.get("parameters", plan) for plan in (before, now))
    changed = _differing(first, second)
    if _FILES in changed:
        yield "the data changed"
        changed = [
            name for name in changed if name not in (_FILES, "span", "version", "input_config")
        ]
    for name in changed:
        if name in _CODE:
            yield _PARTS["code"]
        else:
            values = [_plain(values.get(name)) for values in (first, second)]
            is_short = all(len(text) <= _LONGEST for text in values)
            yield f"{name} {' -> '.join(values)}" if is_short else f"{name} changed"


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]


def _plain(value: Any) -> str:
    """Returns the value of a `NodeParameters` entry: `{"fieldValue": {"intValue": "7"}}`."""
    field = value.get("fieldValue") if isinstance(value, dict) else None
    return " ".join(str(next(iter(field.values())) if field else value).split())
