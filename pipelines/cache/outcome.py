"""Reasons, according to ML Metadata, why a component ran or reused the outputs of an earlier execution."""

from dataclasses import dataclass
from typing import Any, Literal

from ml_metadata.proto import metadata_store_pb2

from pipelines.cache.fingerprints import changed_parts
from pipelines.root.metadata.store import FINGERPRINT

_Execution = metadata_store_pb2.Execution
_Event = metadata_store_pb2.Event
_FINISHED = (_Execution.COMPLETE, _Execution.CACHED)
_RUN, _NODE = "pipeline_run", "node"

Why = Literal[
    "reused",
    "finished before",
    "looked up",
    "first",
    "changed",
    "never finished",
    "pruned",
    "asked for",
]


@dataclass(frozen=True)
class CacheOutcome:
    """Outcome of the cache lookup for one component.

    Attributes:
      why: `reused`: nothing changed. `finished before`: a resumed run had its outputs already. `looked up`: a
        resolver runs each time. `first`: there is no earlier execution. `never finished`: no earlier
        execution finished. `changed`: see the attributes below. `pruned`: nothing changed, but the outputs
        are gone. `asked for`: the cache is disabled.
      run_id: Run that made the reused outputs; otherwise the run that is compared with.
      inputs: Upstream components with different outputs.
      settings: Execution properties that differ.
      parts: Parts of the fingerprint that differ, such as `code`.
    """

    why: Why
    run_id: str = ""
    inputs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def explain(
    store: Any, node: Any, execution: Any, was_finished: bool, uses_cache: bool
) -> CacheOutcome:
    """Returns why a component ran, or did not have to.

    Args:
      store: ML Metadata.
      node: Node of the compiled pipeline.
      execution: Execution of the node in this run, with its outputs.
      was_finished: True if it had its outputs before.
      uses_cache: True if the cache is enabled.
    """
    if was_finished:
        return CacheOutcome("finished before")
    if execution.last_known_state == _Execution.CACHED:
        return CacheOutcome("reused", _maker(store, execution))
    if "Resolver" in node.node_info.type.name:
        return CacheOutcome("looked up")
    earlier = [one for one in _of_node(store, node) if one.id < execution.id]
    finished = [one for one in earlier if one.last_known_state in _FINISHED]
    if not finished:
        return CacheOutcome("never finished" if earlier else "first")
    former = max(finished, key=lambda one: one.id)
    run_id = _run_of(store, former.id)
    if not uses_cache:
        return CacheOutcome("asked for", run_id)
    found = CacheOutcome(
        "changed",
        run_id,
        _other_inputs(store, node, former, execution),
        tuple(sorted(_other_properties(former, execution))),
        changed_parts(
            *(one.custom_properties[FINGERPRINT].string_value for one in (former, execution))
        ),
    )
    if found.inputs or found.settings or found.parts:
        return found
    return CacheOutcome("pruned", run_id)


def _of_node(store: Any, node: Any) -> list[Any]:
    for context in node.contexts.contexts:
        if context.type.name == _NODE:
            name = context.name.field_value.string_value
            known = store.get_context_by_type_and_name(_NODE, name)
            return list(store.get_executions_by_context(known.id)) if known else []
    return []


def _run_of(store: Any, execution_id: int) -> str:
    names = [one.name for one in store.get_contexts_by_execution(execution_id) if one.type == _RUN]
    return names[0] if names else ""


def _events(store: Any, execution: Any, kinds: tuple[int, ...]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for event in store.get_events_by_execution_ids([execution.id]):
        # An artifact that is the input under two keys has one event, with both.
        keys = [step.key for step in event.path.steps if step.WhichOneof("value") == "key"]
        for key in keys if event.type in kinds else ():
            found.setdefault(key, []).append(event.artifact_id)
    return {key: sorted(ids) for key, ids in found.items()}


def _maker(store: Any, execution: Any) -> str:
    """Returns the run that made the outputs that an execution reuses."""
    ids = [one for found in _events(store, execution, (_Event.OUTPUT,)).values() for one in found]
    if not ids:
        return ""
    makers = {
        event.execution_id
        for event in store.get_events_by_artifact_ids(ids)
        if event.type == _Event.OUTPUT
    }
    return _run_of(store, min(makers))


def _other_inputs(store: Any, node: Any, former: Any, execution: Any) -> tuple[str, ...]:
    kinds = (_Event.INPUT, _Event.DECLARED_INPUT)
    before, now = (_events(store, one, kinds) for one in (former, execution))
    changed = [key for key in dict.fromkeys((*before, *now)) if before.get(key) != now.get(key)]
    producers = (_producer(node, key) for key in changed)
    return tuple(dict.fromkeys(producers))


def _producer(node: Any, key: str) -> str:
    channels = node.inputs.inputs[key].channels if key in node.inputs.inputs else ()
    return str(channels[0].producer_node_query.id) if channels else key


def _other_properties(former: Any, execution: Any) -> set[str]:
    """Returns the names of execution properties that differ; TFX's own begin with two underscores."""
    before, now = (
        {
            name: value.SerializeToString(deterministic=True)
            for name, value in one.custom_properties.items()
            if name != FINGERPRINT and not name.startswith("__")
        }
        for one in (former, execution)
    )
    return {name for name in (*before, *now) if before.get(name) != now.get(name)}
