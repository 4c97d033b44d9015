import gc
import logging
import pickle
from collections.abc import Iterator  # Beam reads the types of what it calls
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms import userstate, window

from components.beam import in_memory_runner

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def outputs(build, path, in_memory):
    """Returns the elements of the collection that a function makes, in the order of their texts."""
    pipeline = beam.Pipeline(RUNNER)
    collected = build(pipeline)
    _ = collected | "ToList" >> beam.combiners.ToList() | "Keep" >> beam.Map(_keep, str(path))
    if in_memory:
        assert in_memory_runner.install(pipeline)
    pipeline.run().wait_until_finish()
    return sorted(pickle.loads(path.read_bytes()), key=repr)


def _keep(elements, path):
    Path(path).write_bytes(pickle.dumps(elements))


class Calls(beam.DoFn):
    """Says which of its methods were called, and how often before the bundle ended."""

    def setup(self):
        self._calls = ["setup"]

    def start_bundle(self):
        self._calls.append("start")

    def process(self, element: Any) -> Iterator[Any]:
        self._calls.append(f"process {element}")
        yield element

    def finish_bundle(self) -> Iterator[Any]:
        yield window.GlobalWindows.windowed_value_at_end_of_window(tuple(self._calls))


class MeanFn(beam.CombineFn):
    """A mean whose accumulator is a tuple, with an offset that only `setup` knows."""

    def setup(self):
        self._offset = 100

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add_input(self, accumulator: tuple[int, int], value: int) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def merge_accumulators(self, accumulators: Any) -> tuple[int, int]:
        sums, counts = zip(*accumulators, strict=True)
        return sum(sums), sum(counts)

    def extract_output(self, accumulator: tuple[int, int]) -> float:
        return self._offset + (accumulator[0] / accumulator[1] if accumulator[1] else -1)


def keys_of_many_types(pipeline):
    keys = ["1", b"1", 1, 1.0, True, None, ("a", 1), ("a", 1.0), ("a", 1), 2, "é", 1, 2.5, (None,)]
    return (
        pipeline
        | beam.Create([(key, at) for at, key in enumerate(keys)])
        | beam.GroupByKey()
        | beam.MapTuple(lambda key, values: (key, sorted(values)))
    )


def keys_with_a_type(pipeline):
    def grouped(kind, keys):
        pairs = pipeline | f"{kind}" >> beam.Create([(key, at) for at, key in enumerate(keys)])
        typed = pairs | f"Typed{kind}" >> beam.Map(tuple).with_output_types(tuple[kind, int])
        return typed | f"Sum{kind}" >> beam.CombinePerKey(sum)

    return [
        grouped(float, [1, 1.0, 2, np.float32(2)]),
        grouped(int, [1, True, 0, False, np.int64(1)]),
        grouped(bool, [1, True, 0]),
        grouped(str, ["a", "a", "b"]),
        grouped(bytes, [b"a", b"a", b"b"]),
    ] | beam.Flatten()


def side_inputs(pipeline):
    numbers = pipeline | "Numbers" >> beam.Create([3, 1, 2])
    pairs = pipeline | "Pairs" >> beam.Create([("a", 1), ("b", 2)])
    several = pipeline | "Several" >> beam.Create([("a", 1), ("a", 5)])
    nothing = pipeline | "Nothing" >> beam.Create([])

    def view(word: str, *views: Any, **more: Any) -> tuple[Any, ...]:
        single, default, many, all_of_them, fixed = views
        both = sorted(many) + sorted(many)  # it can be read twice
        by_key = {key: sorted(more["multi"][key]) for key in ("a", "b")}
        return word, single, default, both, sorted(all_of_them), fixed, dict(more["pairs"]), by_key

    return (
        pipeline
        | "Words" >> beam.Create(["x", "y"])
        | beam.Map(
            view,
            beam.pvalue.AsSingleton(numbers | beam.CombineGlobally(sum)),
            beam.pvalue.AsSingleton(nothing, default_value="none"),
            beam.pvalue.AsIter(numbers),
            beam.pvalue.AsList(numbers),
            "fixed",
            pairs=beam.pvalue.AsDict(pairs),
            multi=beam.pvalue.AsMultiMap(several),
        )
    )


def side_input_from_the_same_elements(pipeline):
    numbers = pipeline | beam.Create(range(5)) | beam.Map(lambda number: number * number)
    total = numbers | beam.CombineGlobally(sum)
    shares = numbers | "Share" >> beam.Map(lambda x, of: x / of, beam.pvalue.AsSingleton(total))
    largest = shares | "Largest" >> beam.CombineGlobally(max)
    return shares | "Below" >> beam.Filter(lambda x, top: x < top, beam.pvalue.AsSingleton(largest))


