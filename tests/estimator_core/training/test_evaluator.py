import os

import pytest

import estimator_core as est
from estimator_core import summaries
from estimator_core.training.evaluator import Evaluator
from tests.estimator_core.programs import Calls, Recorder


@pytest.fixture
def counted_input_fn(eval_input_fn):
    """Counts its calls in an attribute."""

    def make():
        make.calls += 1
        return eval_input_fn()

    make.calls = 0
    return make


def test_a_model_without_checkpoints_is_no_error(make_estimator, eval_input_fn, caplog):
    evaluator = Evaluator(make_estimator(), est.EvalSpec(eval_input_fn))
    assert evaluator.evaluate_and_export(is_the_final_export=False) is None
    assert evaluator.newest is None
    assert "not trained yet" in caplog.text


def test_the_newest_checkpoint_is_evaluated_as_the_spec_says(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator().train(input_fn, steps=2)  # w = 1.5
    exporters, hook = [Recorder("a"), Recorder("b")], Calls()
    spec = est.EvalSpec(eval_input_fn, steps=1, name="mine", hooks=[hook], exporters=exporters)
    evaluation = Evaluator(estimator, spec).evaluate_and_export(is_the_final_export=False)
    # Of two batches the first: x = 1 and 2, labels 0. The errors are 1.5 and 3.
    assert evaluation.metrics["mae"] == pytest.approx(2.25)
    assert hook.calls == 1
    assert os.path.isdir(estimator.eval_dir("mine"))
    assert evaluation.checkpoint_path == estimator.latest_checkpoint()
    assert evaluation.export_results == [b"a-2", b"b-2"]
    assert evaluation.is_final is False
    for exporter in exporters:
        directory = os.path.join(estimator.model_dir, "export", exporter.name)
        assert exporter.calls == [(2, False)]
        assert exporter.paths == [(directory, estimator.latest_checkpoint())]


def test_each_checkpoint_is_evaluated_once_and_exported_as_final_once(
    make_estimator, input_fn, eval_input_fn
):
    estimator = make_estimator().train(input_fn, steps=2)
    recorder, hook = Recorder(), Calls()
    evaluator = Evaluator(estimator, est.EvalSpec(eval_input_fn, hooks=[hook], exporters=[recorder]))
    first = evaluator.evaluate_and_export(is_the_final_export=False)
    assert evaluator.evaluate_and_export(is_the_final_export=False) is first
    assert evaluator.newest is first
    final = evaluator.evaluate_and_export(is_the_final_export=True)
    assert (final.is_final, final.metrics) == (True, first.metrics)
    assert evaluator.evaluate_and_export(is_the_final_export=True) is final
    assert evaluator.evaluate_and_export(is_the_final_export=False) is final
    assert recorder.calls == [(2, False), (2, True)]
    assert hook.calls == 2  # the batches of one evaluation
    estimator.train(input_fn, steps=1)
    later = evaluator.evaluate_and_export(is_the_final_export=False)
    assert (later.metrics["global_step"], later.is_final) == (3, False)
    assert hook.calls == 4


@pytest.mark.more
@pytest.mark.parametrize("has_hook", [False, True])
@pytest.mark.parametrize("steps", [None, 1])
def test_a_graph_that_is_kept_follows_the_checkpoints(
    make_estimator, input_fn, eval_input_fn, counted_input_fn, has_hook, steps
):
    estimator = make_estimator()
    hooks = [Calls()] if has_hook else []
    settings = {"steps": steps, "name": "kept", "hooks": hooks, "keeps_graph": True}
    evaluator = Evaluator(estimator, est.EvalSpec(counted_input_fn, **settings))
    for step in (1, 3, 4):
        estimator.train(input_fn, max_steps=step)
        found = evaluator.evaluate_and_export(is_the_final_export=False).metrics
        assert found == estimator.evaluate(eval_input_fn, steps=steps)
        assert found["global_step"] == step
        assert counted_input_fn.calls == 1
    assert not has_hook or hooks[0].calls == 3 * (steps or 2)
    assert sorted(summaries.read_evaluations(estimator.eval_dir("kept"))) == [1, 3, 4]


def test_a_graph_is_built_for_each_evaluation_unless_it_is_to_be_kept(
    make_estimator, input_fn, counted_input_fn
):
    estimator = make_estimator()
    evaluator = Evaluator(estimator, est.EvalSpec(counted_input_fn))
    for step in (1, 2):
        estimator.train(input_fn, max_steps=step)
        evaluator.evaluate_and_export(is_the_final_export=False)
    assert counted_input_fn.calls == 2
