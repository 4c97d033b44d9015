"""The reasons for which the steps of the pipeline from a CSV run, in words of its configuration and data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.config.toml import flat_settings
from pipelines.data.spans import name_spans
from pipelines.errors import counted
from pipelines.root.records import RunRecord, RunRecords
from pipelines.steps.reasons import PARTS, Difference, difference, in_short
from pipelines.steps.step_folders import FinishedStep
from pipelines.steps.step_plan import StepPlan

_SHOWN = 3

_SECTIONS = {
    "CsvExampleGen": ("data.", "split.", "columns."),
    "SchemaGen": ("schema.",),
    "ExampleValidator": ("example_validator.", "data.label"),
    "Transform": ("columns.", "data.", "module.", "trainer.custom_config"),
    "Tuner": ("tuner.", "trainer.", "columns.", "data.", "module."),
    "Trainer": ("trainer.", "columns.", "data.", "module."),
    "Evaluator": ("evaluator.", "gate."),
    "TestEvaluator": ("evaluator.metrics", "split.test"),
    "ServingCheck": ("serving_check.",),
    "Pusher": ("pusher.",),
}
"""Section of the configuration with a component's settings; the paths of data do not count."""

_NO_SETTING = ("data.path", "data.spans")

_FOLLOW = {"custom_config", "default_checks", "fixed_schema", "parsed_columns", "schema_sha256", "user_code"}
"""Execution properties that change with the code, the data or the served version, reported separately."""

_FILES = "input_fingerprint"
_OF_FILES = {_FILES, "span", "version"}
"""Execution properties in which TFX records the files that it reads."""

_PARTS = {
    **PARTS,
    "formats": "the code that parses cells changed",
    "schema": "the file of schema.path changed",
    "root schema": "the root's schema changed",
    "other code": "it continues a training of other code",
}

_SERVED = ("baseline_model", "base_model", "baseline_statistics")
"""Inputs that come from what serves."""


def reason_of_run(plan: StepPlan, compared: FinishedStep | None, now: RunRecord, records: RunRecords) -> str:
    """Returns one short line: why a step runs."""
    if compared is None:
        is_first = records.newest(other_than=now.run_id) is None
        return "no earlier run" if is_first else "no earlier run has finished it"
    changed = difference(compared, plan)
    earlier = records.read(compared.run_id)
    changes = list(dict.fromkeys(_changes(plan.component, changed, earlier, now)))
    if not changes:
        return f"nothing changed since run {compared.run_id}, whose artifacts no longer exist"
    return in_short(changes)


def _changes(component: str, changed: Difference, earlier: RunRecord | None, now: RunRecord) -> Iterator[str]:
    if component == "Pusher":
        yield "each run decides on its push"
        return
    if "run" in changed.now["fingerprints"]:
        yield "the cache is not used"
    if changed.before["executor"] != changed.now["executor"]:
        yield "another executor"
    for part in changed.parts:
        if part == "code":
            yield code_in_words(earlier, now)
        elif part in _PARTS:
            yield _PARTS[part]
        elif part == "data":
            yield data_in_words(earlier, now)
    if changed.settings:
        yield from _settings_in_words(component, changed, earlier, now)
    for key in sorted(changed.inputs, key=lambda key: (key in _SERVED, key)):
        sources = [plan["inputs"].get(key) for plan in (changed.before, changed.now)]
        if key not in _SERVED:
            producers = {output.get("component", key) for output in sources[1] or ()}
            yield from (f"{producer} has a new output" for producer in sorted(producers))
        elif not sources[0]:
            yield "a version is live now"
        elif not sources[1]:
            yield "the live model is no longer in the root"
        elif key == "baseline_statistics":
            yield "the data to compare with changed"
        else:
            yield "another version is live"


def _settings_in_words(
    component: str, difference: Difference, earlier: RunRecord | None, now: RunRecord
) -> Iterator[str]:
    changed_settings = list(_settings(component, earlier, now))
    if _FILES in difference.settings:
        if not difference.parts:
            yield "the files have other names"
        if set(difference.settings) <= _OF_FILES:
            return
    follows = set(difference.settings) <= _FOLLOW and bool(difference.parts or difference.inputs)
    if not changed_settings and not follows:
        changed_settings = [f"its settings changed ({', '.join(difference.settings)})"]
    yield from changed_settings


def code_in_words(earlier: RunRecord | None, now: RunRecord) -> str:
    """Returns a text that names the user's functions and classes that have changed."""
    before = earlier.code_definitions if earlier else {}
    changed = [
        name
        for name in sorted({*before, *now.code_definitions})
        if before.get(name) != now.code_definitions.get(name)
    ]
    if not before or not changed:
        return "the code of the model changed"
    shown = []
    for name in changed[:_SHOWN]:
        file, _, part = name.partition(":")
        is_top_level = part.startswith("(")
        shown.append(f"the top level of {file}" if is_top_level else f"{part} of {file}")
    return f"{', '.join(shown)}{' and more' if len(changed) > _SHOWN else ''} changed"


def data_in_words(earlier: RunRecord | None, now: RunRecord) -> str:
    """Returns how the data differ from those of a previous run."""
    name = Path(now.config["data"]["path"]).name
    if earlier is None:
        return f"{name} changed"
    if now.spans and earlier.spans and now.spans != earlier.spans:
        return f"{name_spans(now.spans)} in place of {name_spans(earlier.spans)}"
    path_before = earlier.section("data").get("path")
    if now.config["data"]["path"] != path_before:
        return f"{name} in place of {Path(str(path_before)).name}"
    more = now.num_rows - earlier.num_rows
    if earlier.num_rows and more:
        return f"{name} has {counted(abs(more), 'row')} {'more' if more > 0 else 'fewer'}"
    return f"{name} has other values"


def _settings(component: str, earlier: RunRecord | None, now: RunRecord) -> Iterator[str]:
    if earlier is None:
        return
    before, after = flat_settings(earlier.config), flat_settings(now.config)
    for key in dict.fromkeys((*before, *after)):
        if key in _NO_SETTING or not key.startswith(_SECTIONS.get(component, ())):
            continue
        if before.get(key) != after.get(key):
            yield f"{key} {_shown(before.get(key))} -> {_shown(after.get(key))}"


def _shown(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