def tagged_outputs(pipeline):
    def split(number: int) -> Iterator[Any]:
        yield beam.pvalue.TaggedOutput("even" if number % 2 == 0 else "odd", number)
        yield beam.pvalue.TaggedOutput("unread", number)
        yield -number

    parts = pipeline | beam.Create(range(6)) | beam.FlatMap(split).with_outputs("even", main="all")
    other = pipeline | "More" >> beam.Create([7])
    return (parts.all, parts.even, other, other) | beam.Flatten()


def combined(pipeline):
    numbers = pipeline | beam.Create(range(7))
    nothing = pipeline | "Nothing" >> beam.Create([])
    keyed = numbers | beam.Map(lambda number: (number % 3, number))
    found = [
        keyed | "PerKey" >> beam.CombinePerKey(MeanFn()),
        keyed | "Largest" >> beam.combiners.Top.LargestPerKey(2),
        numbers | "All" >> beam.CombineGlobally(MeanFn()),
        numbers | "Fanout" >> beam.CombineGlobally(MeanFn()).with_fanout(3),
        numbers | "Arguments" >> beam.CombineGlobally(lambda them, by: sum(them) * by, 10),
        nothing | "Default" >> beam.CombineGlobally(MeanFn()),
        nothing | "NoDefault" >> beam.CombineGlobally(MeanFn()).without_defaults(),
        keyed | "Count" >> beam.combiners.Count.PerKey(),
        [numbers, numbers] | beam.Flatten() | beam.Distinct(),
        numbers | "Top" >> beam.combiners.Top.Of(3),
    ]
    single = numbers | "View" >> beam.CombineGlobally(MeanFn()).as_singleton_view()
    found.append(pipeline | "One" >> beam.Create([0]) | "Viewed" >> beam.Map(max, single))
    return found | "Together" >> beam.Flatten()


def one_step_twice(pipeline):
    step = beam.ParDo(Calls())
    numbers = pipeline | beam.Create([1, 2], reshuffle=False)
    return [numbers | "Once" >> step, numbers | "Twice" >> step] | beam.Flatten()


def nothing_at_all(pipeline):
    return [] | beam.Flatten(pipeline=pipeline) | beam.ParDo(Calls())


def arrays(pipeline):
    return (
        pipeline
        | beam.Create([np.arange(3), np.array([b"a"], object)])
        | beam.Reshuffle()
        | beam.Map(lambda array: (array.tolist(), array.dtype.str))
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "build",
    [
        *(keys_of_many_types, keys_with_a_type, side_inputs, side_input_from_the_same_elements),
        *(tagged_outputs, combined, one_step_twice, nothing_at_all, arrays),
    ],
)
def test_elements_are_those_of_beams_runner(build, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, in_memory_runner.__name__)
    ours = outputs(build, tmp_path / "ours", in_memory=True)
    assert "Using Beam's FnApiRunner" not in caplog.text
    beams = outputs(build, tmp_path / "beam", in_memory=False)
    assert repr(ours) == repr(beams)  # 1 and 1.0 differ


def test_files_are_those_of_beams_runner(tmp_path):
    contents = []
    for in_memory in (True, False):
        prefix = tmp_path / str(in_memory)

        def write(pipeline, prefix=prefix):
            lines = pipeline | beam.Create(["b", "a", "c"], reshuffle=False)
            return lines | beam.io.WriteToText(str(prefix), shard_name_template="")

        assert outputs(write, tmp_path / "list", in_memory) == [str(prefix)]
        contents.append(prefix.read_text())
    assert contents == ["b\na\nc\n"] * 2


class Running(beam.DoFn):
    """Adds up the values of a key."""

    TOTAL = beam.DoFn.StateParam(userstate.CombiningValueStateSpec("sum", sum))

    def process(self, element: tuple[str, int], total: Any = TOTAL) -> Iterator[int]:
        total.add(element[1])
        yield total.read()


def with_state(pipeline):
    return pipeline | beam.Create([("a", 1), ("a", 1)]) | "Sums" >> beam.ParDo(Running())


def with_windows(pipeline):
    return (
        pipeline
        | beam.Create([1, 2, 11])
        | beam.Map(lambda number: window.TimestampedValue(("a", number), number))
        | "TenSecs" >> beam.WindowInto(window.FixedWindows(10))
        | beam.GroupByKey()
        | beam.MapTuple(lambda key, values: sorted(values))
        | "All" >> beam.WindowInto(window.GlobalWindows())
    )


def with_a_source(pipeline):
    return pipeline | "Source" >> beam.io.ReadFromText(__file__) | beam.Map(len) | beam.Distinct()


