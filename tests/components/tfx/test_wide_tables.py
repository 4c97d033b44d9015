import functools
import importlib.util
import pickle

import apache_beam as beam
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions
from apache_beam.transforms import core, userstate
from tensorflow_transform import graph_tools, tf2_utils, tf_utils

from components.tfx import wide_tables


def load_stock(module):
    """Returns another copy of a module, without our functions."""
    spec = importlib.util.spec_from_file_location("stock", module.__file__)
    stock = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stock)
    return stock


def sparse_placeholders(num_columns):
    return {
        f"c{index}": tf.compat.v1.sparse_placeholder(tf.string if index % 2 else tf.float32, [None, None])
        for index in range(num_columns)
    }


def test_the_inputs_of_an_analyzer_are_found_as_tft_finds_them():
    with tf.Graph().as_default():
        inputs = sparse_placeholders(6)
        dense = inputs["dense"] = tf.compat.v1.placeholder(tf.float32, [None])
        sums = tf.reduce_sum(inputs["c2"].values) + tf.reduce_sum(dense)
        other = tf.identity(inputs["c5"].values)
        found = graph_tools._retrieve_source_keys([sums, other], inputs)
        assert found == {"c2", "c5", "dense"}
        assert found == load_stock(graph_tools)._retrieve_source_keys([sums, other], inputs)


