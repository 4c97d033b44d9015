import logging

import pytest

from pipelines.terminal.progress import PlainDisplay, Progress, evaluation_in_words


@pytest.fixture
def progress(display):
    with Progress(display, max_steps=200) as progress:
        yield progress


def logger(name="tensorflow"):
    found = logging.getLogger(name)
    found.setLevel(logging.INFO)
    return found


LOSS = ("loss = %s, step = %s (%s sec)", "0.25", 100, "0.1")
EVALUATION = ("Saving dict for global step %d: %s", 200, "loss = 0.2")


def test_training_is_shown_as_the_estimator_logs_it(progress, shown):
    progress.component_started("Trainer")
    logger().info("global_step/sec: %s", "812.4")
    logger().info(*LOSS)
    logger().info("Saving dict for global step %d: %s", 200, "accuracy = 0.9, loss = 0.2")
    logger().info("something else")
    progress.component_finished("Trainer", False, 12.34)
    progress.component_finished("Pusher", True, 0.1)
    assert shown.getvalue().splitlines() == [
        "    Trainer ...",
        "    Trainer  step 100/200, loss 0.25, 812 steps/s",
        "    evaluation at step 200: loss 0.2, accuracy 0.9",
        "✓ Trainer  12.3 s",
        "= Pusher  unchanged, reused",
    ]


def test_the_training_of_a_cluster_is_shown_as_its_chief_logs_it(progress, shown):
    progress.component_started("Trainer", trains=True)
    chief = logger("components.trainer.task_logs")
    chief.info("%s", "Restoring parameters from /root/model.ckpt-50")
    chief.info("%s", "loss = 0.25, step = 100 (0.1 sec)")
    assert shown.getvalue().splitlines() == [
        "    Trainer ...",
        "    continues from the checkpoint of step 50",
        "    Trainer  step 100/200, loss 0.25",
    ]


def test_only_training_continues_from_a_checkpoint_and_only_at_its_start(progress, shown):
    restored = "Restoring parameters from some/model.ckpt-40"
    progress.component_started("Evaluator")
    logger().info(restored)
    progress.component_started("my own trainer", trains=True)
    logger().info(restored)
    logger().info(restored)  # an evaluation
    progress.component_started("my own trainer", trains=True)
    logger().info(*LOSS)
    logger().info(restored)
    lines = shown.getvalue().splitlines()
    assert lines[:3] == [
        "    Evaluator ...",
        "    my own trainer ...",
        "    continues from the checkpoint of step 40",
    ]
    assert sum("continues" in line for line in lines) == 1


def test_activities_are_thinned_out_but_lines_are_not(shown):
    display = PlainDisplay(shown, secs_between_activities=1_000)
    for text in ("one", "two"):
        display.activity(text)
        display.line(text)
    assert shown.getvalue().split() == ["one", "one", "two"]


def test_one_of_several_models_has_a_line_of_its_own_when_it_is_trained(progress, shown):
    progress.component_started("Trainer", trains=True)
    estimator, selection = logger(), logger("pipelines.tabular.model_selection")
    selection.info("Training %s: %d of %d steps at most.", "linear", 300, 900)
    estimator.info(*LOSS)
    estimator.info(*EVALUATION)
    selection.info("Trained %s", "linear: average_loss 0.2 at step 200 (3.0 s)")
    estimator.info("loss = %s, step = %s (%s sec)", "0.1", 1_800, "0.1")  # on all rows
    estimator.info(*EVALUATION)
    assert shown.getvalue().splitlines() == [
        "    Trainer ...",
        "    Trainer  linear  step 100/900, loss 0.25",
        "    Trainer  linear  evaluation at step 200: loss 0.2",
        "    linear: average_loss 0.2 at step 200 (3.0 s)",
        "    Trainer  step 1800, loss 0.1",
        "    evaluation at step 200: loss 0.2",
    ]


def test_a_training_of_trees_is_shown_in_trees(progress, shown):
    progress.component_started("Trainer", trains=True)
    estimator = logger()
    logger("pipelines.tabular.training").info("Steps of a tree: %d", 4)
    estimator.info("%s", "Restoring parameters from /root/model.ckpt-40")
    estimator.info("global_step/sec: %s", "812.4")
    estimator.info(*LOSS)
    estimator.info("Saving dict for global step %d: %s", 102, "loss = 0.2")
    progress.component_started("Trainer")
    estimator.info(*LOSS)
    assert shown.getvalue().splitlines() == [
        "    Trainer ...",
        "    continues from the checkpoint of tree 10",
        "    Trainer  tree 25/50, loss 0.25, 203 trees/s",
        "    evaluation at tree 25: loss 0.2",
        "    Trainer ...",
        "    Trainer  step 100/200, loss 0.25",
    ]


BINARY = (
    "accuracy = 0.9597315, accuracy_baseline = 0.5033557, auc = 0.9936937, auc_precision_recall = 0.99, "
    "average_loss = 0.44919893, global_step = 300, label/mean = 0.4966443, loss = 0.44602647, precision = "
    "0.98571426, prediction/mean = 0.47, recall = 0.93"
)


@pytest.mark.parametrize(
    ("metrics", "thresholds", "expected"),
    [
        (BINARY, (), "average_loss 0.4492, auc 0.99369"),
        (BINARY, ("precision", "auc"), "average_loss 0.4492, auc 0.99369, precision 0.98571"),
        (BINARY, ("binary_accuracy",), "average_loss 0.4492, auc 0.99369, accuracy 0.95973"),
        ("accuracy = 0.5, average_loss = 2.0, global_step = 1, loss = 3.0", (),
         "average_loss 2, accuracy 0.5"),
        ("average_loss = 2863.9434, label/mean = 135.6, loss = 1.0, prediction/mean = 1.0", ("f1_score",),
         "average_loss 2863.9"),
        ("a = 1, b = [0.5 0.25], c = 2, d = 3, global_step = 7, loss = nan", (),
         "loss nan, a 1, b [0.5 0.25], c 2"),
    ],
)  # fmt: skip
def test_an_evaluation_shows_what_decides(metrics, thresholds, expected):
    assert evaluation_in_words(metrics, thresholds) == expected


def test_the_metrics_of_thresholds_are_shown(progress, shown):
    progress.thresholds = ("recall",)
    logger().info("Saving dict for global step %d: %s", 300, BINARY)
    assert shown.getvalue() == "    evaluation at step 300: average_loss 0.4492, auc 0.99369, recall 0.93\n"
