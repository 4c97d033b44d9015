from estimator_core.spec.mode_keys import ModeKeys


def test_values_are_those_that_programs_compare_with():
    """Old programs compare `mode` with text, and SavedModels are tagged with it."""
    assert (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) == ("train", "eval", "infer")
    assert ModeKeys.ALL == ("train", "eval", "infer")
