"""`components.install()`, each time in a process of its own."""

import subprocess
import sys

import pytest


def run(*lines):
    """Runs a program whose assertions hold; returns what it logs."""
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.more
def test_all_names_of_tfx_mean_ours_after_the_call():
    log = run(
        "import components",
        "components.install()",
        "from tfx import v1",
        "import tensorflow as tf, tensorflow_model_analysis as tfma, tfx.components",
        "for name in ('CsvExampleGen', 'StatisticsGen', 'ImportSchemaGen', 'ExampleValidator', 'Transform',",
        "             'Trainer', 'Evaluator', 'InfraValidator', 'Pusher'):",
        "    assert getattr(v1.components, name) is getattr(components, name), name",
        "assert tfx.components.Evaluator is components.Evaluator",
        "from tfx.components import Trainer, SchemaGen",
        "assert Trainer is components.Trainer and SchemaGen is components.SchemaGen",
        "from tfx.components.trainer.component import Trainer",
        "assert Trainer is components.Trainer",
        "from tfx.components.trainer.executor import Executor, GenericExecutor",
        "assert (Executor.CONTRACTS, GenericExecutor.CONTRACTS[0]) == (('trainer_fn',), 'run_fn')",
        "from tfx.components.pusher.executor import Executor",
        "from components.pusher.executor import Executor as ours",
        "assert Executor is ours",
        "from tfx.components.transform.executor import Executor",
        "assert Executor.__module__ == 'components.transform.executor'",
        "assert Executor.__mro__[2].__module__ == 'tfx.components.transform.executor'",
        "assert tf.estimator.Estimator and tfma.EvalConfig",
        "config = v1.orchestration.experimental.KubeflowV2DagRunnerConfig()",
        "assert config.default_commands[2] == 'components.installed'",
        "from tfx.extensions.google_cloud_ai_platform.trainer.component import Trainer",
        "try: Trainer(examples=None)",
        "except ValueError as error: assert 'Use components.Trainer' in str(error)",
        "else: raise AssertionError",
    )
    assert "components.install() was called after" not in log


@pytest.mark.more
def test_after_an_import_of_tfx_it_replaces_tfxs_own_names_and_warns():
    log = run(
        "import logging",
        "logging.basicConfig()",
        "from tfx.components.pusher.component import Pusher as stock",
        "import tfx.components",
        "assert tfx.components.Pusher is stock",
        "import components",
        "components.install()",
        "components.install()",
        "assert tfx.components.Pusher is components.Pusher is not stock",
        "from tfx.components.trainer.component import Trainer",
        "assert Trainer is components.Trainer",
    )
    assert log.count("components.install() was called after the import of tfx.components.") == 1


@pytest.mark.more
def test_it_does_not_warn_of_names_that_only_our_own_modules_hold():
    code = "import logging; logging.basicConfig(); from components import StatisticsGen; import components"
    log = run(code, "components.install()")
    assert "was called after" not in log


@pytest.mark.more
def test_a_worker_may_begin_with_any_module_of_ours():
    run(
        "import components",
        "components.install()",
        "from components.transform import ordered_output, ordered_source, packed_source",
        "from tfx.components.transform import executor",
        "assert executor.Executor.__module__ == 'components.transform.executor'",
        "assert ordered_source.BATCH_KEY == executor._TRANSFORM_INTERNAL_FEATURE_FOR_KEY",
    )


@pytest.mark.more
def test_a_program_is_run_with_tfxs_names_replaced():
    command = [sys.executable, "-m", "components.installed"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr.endswith("Usage: python -m components.installed MODULE [ARGUMENTS]\n")
    done = subprocess.run([*command, "this", "an argument"], capture_output=True, text=True)
    assert done.stdout.startswith("The Zen of Python")


@pytest.mark.more
@pytest.mark.parametrize("repaired_by_tfx", ["", "import tfx.components"])
def test_tfma_has_its_names_also_if_it_was_imported_first(repaired_by_tfx: str) -> None:
    run(
        "import tensorflow_model_analysis as tfma",
        repaired_by_tfx,
        "import components",
        "assert tfma.PerSliceMetricThreshold and tfma.CrossSlicingSpec and tfma.AggregationOptions",
        "assert tfma.EvalConfig(model_specs=[tfma.ModelSpec(label_key='y')])",
        "assert tfma.metrics.ExampleCount",
    )
