"""A Beam runner for this process: elements go from step to step as they are, without a copy."""

import collections
import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import apache_beam as beam
from apache_beam import coders, pvalue
from apache_beam.coders import typecoders
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import DirectOptions, ProfilingOptions
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.runners.common import DoFnRunner, DoFnSignature, Receiver
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineResult, PipelineState
from apache_beam.transforms.combiners import curry_combine_fn
from apache_beam.transforms.core import CallableWrapperDoFn
from apache_beam.transforms.sideinputs import SideInputMap
from apache_beam.transforms.trigger import DefaultTrigger
from apache_beam.transforms.util import Reshuffle, ReshufflePerKey
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints import trivial_inference

_LOGGER = logging.getLogger(__name__)

_PLAIN_KEYS: dict[type[coders.Coder], tuple[type, ...]] = {
    coders.FastPrimitivesCoder: (str, bytes, int, bool, type(None)),
    coders.StrUtf8Coder: (str,),
    coders.BytesCoder: (bytes,),
}
"""Types of keys that a coder keeps, and encodes to the same bytes only if the keys are equal."""

_MAX_STEPS_IN_A_ROW = 60
"""Steps that call each other; Python's limit is about 1,000 calls."""


class UnsupportedPipelineError(Exception):
    """The pipeline needs something that only Beam's own runner has, which the message names."""


def install(pipeline: beam.Pipeline) -> bool:
    """Makes Beam's FnApiRunner run a pipeline in this process without copies, if its options allow that.

    Beam's runner pickles each step, describes the pipeline, divides it into stages, and encodes the elements
    between the stages. For a pipeline of many steps and few elements this is most of the work. Here, an
    element goes through all the steps that it can reach before the next one is made; a step keeps elements
    only where it groups or combines them, or where it waits for a side input.

    A pipeline with windows, state, timers, splittable DoFns or batches of elements goes to Beam's runner
    nevertheless, and a line in the log (debug) says why. There are no metrics.

    Beam's runner copies functions and elements, which hides breaches of its rules. Here, steps whose
    functions share an object share its state; a change of an element that was passed on reaches all steps
    that keep it; and a value is not converted to the type of its hint, nor refused.

    Returns false if the pipeline has another runner, or options that only Beam's follows: for workers,
    tests and profiles.
    """
    if type(pipeline.runner) is not FnApiRunner or _has_other_options(pipeline.options):
        return False
    # The object stays the same, as libraries look at its class: tf.Transform for TensorFlow's settings.
    pipeline.runner.run_pipeline = functools.partial(_run, pipeline.runner.run_pipeline)
    return True


def _has_other_options(options: Any) -> bool:
    direct, profiling = options.view_as(DirectOptions), options.view_as(ProfilingOptions)
    return (
        (direct.direct_num_workers, direct.direct_running_mode) != (1, "in_memory")
        or direct.direct_runner_bundle_repeat
        or direct.direct_test_splits
        or profiling.profile_cpu
        or profiling.profile_memory
    )


def _run(run_by_beam: Callable[..., PipelineResult], pipeline: beam.Pipeline, options: Any) -> Any:
    try:
        plan = _Plan(pipeline)
    except UnsupportedPipelineError as reason:
        _LOGGER.debug("Using Beam's FnApiRunner, because of %s.", reason)
        return run_by_beam(pipeline, options)
    try:
        plan.sources.run()
    finally:
        for step in plan.steps:
            step.tear_down()
    return _Done(PipelineState.DONE)


class _Done(PipelineResult):
    def wait_until_finish(self, duration: int | None = None) -> str:
        del duration
        return self.state


