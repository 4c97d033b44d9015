import pytest

import estimator_core as est
from estimator_core.training.specs import check_every_n_steps
from tests.estimator_core.programs import Recorder, batch_of

Exporter = est.FinalExporter
RECEIVER = est.export.build_parsing_serving_input_receiver_fn({})


input_fn = batch_of({"x": [1.0]}, [0.0])


def test_defaults_are_those_of_tf_estimator():
    assert est.TrainSpec(input_fn) == (input_fn, None, (), ())
    spec = est.EvalSpec(input_fn)
    assert (spec.input_fn, spec.steps, spec.name, spec.hooks) == (input_fn, 100, None, ())
    assert (spec.exporters, spec.start_delay_secs, spec.throttle_secs) == ((), 120, 600)
    assert spec.every_n_steps is None


def test_what_is_given_can_be_read():
    hook, listener = est.StopAtStepHook(3), est.CheckpointSaverListener()
    train = est.TrainSpec(input_fn, 7, hooks=[hook], saving_listeners=[listener])
    assert train == (input_fn, 7, (hook,), (listener,))
    exporters = [Exporter("a", RECEIVER), Exporter("b", RECEIVER)]
    evaluate = est.EvalSpec(input_fn, None, "name", [hook], exporters, 3, 0, 5, True)
    assert evaluate == (input_fn, None, "name", (hook,), tuple(exporters), 3, 0, 5, True)
    assert est.EvalSpec(input_fn, exporters=exporters[0]).exporters == (exporters[0],)  # it needs no list


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: est.TrainSpec(None), TypeError, "input_fn must be callable"),
        (lambda: est.TrainSpec(input_fn, 0), ValueError, "max_steps > 0"),
        (lambda: est.TrainSpec(input_fn, "1"), TypeError, "max_steps must be a number"),
        (lambda: est.TrainSpec(input_fn, hooks=[1]), TypeError, "hooks"),
        (lambda: est.TrainSpec(input_fn, saving_listeners=[1]), TypeError, "saving_listeners"),
        (
            lambda: est.TrainSpec(input_fn, saving_listeners=[est.StopAtStepHook(3)]),
            TypeError,
            "saving_listeners",
        ),
        (lambda: est.EvalSpec("data.csv"), TypeError, "input_fn must be callable"),
        (lambda: est.EvalSpec(input_fn, steps=0), ValueError, "steps > 0"),
        (lambda: est.EvalSpec(input_fn, "2"), TypeError, "steps must be a number"),
        (lambda: est.EvalSpec(input_fn, name=3), TypeError, "name=3"),
        (lambda: est.EvalSpec(input_fn, hooks=[1]), TypeError, "hooks"),
        (lambda: est.EvalSpec(input_fn, every_n_steps=0), ValueError, "every_n_steps > 0"),
        (lambda: est.EvalSpec(input_fn, every_n_steps=2.5), TypeError, "every_n_steps must be a w"),
        (lambda: est.EvalSpec(input_fn, throttle_secs=-1), ValueError, "throttle_secs=-1"),
        (lambda: est.EvalSpec(input_fn, start_delay_secs=-1), ValueError, "start_delay_secs=-1"),
        (lambda: est.EvalSpec(input_fn, exporters=[1]), TypeError, "exporters"),
        (
            lambda: est.EvalSpec(input_fn, exporters=[Exporter(name, RECEIVER) for name in ("a", "b", "a")]),
            ValueError,
            "different names",
        ),
        (lambda: est.EvalSpec(input_fn, exporters=Recorder(None)), ValueError, r"names=\[None\]"),
        (lambda: est.EvalSpec(input_fn, exporters=[Recorder("")]), ValueError, r"names=\[''\]"),
        (lambda: est.EvalSpec(input_fn, exporters=[Recorder(3)]), ValueError, r"names=\[3\]"),
    ],
)
def test_bad_specs_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(("every", "saved"), [(6, 6), (6, 3), (6, 1), (None, None), (None, 4)])
def test_evaluations_at_checkpoints(every, saved):
    config = est.RunConfig(save_checkpoints_steps=saved)
    check_every_n_steps(est.EvalSpec(input_fn, every_n_steps=every), config)


@pytest.mark.parametrize("saved", [4, 12, 5, None])
def test_evaluations_between_checkpoints_are_refused(saved):
    config = est.RunConfig(save_checkpoints_steps=saved)
    with pytest.raises(ValueError, match=f"set save_checkpoints_steps=6.*steps={saved}"):
        check_every_n_steps(est.EvalSpec(input_fn, every_n_steps=6), config)
