"""The resident memory of a process during a long training, or during repeated evaluations."""

import gc
import os
import tempfile

from benchmarks.workloads import vector

_LOOKS = 100


def resident_bytes():
    """Returns the resident memory of this process (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def training_curve(estimator, config, steps):
    """Returns {"steps": [...], "resident_bytes": [...]} of a training of `steps` steps.

    Garbage is collected before each measurement, as graphs are cyclic. The first measurement is after a
    hundredth of the steps: until then, TensorFlow fills its pools.
    """
    every = steps // _LOOKS
    curve = {"steps": [], "resident_bytes": []}

    class Memory(estimator.SessionRunHook):
        """Measures the memory at an interval; the second and third method declare the interval to ours."""

        def begin(self):
            self.done = 0

        def steps_until_due(self, global_step):
            return every - global_step % every

        def skip_steps(self, steps):
            self.done += steps

        def after_run(self, run_context, run_values):
            self.done += 1
            if self.done % every == 0:
                gc.collect()
                curve["steps"].append(self.done)
                curve["resident_bytes"].append(resident_bytes())

    training = vector.work(128, 20)
    with tempfile.TemporaryDirectory() as model_dir:
        config = estimator.RunConfig(model_dir=model_dir, save_checkpoints_steps=5000, **config)
        model = training.make_estimator(estimator, config)
        model.train(training.input_fn, hooks=[Memory()], max_steps=steps)
    return curve


def evaluation_curve(estimator, config, calls):
    """Returns {"steps": [...], "resident_bytes": [...]} of `evaluate` calls, of three batches each."""
    every = max(calls // _LOOKS, 1)
    curve = {"steps": [], "resident_bytes": []}
    training = vector.work(128, 20)
    with tempfile.TemporaryDirectory() as model_dir:
        config = estimator.RunConfig(model_dir=model_dir, **config)
        model = training.make_estimator(estimator, config)
        model.train(training.input_fn, max_steps=10)
        for call in range(1, calls + 1):
            model.evaluate(training.input_fn, steps=3)
            if call % every == 0:
                gc.collect()
                curve["steps"].append(call)
                curve["resident_bytes"].append(resident_bytes())
    return curve