class _Collection(Receiver):
    """A PCollection: passes elements on as they come, and keeps those that are a side input."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.num_viewers = 0
        self.kept: list[Any] = []
        self.is_complete = False

    def receive(self, element: Any) -> None:
        if self.num_viewers:
            self.kept.append(element)
        for step in self.steps:
            step.receive(element)

    def complete(self) -> None:
        """Ends the collection: there are no more elements."""
        self.is_complete = True
        for step in self.steps:
            step.complete()

    def release(self) -> None:
        """Counts off a step that no longer needs the side input."""
        self.num_viewers -= 1
        if not self.num_viewers:
            self.kept = []


class _Sources:
    """Steps that can send elements on their own, in the order in which they became able to."""

    def __init__(self) -> None:
        self._waiting: list[_Step] = []

    def add(self, step: "_Step") -> None:
        self._waiting.append(step)

    def run(self) -> None:
        """Lets the steps send, starting with those whose elements meet no step that has to wait."""
        while self._waiting:
            step = min(self._waiting, key=_Step.rank)
            self._waiting.remove(step)
            step.send()


class _Step:
    """A step with one output."""

    is_ready = True

    def __init__(self, sources: _Sources, num_inputs: int, output: _Collection) -> None:
        self._sources = sources
        self._num_open = num_inputs
        self.outputs = [output]
        self.needed: tuple[_Collection, ...] = ()

    def rank(self) -> int:
        """Returns 0 if all side inputs that the elements meet are complete, 2 if this step has to wait."""
        if all(needed.is_complete for needed in self.needed):
            return 0
        return 1 if self.is_ready else 2

    def receive(self, element: Any) -> None:
        raise NotImplementedError

    def complete(self) -> None:
        """Ends one of the inputs."""
        self._num_open -= 1
        if not self._num_open:
            self._finish()

    def _finish(self) -> None:
        """Reacts to the end of all inputs."""
        self._sources.add(self)

    def send(self) -> None:
        """Sends all elements, and completes the outputs."""
        raise NotImplementedError

    def tear_down(self) -> None:
        """Calls the function's `teardown` if its `setup` was called."""


class _Impulse(_Step):
    def send(self) -> None:
        (output,) = self.outputs
        output.receive(GlobalWindows.windowed_value(b""))
        output.complete()


class _Pass(_Step):
    """Passes the elements of all inputs on: Flatten, and steps that only matter to other engines."""

    def receive(self, element: Any) -> None:
        self.outputs[0].receive(element)

    def _finish(self) -> None:
        self.outputs[0].complete()

    send = _finish  # without inputs


class _Group(_Step):
    """Collects the values of each key."""

    def __init__(self, sources: _Sources, output: _Collection, label: str, element_type: Any) -> None:
        super().__init__(sources, 1, output)
        self._label = label
        key_type, _ = trivial_inference.key_value_types(element_type)
        self._coder = typecoders.registry.get_coder(key_type)
        self._plain_keys = _PLAIN_KEYS.get(type(self._coder), ())
        self._key_coder: Any = None
        self._by_key: dict[Any, tuple[Any, Any]] = {}

    def receive(self, element: Any) -> None:
        key, value = element.value
        is_plain = type(key) in self._plain_keys
        if not is_plain and self._key_coder is None:
            self._key_coder = self._coder.as_deterministic_coder(self._label)
        identity = (type(key), key) if is_plain else self._key_coder.encode(key)
        if identity not in self._by_key:
            # A coder of numbers makes 1 from True, or 1.0 from 1.
            decoded = key if is_plain else self._key_coder.decode(identity)
            self._by_key[identity] = decoded, self._start()
        decoded, collected = self._by_key[identity]
        self._by_key[identity] = decoded, self._add(collected, value)

    def send(self) -> None:
        (output,) = self.outputs
        for identity in list(self._by_key):
            key, collected = self._by_key.pop(identity)
            element = (key, self._result(collected))
            output.receive(GlobalWindows.windowed_value_at_end_of_window(element))
        output.complete()

    def _start(self) -> Any:
        return []

    def _add(self, collected: Any, value: Any) -> Any:
        collected.append(value)
        return collected

    def _result(self, collected: Any) -> Any:
        return collected


