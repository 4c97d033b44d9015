"""The graph of one core: placeholders, and collective operations where shards add up."""

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.execution.one_core import OneCore
from tests.estimator_core.shard_programs import input_fn


def of_type(program, kind):
    return [op for op in program.graph.get_operations() if op.type == kind]


def build(estimator, mode, input_fn=input_fn):
    execution = OneCore(estimator.config.sharding(mode))
    return execution, estimator.build_program(mode, input_fn, execution=execution)


def test_a_core_sums_up_the_gradient_of_the_weight(make_sharded):
    execution, program = build(make_sharded(num_shards=4, train_batch_size=8), est.ModeKeys.TRAIN)
    assert [feed.shape.as_list() for feed in execution.feeds] == [[2], [2]]  # x and labels
    (assigned,) = of_type(program, "CollectiveAssignGroupV2")
    assert tf.get_static_value(assigned.inputs[0]).tolist() == [[0, 1, 2, 3]]
    (total,) = of_type(program, "CollectiveReduceV2")
    assert total.inputs[0].shape == []
    assert execution.fetches == [program.spec.loss, program.spec.train_op]


def test_other_modes_add_up_nothing(make_sharded):
    execution, program = build(make_sharded(), est.ModeKeys.EVAL)
    assert not of_type(program, "CollectiveReduceV2")
    # The loss, and the arguments of metric_fn: labels and prediction.
    assert [tensor.shape.rank for tensor in execution.fetches] == [0, 1, 1]


def test_a_core_gets_no_strings(make_sharded):
    def words(params):
        return input_fn(params).map(lambda x, y: ({**x, "word": tf.fill([4], "a")}, y))

    with pytest.raises(ValueError, match="input_fn turn it into numbers"):
        build(make_sharded(), est.ModeKeys.TRAIN, words)
