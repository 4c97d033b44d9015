"""A program has the parts that its loop needs, and its scope is the one that it was built in."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.current import current_execution
from estimator_core.execution.evaluation_metrics import SHARE_WITH_ROWS


def test_what_each_mode_fetches(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator()
    train = estimator.build_program("train", input_fn)
    assert train.fetches == [train.spec.train_op, train.spec.loss]
    values, _ = estimator.build_program("eval", eval_input_fn).fetches
    assert set(values) == {"loss", "mae", "global_step", SHARE_WITH_ROWS}
    predict = estimator.build_program("infer", eval_input_fn)
    assert predict.fetches is predict.spec.predictions
    assert set(predict.fetches) == {"y"}


def test_its_scope_is_the_one_that_it_was_built_in(make_estimator, input_fn):
    program = make_estimator(device_fn=lambda op: "/cpu:1").build_program("train", input_fn)
    with program.scope() as graph:
        assert tf1.get_default_graph() is graph is program.graph
        assert current_execution() is program.execution
        assert tf.constant(1.0).device.lower().endswith("cpu:1")
    assert current_execution() is not program.execution


def test_another_scaffold_leaves_the_program_as_it_was(make_estimator, input_fn):
    program = make_estimator().build_program("train", input_fn)
    with program.scope():
        weight = tf1.global_variables("weight")[0]
        init_op = tf.group(weight.assign(7.0), tf1.train.get_global_step().initializer)
        scaffold = tf1.train.Scaffold(init_op=init_op)
        other = program.with_scaffold(scaffold)
        assert other.spec.scaffold is scaffold
        assert program.spec.scaffold is not scaffold
        session = other.session_creator().create_session()
        assert session.run(weight) == 7.0
        session.close()


def test_a_session_has_the_checkpoint_that_was_asked_for(make_estimator, input_fn):
    estimator = make_estimator(save_checkpoints_steps=1).train(input_fn, steps=2)
    program = estimator.build_program("infer", input_fn)
    path = f"{estimator.model_dir}/model.ckpt-1"
    with program.scope():
        weight = tf1.global_variables("weight")[0]
        with tf1.train.MonitoredSession(program.session_creator(checkpoint_path=path)) as session:
            assert session.run(weight) == 1.0


def test_params_and_config_reach_both_functions(tmp_path):
    seen = []

    def model_fn(features, labels, mode, params, config):
        seen.append((params["rate"], config.save_summary_steps))
        params["rate"] = 99  # a copy: nobody else sees it
        return est.EstimatorSpec(mode, {"y": features["x"]})

    def input_fn(params, config, mode):
        seen.append((params["rate"], config.save_summary_steps, mode))
        return tf.data.Dataset.from_tensors({"x": [1.0]})

    config = est.RunConfig(model_dir=str(tmp_path), save_summary_steps=17)
    estimator = est.Estimator(model_fn, config=config, params={"rate": 3})
    for _ in range(2):
        estimator.build_program("infer", input_fn, starts_from_checkpoint=False)
    assert seen == [(3, 17, "infer"), (3, 17)] * 2