def with_many_steps(pipeline):
    numbers = pipeline | beam.Create([0])
    for number in range(80):
        numbers = numbers | f"Add{number}" >> beam.Map(lambda x: x + 1)
    return numbers


class Neighbors(beam.DoFn):
    """Yields lists that Beam takes apart."""

    @beam.DoFn.yields_batches
    def process(self, number: int) -> Iterator[list[int]]:
        yield [number - 1, number + 1]

    def infer_output_type(self, input_type):
        return int


def with_batches(pipeline):
    return pipeline | beam.Create([5, 8]) | "Batches" >> beam.ParDo(Neighbors())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("build", "reason", "expected"),
    [
        (with_batches, "Batches: batches of elements", [4, 6, 7, 9]),
        (with_state, "Sums: state or timers", [1, 2]),
        (with_windows, "TenSecs: windows", [[1, 2], [11]]),
        (with_a_source, "a splittable DoFn", None),
        (with_many_steps, "more than 60 steps in a row", [80]),
    ],
)
def test_beam_runs_what_needs_its_runner(build, reason, expected, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, in_memory_runner.__name__)
    found = outputs(build, tmp_path / "ours", in_memory=True)
    assert reason in caplog.text
    assert found == (expected or outputs(build, tmp_path / "beam", in_memory=False))


@pytest.mark.parametrize(
    "options",
    [
        {"runner": "BundleBasedDirectRunner"},
        {"direct_num_workers": 2},
        {"direct_running_mode": "multi_threading"},
        {"direct_runner_bundle_repeat": 1},
        {"profile_cpu": True},
    ],
)
def test_other_runners_and_options_stay_as_they_are(options):
    settings = {"runner": RUNNER, **options}
    pipeline = beam.Pipeline(options=beam.options.pipeline_options.PipelineOptions(**settings))
    before = pipeline.runner.run_pipeline
    assert not in_memory_runner.install(pipeline)
    assert pipeline.runner.run_pipeline == before


class TornDown(beam.DoFn):
    """Notes in a file that it was torn down."""

    def __init__(self, path):
        super().__init__()
        self._path = path

    def process(self, element: int) -> Iterator[int]:
        yield 1 // element

    def teardown(self):
        with self._path.open("a") as file:
            file.write("torn down\n")


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_error_names_its_step_and_steps_are_torn_down(tmp_path, in_memory):
    def divide(pipeline):
        numbers = pipeline | beam.Create([1, 0], reshuffle=False)
        inverse = numbers | "Divide" >> beam.ParDo(TornDown(tmp_path / "log"))
        return inverse | "Again" >> beam.ParDo(TornDown(tmp_path / "log"))

    with pytest.raises(
        ZeroDivisionError, match=r"by zero \[while running 'Divide" if in_memory else "Divide"
    ):
        outputs(divide, tmp_path / "list", in_memory)
    assert (tmp_path / "log").read_text() == "torn down\n" * 2


def test_an_element_reaches_the_end_before_the_next_one_is_made():
    """A pipeline holds one batch of a file at a time, however large the file is."""
    pipeline = beam.Pipeline(RUNNER)
    side = pipeline | "Side" >> beam.Create([1]) | beam.CombineGlobally(sum)
    made = pipeline | beam.Create([None]) | beam.FlatMap(lambda _: (_log(f"make {n}") for n in "ab"))
    used = made | beam.Map(lambda x, _: _log(f"use {x[-1]}"), beam.pvalue.AsSingleton(side))
    _ = used | beam.Map(lambda x: _log(f"write {x[-1]}"))
    EVENTS.clear()
    assert in_memory_runner.install(pipeline)
    assert type(pipeline.runner) is FnApiRunner  # which tf.Transform looks at
    pipeline.run()
    assert EVENTS == ["make a", "use a", "write a", "make b", "use b", "write b"]


class Batch:
    """A large element."""


@pytest.mark.more
def test_elements_are_not_kept():
    def make(_: Any) -> Iterator[Batch]:
        for _ in range(5):
            yield Batch()

    def count(batch: Batch) -> int:
        return sum(isinstance(thing, Batch) for thing in gc.get_objects())

    pipeline = beam.Pipeline(RUNNER)
    batches = pipeline | beam.Create([None]) | beam.FlatMap(make)
    _ = batches | "Size" >> beam.Map(lambda batch: 1) | beam.CombineGlobally(sum)
    _ = batches | beam.Map(count) | "Log" >> beam.Map(lambda number: _log(f"{number} batches"))
    EVENTS.clear()
    assert in_memory_runner.install(pipeline)
    pipeline.run()
    assert len(EVENTS) == 5
    assert set(EVENTS) <= {"1 batches", "2 batches"}  # a generator still has the one before


EVENTS = []


def _log(event):
    EVENTS.append(event)
    return event
