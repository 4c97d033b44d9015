import pytest

from estimator_core import ModeKeys
from estimator_core.graphs.restoring import RestoringSessionCreator


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