class Source:
    """A tensor that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other):
        Source.comparisons += 1
        return self is other

    def __hash__(self):
        return id(self)


@pytest.mark.parametrize("is_stock", [False, True])
def test_the_search_for_inputs_compares_each_column_once(monkeypatch, is_stock):
    module = load_stock(graph_tools) if is_stock else graph_tools
    monkeypatch.setattr(module, "retrieve_sources", lambda *_, **__: sources[::-1])
    counts = []
    for num_columns in (20, 40):
        sources = [Source() for _ in range(num_columns)]
        inputs = {str(number): source for number, source in enumerate(sources)}
        Source.comparisons = 0
        assert len(module._retrieve_source_keys([], inputs)) == num_columns
        counts.append(Source.comparisons)
    assert (counts[1] > 3 * counts[0]) == is_stock


def test_names_of_inputs_are_not_compared_with_each_other():
    with tf.Graph().as_default() as graph:
        inputs = {"a": tf.compat.v1.placeholder(tf.float32, [None]), **sparse_placeholders(2)}
        ready = graph_tools.InitializableGraphAnalyzer(graph, inputs, [])
        assert ready.ready_to_run(inputs["a"] + inputs["c0"].values)
        assert list(ready.get_dependent_inputs(inputs["c1"])) == ["c1"]


def test_stand_ins_for_missing_inputs_are_those_of_tft():
    with tf.Graph().as_default():
        inputs = sparse_placeholders(5)
        inputs["dense"] = tf.compat.v1.placeholder(tf.int64, [None, 2])
        inputs["other"] = tf.compat.v1.placeholder(tf.int64, [None, 2])
        supplied = tf2_utils.supply_missing_inputs(inputs, batch_size=3)
        stock = load_stock(tf2_utils).supply_missing_inputs(inputs, batch_size=3)
        with tf.compat.v1.Session() as session:
            ours, theirs = session.run([supplied, stock])
    assert ours["other"].tolist() == [[0, 0]] * 3
    values, stock_values = ([part.tolist() for part in tf.nest.flatten(one)] for one in (ours, theirs))
    assert values == stock_values
    shapes, stock_shapes = ({name: t.shape.as_list() for name, t in s.items()} for s in (supplied, stock))
    assert shapes == stock_shapes
    names = [part.name for part in tf.nest.flatten(supplied, expand_composites=True)]
    assert len(set(names)) == len(names)  # by which TFT finds the outputs of an input


def test_a_further_missing_input_costs_three_operations():
    def count(num_columns):
        with tf.Graph().as_default() as graph:
            tf2_utils.supply_missing_inputs(sparse_placeholders(num_columns), batch_size=1)
            return len(graph.get_operations()) - num_columns * 4

    assert count(40) - count(20) <= 20 * 3


def test_a_function_that_changes_its_inputs_gets_a_dict_of_its_own_without_further_operations():
    @tf.function(autograph=False)
    def traced(inputs):
        copies = tf_utils.copy_tensors(inputs)
        assert copies["x"] is inputs["x"]
        del copies["x"]
        return {"y": inputs["x"]}

    assert traced({"x": tf.constant([1.0, 2.0])})["y"].numpy().tolist() == [1, 2]
    # In a graph of TensorFlow 1, an input is not an output.
    with tf.Graph().as_default():
        inputs = {"x": tf.compat.v1.placeholder(tf.float32, [None])}
        assert tf_utils.copy_tensors(inputs)["x"] is not inputs["x"]


class Plain(beam.DoFn):
    def process(self, element, factor=2):
        yield factor * element


class Stateful(beam.DoFn):
    TOTAL = beam.DoFn.StateParam(userstate.CombiningValueStateSpec("sum", sum))

    def process(self, element, total=TOTAL):
        total.add(element[1])


class Inherited(Stateful):
    pass


class Timed(beam.DoFn):
    TIMER = userstate.TimerSpec("timer", userstate.TimeDomain.WATERMARK)
    PARAM = beam.DoFn.TimerParam(TIMER)

    def process(self, element, timer=PARAM):
        timer.set(1)

    @userstate.on_timer(TIMER)
    def expire(self):
        yield 1


class Wrapped(beam.DoFn):
    @functools.wraps(Stateful.process)
    def process(self, *args, **kwargs):
        return Stateful.process(self, *args, **kwargs)


class WithMethod(beam.DoFn):
    def __init__(self):
        self.process = Stateful().process


@pytest.mark.parametrize(
    ("fn", "num_states", "num_timers"),
    [
        (Plain(), 0, 0),
        (beam.Map(lambda x, more=1: x + more).fn, 0, 0),
        (Stateful(), 1, 0),
        (Inherited(), 1, 0),
        (Timed(), 0, 1),
        (Wrapped(), 1, 0),
        (WithMethod(), 1, 0),
        (beam.FlatMap(Stateful().process).fn, 1, 0),
    ],
)
def test_state_and_timers_are_those_that_beam_finds(fn, num_states, num_timers):
    found = userstate.get_dofn_specs(fn)
    assert found == load_stock(userstate).get_dofn_specs(fn)
    assert (len(found[0]), len(found[1])) == (num_states, num_timers)


def test_methods_of_a_dofn_without_state_are_not_inspected(monkeypatch):
    def inspect(*args):
        raise AssertionError(args)

    functions = (Plain(), beam.Map(len).fn)
    monkeypatch.setattr(core, "get_function_arguments", inspect)
    for fn in functions:
        assert userstate.get_dofn_specs(fn) == (set(), set())
    with pytest.raises(AssertionError):
        userstate.get_dofn_specs(Stateful())


def test_modules_are_replaced_once():
    replaced = tf_utils.copy_tensors, PipelineOptions.view_as
    assert replaced[0].__module__ == wide_tables.__name__
    wide_tables.install()
    assert (tf_utils.copy_tensors, PipelineOptions.view_as) == replaced


def test_a_preprocessing_fn_is_traced_once_to_find_its_columns():
    calls = []

    def preprocessing_fn(inputs):
        calls.append(sorted(inputs))
        return {"out": inputs["b"] - tft.mean(inputs["a"])}

    specs = {name: tf.TensorSpec([None], tf.float32) for name in "abc"}
    for _ in range(2):
        assert tft.get_analyze_input_columns(preprocessing_fn, specs) == ["a"]
    assert tft.get_transform_input_columns(preprocessing_fn, specs) == ["b"]
    assert calls == [["a", "b", "c"]]
    # Nothing is kept after that, and other inputs are traced anew.
    assert tft.get_analyze_input_columns(preprocessing_fn, specs) == ["a"]
    del specs["c"]
    assert tft.get_analyze_input_columns(preprocessing_fn, specs) == ["a"]
    assert calls[1:] == [["a", "b", "c"], ["a", "b"]]


def test_a_view_is_made_once_and_shares_its_values_but_not_with_copies():
    options = PipelineOptions(["--runner=SparkRunner"])
    view = options.view_as(StandardOptions)
    assert options.view_as(StandardOptions) is view
    view.runner = "FlinkRunner"
    assert options.view_as(SetupOptions).view_as(StandardOptions).runner == "FlinkRunner"
    assert options.get_all_options()["runner"] == "FlinkRunner"
    options = PipelineOptions(["--runner=SparkRunner"])
    options.view_as(StandardOptions)
    copy = pickle.loads(pickle.dumps(options))
    copy.view_as(StandardOptions).runner = "FlinkRunner"
    assert options.view_as(StandardOptions).runner == "SparkRunner"
