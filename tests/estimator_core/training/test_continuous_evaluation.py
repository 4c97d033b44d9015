"""The evaluator's loop with a clock of the test's: nothing sleeps."""

import threading

import pytest

import estimator_core as est
from estimator_core.training.continuous_evaluation import evaluate_continuously
from tests.estimator_core.programs import Recorder


class Clock:
    """Time that goes by while the evaluator sleeps, and by `busy_secs` for each look at the clock."""

    def __init__(self, while_asleep, busy_secs=0.0):
        self.now = 100.0
        self.waits = []
        self._while_asleep = while_asleep
        self._busy_secs = busy_secs

    def __call__(self):
        self.now += self._busy_secs
        return self.now

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.now += seconds
        self._while_asleep(len(self.waits))


@pytest.fixture
def evaluate(make_estimator, input_fn, eval_input_fn):
    """Runs the loop; during its n-th sleep another process trains `steps[n]` steps."""

    def run(steps, max_steps, busy_secs=0.0, chief_ends_after=0, **settings):
        trainer = make_estimator()

        def train(number):
            if number > len(steps):
                raise KeyboardInterrupt  # who stops it
            if steps[number - 1]:
                trainer.train(input_fn, steps=steps[number - 1])

        recorder, clock = Recorder(), Clock(train, busy_secs)
        spec = est.EvalSpec(eval_input_fn, exporters=recorder, **settings)
        result = None
        try:
            result = evaluate_continuously(
                make_estimator(),
                spec,
                max_steps,
                clock=clock,
                sleep=clock.sleep,
                chief_is_there=lambda: len(clock.waits) < chief_ends_after,
            )
        except KeyboardInterrupt:
            assert len(clock.waits) == len(steps) + 1
        return recorder.calls, clock.waits, result

    return run


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("steps", "chief_ends_after", "waits", "calls"),
    [
        ([0, 2, 3], 0, [5, 7, 7], [(2, False), (5, True)]),
        # A worker was in the middle of a step when the chief saved, and the chief saves once more.
        ([5, 0, 1], 3, [5, 1, 1], [(6, True)]),
    ],
    ids=["the last step", "a step beyond"],
)
def test_it_waits_for_checkpoints_and_ends_with_the_last_one(evaluate, steps, chief_ends_after, waits, calls):
    settings = {"chief_ends_after": chief_ends_after, "start_delay_secs": 5, "throttle_secs": 7}
    found, waited, (metrics, exports) = evaluate(steps, 5, **settings)
    assert (waited, found) == (waits, calls)
    step = calls[-1][0]
    assert (metrics["global_step"], exports) == (step, [f"recorder-{step}".encode()])


def test_a_chief_that_does_not_end_is_not_waited_for_longer_than_a_minute(evaluate):
    calls, waits, _ = evaluate([5] + [0] * 60, 5, chief_ends_after=10**6, start_delay_secs=5)
    assert (calls, len(waits)) == ([(5, True)], 61)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("steps", "settings", "expected"),
    [
        # The throttle is between the starts of evaluations, of which each takes four seconds of the ten.
        ([2, 2], {"busy_secs": 4.0, "start_delay_secs": 3, "throttle_secs": 10}, [3, 6]),
        # It waits a second at least.
        ([2, 2], {"busy_secs": 0.0, "start_delay_secs": 3, "throttle_secs": 0}, [3, 1]),
        ([2, 2], {"busy_secs": 20.0, "start_delay_secs": 3, "throttle_secs": 10}, [3, 1]),
        ([2, 2], {"busy_secs": 9.5, "start_delay_secs": 3, "throttle_secs": 10}, [3, 1]),
        ([2, 0, 0, 2], {"start_delay_secs": 2, "throttle_secs": 4}, [2, 4, 4, 4]),
        ([2, 2], {}, [120, 600]),
    ],
)
def test_it_waits_for_a_checkpoint_and_evaluates_it_once(evaluate, steps, settings, expected):
    calls, waits, _ = evaluate(steps, 4, **settings)
    assert calls == [(2, False), (4, True)]
    assert waits == expected


@pytest.mark.parametrize("max_steps", [2, 3])
def test_a_step_past_the_last_one_ends_it_too(evaluate, max_steps):
    calls, _, _ = evaluate([3], max_steps, start_delay_secs=0)
    assert calls == [(3, True)]


@pytest.mark.more
def test_without_a_last_step_it_goes_on_for_ever(evaluate):
    calls, _, result = evaluate([2, 2, 2], None, start_delay_secs=0)
    assert calls == [(2, False), (4, False), (6, False)]
    assert result is None


def test_it_ends_with_the_last_checkpoint_when_training_ends_early(make_estimator, input_fn, eval_input_fn):
    """Training is over at step 4 of 9, while the first checkpoint is being waited for."""
    is_over = threading.Event()
    recorder = Recorder()

    def train_and_end(number):
        if number == 2:
            make_estimator().train(input_fn, steps=4)
            is_over.set()
        assert number < 3

    clock = Clock(train_and_end)
    spec = est.EvalSpec(eval_input_fn, exporters=recorder, start_delay_secs=5, throttle_secs=7)
    metrics, exports = evaluate_continuously(
        make_estimator(), spec, 9, clock=clock, sleep=clock.sleep, is_over=is_over.is_set
    )
    assert recorder.calls == [(4, True)]
    assert (metrics["global_step"], exports) == (4, [b"recorder-4"])


def test_a_training_that_saved_nothing_ends_it_too(make_estimator, eval_input_fn):
    spec = est.EvalSpec(eval_input_fn, start_delay_secs=0)
    clock = Clock(lambda number: None)
    assert evaluate_continuously(
        make_estimator(), spec, 9, clock=clock, sleep=clock.sleep, is_over=lambda: True
    ) == (None, [])
