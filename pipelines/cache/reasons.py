"""Puts into words why a component ran, or why it did not have to."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.config.flat import flat_settings
from pipelines.data.spans import name_spans
from pipelines.errors import counted
from pipelines.root.records import RunRecord

if TYPE_CHECKING:
    from pipelines.cache.outcome import CacheOutcome

_SHOWN = 3

_SECTIONS = {
    "CsvExampleGen": ("data.", "split.", "columns."),
    "SchemaGen": ("schema.",),
    "ExampleValidator": ("example_validator.", "data.label"),
    "Transform": ("columns.", "data.", "module.", "trainer.custom_config"),
    "Tuner": ("tuner.", "trainer.", "columns.", "data.", "module."),
    "Trainer": ("trainer.", "columns.", "data.", "module."),
    "Evaluator": ("evaluator.", "gate."),
    "ServingCheck": ("serving_check.",),
    "Pusher": ("pusher.",),
}
"""Section of the configuration with a component's settings; the paths of data are no setting."""

_NO_SETTING = ("data.path", "data.spans")

_FOLLOW = {
    "custom_config",
    "default_checks",
    "fixed_schema",
    "parsed_columns",
    "schema_sha256",
    "user_code",
}
"""Execution properties that change with the code, the data or the served version, reported separately."""

_FILES = "input_fingerprint"
_OF_FILES = {_FILES, "span", "version"}
"""Execution properties in which TFX records the files that it reads."""

_PARTS = {
    "libraries": "TensorFlow, TFX or another library was updated",
    "TFDV": "another version of TFDV is installed",
    "formats": "the code that parses cells changed",
    "optuna": "another version of Optuna is installed",
    "components": "the code of `components` changed",
    "core": "the code of `estimator_core` changed",
    "schema": "the file of schema.path changed",
    "root schema": "the root's schema changed",
    "format": "an older version of this project made it",
    "run": "each run decides on its push",
}


def reason_in_words(
    component: str, outcome: "CacheOutcome", now: RunRecord, former: RunRecord | None
) -> str:
    """Returns one short line: why a component ran, or why it did not have to.

    Args:
      component: Node id.
      outcome: Outcome of the cache lookup.
      now: Record of the run.
      former: Record of the run that is compared with; None if it no longer exists.
    """
    fixed = {
        "reused": f"same data, code and settings as run {outcome.run_id}",
        "finished before": "it was finished when the run stopped",
        "looked up": "the served version is looked up in each run",
        "first": "no earlier run",
        "never finished": "no earlier run has finished it",
        "pruned": f"nothing changed since run {outcome.run_id}, whose artifacts are gone",
        "asked for": "the cache is not used",
    }
    if outcome.why != "changed":
        return fixed[outcome.why]
    changes = list(dict.fromkeys(_changes(component, outcome, now, former)))
    more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return "; ".join(changes[:_SHOWN]) + more


def _changes(
    component: str, outcome: "CacheOutcome", now: RunRecord, former: RunRecord | None
) -> Iterator[str]:
    for part in outcome.parts:
        if part == "code":
            yield code_in_words(former, now)
        elif part in _PARTS:
            yield _PARTS[part]
        elif part == "data":
            yield data_in_words(former, now)
    if outcome.settings:
        yield from _settings_in_words(component, outcome, former, now)
    for producer in outcome.inputs:
        if producer in ("ServedModel", "ServedStatistics"):
            yield "another version serves"
        else:
            yield f"{producer} has a new output"


def _settings_in_words(
    component: str, outcome: "CacheOutcome", former: RunRecord | None, now: RunRecord
) -> Iterator[str]:
    changed = list(_settings(component, former, now))
    if _FILES in outcome.settings:
        if not outcome.parts:
            yield "the files have other names"
        if set(outcome.settings) <= _OF_FILES:
            return
    follows = set(outcome.settings) <= _FOLLOW and bool(outcome.parts or outcome.inputs)
    if not changed and not follows:
        changed = [f"its settings changed ({', '.join(outcome.settings)})"]
    yield from changed


def code_in_words(former: RunRecord | None, now: RunRecord) -> str:
    """Returns a text that names the user's functions and classes that have changed."""
    before = former.code_definitions if former else {}
    changed = [
        name
        for name in sorted({*before, *now.code_definitions})
        if before.get(name) != now.code_definitions.get(name)
    ]
    if not before or not changed:
        return "the code of the model changed"
    shown = [_definition(name) for name in changed[:_SHOWN]]
    return f"{', '.join(shown)}{' and more' if len(changed) > _SHOWN else ''} changed"


def data_in_words(former: RunRecord | None, now: RunRecord) -> str:
    """Returns how the data differ from those of a former run."""
    name = Path(now.config["data"]["path"]).name
    if former is None:
        return f"{name} changed"
    if now.spans and former.spans and now.spans != former.spans:
        return f"{name_spans(now.spans)} in place of {name_spans(former.spans)}"
    path_before = former.section("data").get("path")
    if now.config["data"]["path"] != path_before:
        return f"{name} in place of {Path(str(path_before)).name}"
    more = now.num_rows - former.num_rows
    if former.num_rows and more:
        return f"{name} has {counted(abs(more), 'row')} {'more' if more > 0 else 'less'}"
    return f"{name} has other values"


def _definition(name: str) -> str:
    file, _, part = name.partition(":")
    return f"the top level of {file}" if part.startswith("(") else f"{part} of {file}"


def _settings(component: str, former: RunRecord | None, now: RunRecord) -> Iterator[str]:
    if former is None:
        return
    before, after = flat_settings(former.config), flat_settings(now.config)
    for key in dict.fromkeys((*before, *after)):
        if key in _NO_SETTING or not key.startswith(_SECTIONS.get(component, ())):
            continue
        if before.get(key) != after.get(key):
            yield f"{key} {_shown(before.get(key))} -> {_shown(after.get(key))}"


def _shown(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
