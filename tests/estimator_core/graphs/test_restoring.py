import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import ModeKeys
from estimator_core.graphs.restoring import RestoringSessionCreator
from tests.estimator_core.programs import batch_of


def test_evaluate_and_predict_take_the_newest_checkpoint_once_their_graph_is_built(beside):
    estimator, input_fn = beside
    assert estimator.evaluate(input_fn)["global_step"] == 3
    assert len(list(estimator.predict(input_fn))) > 0
    assert estimator.latest_checkpoint().endswith("-4")


def test_a_checkpoint_that_is_named_is_the_one_or_an_error(beside):
    estimator, input_fn = beside
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        estimator.evaluate(input_fn, checkpoint_path=estimator.latest_checkpoint())


def test_a_session_creator_says_what_it_has_restored(beside):
    estimator, input_fn = beside
    program = estimator.build_program(ModeKeys.EVAL, input_fn)
    creator = RestoringSessionCreator(program, estimator.latest_checkpoint)
    assert creator.checkpoint_path is None
    with program.graph.as_default():
        creator.create_session().close()
    assert creator.checkpoint_path == estimator.latest_checkpoint()
    assert creator.checkpoint_path.endswith("-3")  # written while the graph was built


class Counter(est.SessionRunHook):
    """Counts steps in variables of its own: one that begins at 100, and a partitioned one."""

    def __init__(self, at_end=None):
        self._at_end = at_end

    def begin(self):
        self._calls = tf1.get_variable("calls", initializer=100.0)
        self._parts = tf1.get_variable(
            "parts", [4], initializer=tf1.zeros_initializer(), partitioner=tf1.fixed_size_partitioner(2)
        )
        self._add = [part.assign(part + 1.0) for part in [self._calls, *self._parts]]
        self._values = [self._calls, self._parts.as_tensor(), "weight/Read/ReadVariableOp:0"]

    def after_run(self, run_context, run_values):
        run_context.session.run(self._add)

    def end(self, session):
        calls, parts, weight = session.run(self._values)
        self._at_end.append((calls.item(), parts.tolist(), weight))


def own_saver(weight, step):
    return tf1.train.Saver([weight, step])


def object_based_saver(weight, step):
    return tf.train.Checkpoint(weight=weight, step=step)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make_saver", [None, own_saver, object_based_saver])
def test_variables_of_a_new_hook_are_initialized(tmp_path, make_saver):
    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", initializer=0.0, use_resource=True)
        step = tf1.train.get_or_create_global_step()
        train_op = tf.group(weight.assign_add(features), step.assign_add(1))
        scaffold = tf1.train.Scaffold(saver=make_saver and make_saver(weight, step))
        return est.EstimatorSpec(mode, loss=2.0 - weight, train_op=train_op, scaffold=scaffold)

    at_end, estimator = [], est.Estimator(model_fn, tmp_path)
    for steps, hooks in ((2, []), (5, [Counter(at_end)]), (2, [Counter(at_end)])):
        estimator.train(batch_of(3.0, repeat=None), steps=steps, hooks=hooks)
    first, second = at_end
    assert first == (105.0, [5.0] * 4, 3.0 * 7)
    # A saver that model_fn made does not save the hook's variables.
    count = 7.0 if make_saver is None else 2.0
    assert second == (100 + count, [count] * 4, 3.0 * 9)


def test_a_missing_variable_of_the_model_is_an_error(make_estimator, input_fn, tmp_path):
    make_estimator().train(input_fn, steps=2)

    def larger_model_fn(features, labels, mode, params):
        tf1.get_variable("bias", initializer=1.0)
        return make_estimator().model_fn(features, labels, mode, None)

    larger = est.Estimator(larger_model_fn, tmp_path / "model", params={})
    with pytest.raises(tf.errors.NotFoundError, match="Key bias not found in checkpoint"):
        larger.train(input_fn, steps=1, hooks=[Counter()])