class _Combine(_Group):
    """Combines the values of each key, by the same calls as Beam for a single bundle."""

    def __init__(self, *args: Any, fn: beam.CombineFn) -> None:
        super().__init__(*args)
        self._fn = fn
        self._is_set_up = False

    def _start(self) -> Any:
        if not self._is_set_up:
            self._fn.setup()
            self._is_set_up = True
        return self._fn.create_accumulator()

    def _add(self, collected: Any, value: Any) -> Any:
        return self._fn.add_input(collected, value)

    def _result(self, collected: Any) -> Any:
        merged = self._fn.merge_accumulators([self._fn.compact(collected)])
        return self._fn.extract_output(merged)

    def send(self) -> None:
        super().send()
        self.tear_down()

    def tear_down(self) -> None:
        if self._is_set_up:
            self._is_set_up = False
            self._fn.teardown()


class _ParDo(_Step):
    """Calls a DoFn; elements wait until all side inputs are complete."""

    def __init__(
        self,
        sources: _Sources,
        node: AppliedPTransform,
        fn: beam.DoFn,
        views: Iterable[tuple[Any, _Collection]],
        outputs: Mapping[Any, _Collection],
    ) -> None:
        super().__init__(sources, 1, outputs[None])
        self._node = node
        self._fn = fn
        self.views = list(views)
        self._by_tag = outputs
        self.outputs = list(outputs.values())
        self._waiting: list[Any] = []
        self._runner: DoFnRunner | None = None

    @property
    def is_ready(self) -> bool:  # type: ignore[override]
        return all(collection.is_complete for _, collection in self.views)

    def receive(self, element: Any) -> None:
        if self._runner is not None:
            self._runner.process(element)
        elif self.is_ready:
            self._start().process(element)
        else:
            self._waiting.append(element)

    def _start(self) -> DoFnRunner:
        transform = self._node.transform
        self._runner = DoFnRunner(
            self._fn,
            transform.args,
            transform.kwargs,
            [
                SideInputMap(type(view), view._view_options(), collection.kept)  # noqa: SLF001
                for view, collection in self.views
            ],
            beam.Windowing(GlobalWindows()),
            tagged_receivers=self._by_tag,
            step_name=self._node.full_label,
        )
        self._runner.setup()
        self._runner.start()
        waiting, self._waiting = self._waiting, []
        for element in waiting:
            self._runner.process(element)
        return self._runner

    def _finish(self) -> None:
        if self.is_ready:
            self.send()
        else:
            self._sources.add(self)

    def send(self) -> None:
        runner = self._runner or self._start()
        runner.finish()
        self.tear_down()
        for _, collection in self.views:
            collection.release()
        for output in self._by_tag.values():
            output.complete()

    def tear_down(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.teardown()


class _Plan(PipelineVisitor):
    def __init__(self, pipeline: beam.Pipeline) -> None:
        self.sources = _Sources()
        self._collections: dict[Any, _Collection] = collections.defaultdict(_Collection)
        self._fns: set[int] = set()
        self.steps: list[_Step] = []
        self._root: AppliedPTransform | None = None
        pipeline.visit(self)
        self._add(self._root)
        self._note_needs()

    def enter_composite_transform(self, node: AppliedPTransform) -> None:
        """Keeps the root, which is visited first."""
        self._root = self._root or node

    def _add(self, node: Any) -> None:
        """Adds the steps of a transform, producers before consumers."""
        transform = node.transform
        if isinstance(transform, Reshuffle | ReshufflePerKey):
            self._add_step(node, _Pass(self.sources, 1, self._output(node)))
        elif type(transform) is beam.CombinePerKey and not transform.side_inputs:
            fn = self._own(curry_combine_fn(transform.fn, transform.args, transform.kwargs))
            self._add_step(node, _Combine(*self._by_key(node), fn=fn))
        elif node.parts:
            for part in node.parts:
                self._add(part)
        elif set(node.outputs.values()) - set(node.inputs):
            self._add_primitive(node)

    def _add_primitive(self, node: AppliedPTransform) -> None:
        transform = node.transform
        if isinstance(transform, beam.Impulse):
            step: _Step = _Impulse(self.sources, 0, self._output(node))
        elif isinstance(transform, beam.Flatten):
            step = _Pass(self.sources, len(node.inputs), self._output(node))
        elif isinstance(transform, beam.GroupByKey):
            step = _Group(*self._by_key(node))
        elif isinstance(transform, beam.WindowInto):
            windowing = transform.windowing
            if windowing.windowfn != GlobalWindows() or windowing.triggerfn != DefaultTrigger():
                raise UnsupportedPipelineError(f"{node.full_label}: windows")
            step = _Pass(self.sources, 1, self._output(node))
        elif isinstance(transform, beam.ParDo):
            _check_fn(node)
            views = [(view, self._collections[view.pvalue]) for view in node.side_inputs]
            for _, collection in views:
                collection.num_viewers += 1
            outputs = collections.defaultdict(_Collection, {None: _Collection()})
            outputs.update({tag: self._collections[part] for tag, part in node.outputs.items()})
            step = _ParDo(self.sources, node, self._own(transform.fn), views, outputs)
        else:
            raise UnsupportedPipelineError(f"{node.full_label}: {type(transform).__name__}")
        self._add_step(node, step)

    def _add_step(self, node: AppliedPTransform, step: _Step) -> None:
        self.steps.append(step)
        inputs = [part for part in node.inputs if isinstance(part, pvalue.PCollection)]
        for part in inputs:
            self._collections[part].steps.append(step)
        if not inputs:
            self.sources.add(step)

    def _output(self, node: AppliedPTransform) -> _Collection:
        (output,) = node.outputs.values()
        return self._collections[output]

    def _by_key(self, node: AppliedPTransform) -> tuple[Any, ...]:
        return self.sources, self._output(node), node.full_label, node.inputs[0].element_type

    def _own(self, fn: Any) -> Any:
        """Returns a function that belongs to no other step: a copy if it already does."""
        if id(fn) in self._fns:
            fn = pickler.roundtrip(fn)
        self._fns.add(id(fn))
        return fn

    def _note_needs(self) -> None:
        """Notes for each step which side inputs its elements reach without a grouping in between."""
        met: dict[_Step, tuple[set[_Collection], int]] = {}  # by an element that a step gets
        for step in reversed(self.steps):
            nexts = [met[following] for output in step.outputs for following in output.steps]
            needed = {collection for _, collection in getattr(step, "views", ())}
            needed = needed.union(*(part for part, _ in nexts))
            depth = 1 + max((part for _, part in nexts), default=0)
            if depth > _MAX_STEPS_IN_A_ROW:
                raise UnsupportedPipelineError(f"more than {_MAX_STEPS_IN_A_ROW} steps in a row")
            step.needed = tuple(needed)
            met[step] = (set(), 1) if isinstance(step, _Group) else (needed, depth)


def _check_fn(node: AppliedPTransform) -> None:
    """Checks that a DoFn needs nothing but elements, side inputs and the global window."""
    signature = DoFnSignature(node.transform.fn)
    needs = {
        "state or timers": signature.is_stateful_dofn(),
        "a splittable DoFn": signature.is_splittable_dofn(),
        "finalization": signature.has_bundle_finalization(),
        "batches of elements": getattr(signature.do_fn, "output_batch_converter", None) is not None
        or (
            type(signature.do_fn).process is beam.DoFn.process
            and not isinstance(signature.do_fn, CallableWrapperDoFn)
        ),
    }
    for what, is_needed in needs.items():
        if is_needed:
            raise UnsupportedPipelineError(f"{node.full_label}: {what}")
