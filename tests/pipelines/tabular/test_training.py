"""The generic trainer_fn on transformed examples whose best answer is known."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core
from components.errors import SettingError
from components.trainer.fn_args import Trial
from pipelines.data.formats.cell_format import CellFormat, TextFormat, read_formats, read_text_formats
from pipelines.data.formats.number_format import COMMA
from pipelines.serving.model import Model
from pipelines.tabular import training
from pipelines.tabular.decision import Decision, read_decision
from pipelines.tabular.model_selection import read_candidates
from pipelines.tabular.preprocessing import BUCKET_KEY, NUMERIC_KEY
from tests.circles import in_circles
from tests.pipelines.tabular.one_number_one_city import (
    BINARY,
    REGRESSION,
    SCHEMA,
    FakeTransform,
    make_plan,
    serialize,
    trainer_args,
)


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Returns a function that calls trainer_fn on examples with the labels of `label_of(x, city)`."""

    def make(plan, label_of, train_steps=None, values=None, trial=None):
        is_text = plan.label.problem_type != "regression"
        dtype = tf.string if is_text else tf.float32
        monkeypatch.setattr(training.tft, "TFTransformOutput", lambda path: FakeTransform(dtype))
        path = str(tmp_path / "data.gz")
        random = np.random.default_rng(4)
        with tf.io.TFRecordWriter(path, "GZIP") as writer:
            for x, city in zip(random.uniform(-2, 2, 300), random.integers(0, 3, 300), strict=True):
                label = label_of(float(x), int(city))
                features = {NUMERIC_KEY: float(x), BUCKET_KEY: int(x > 0), "category_0": int(city)}
                writer.write(serialize(**features, label=label))
        hyperparameters = {"values": values} if values else None
        args = trainer_args(
            plan, path, tmp_path, hyperparameters=hyperparameters, trial=trial, train_steps=train_steps
        )
        schema = schema_utils.schema_from_feature_spec({**SCHEMA, "y": tf.io.VarLenFeature(dtype)})
        return training.trainer_fn(args, schema)

    return make


def stopping(model, label=BINARY, **changes):
    """Returns a plan for a model whose training stops early."""
    return make_plan(label, model=model, early_stopping=True, **changes)


def train(made):
    """Trains, evaluates and exports; returns the metrics."""
    metrics, _ = estimator_core.train_and_evaluate(made["estimator"], made["train_spec"], made["eval_spec"])
    return metrics


def only_export(folder):
    (export,) = (folder / "model" / "export" / training.EXPORTER_NAME).iterdir()
    return export


def by_sign(x, city):
    return b"yes" if x > 0 else b"no"


@pytest.mark.more
def test_a_classifier_learns_serves_and_is_evaluated(call, tmp_path):
    made = call(make_plan(BINARY), lambda x, city: b"yes" if x + city > 1 else b"no")
    train(made)
    assert made["estimator"].get_variable_value("global_step") == 120
    signature = tf.saved_model.load(str(only_export(tmp_path))).signatures["predict"]
    # Raw examples without the label: x + city is 2.5, 0.5 and -0.5; the limit is 1.
    examples = [serialize(x=1.5, city=1), serialize(x=0.5, city=0), serialize(x=-1.5, city=1)]
    classes = signature(examples=tf.constant(examples))["classes"].numpy().ravel().tolist()
    assert classes == [b"yes", b"no", b"no"]
    with tf.Graph().as_default():
        inputs = made["eval_input_receiver_fn"]()
        assert inputs.labels.dtype == tf.string
        assert "label" not in inputs.features


@pytest.mark.more
@pytest.mark.parametrize("settings", [{}, {"early_stopping": True, "held_out_rows": 50}])
def test_the_formats_of_the_cells_are_beside_the_model(call, tmp_path, settings):
    plan = make_plan(REGRESSION, **settings)
    (x,) = plan.numeric
    commas = x.model_copy(update={"number_format": COMMA, "unreadable": ("?",)})
    plan = plan.model_copy(update={"numeric": (commas,)})
    made = call(plan, lambda x, city: 1_000.0 + 100 * x, train_steps=10)
    train(made)
    assert read_formats(only_export(tmp_path)) == {"x": CellFormat(COMMA, missing=("?",))}


def test_columns_of_text_say_how_they_write_what_looks_like_numbers(tmp_path):
    plan = make_plan(BINARY).model_copy(update={"text_formats": {"city": TextFormat(5), "x": TextFormat(2)}})
    for dtype, expected in (
        (tf.string, {"x": TextFormat(1, is_number=True), "city": TextFormat(5)}),
        (tf.float32, {"city": TextFormat(5)}),
    ):
        schema = schema_utils.schema_from_feature_spec(
            {"x": tf.io.VarLenFeature(dtype), "city": tf.io.VarLenFeature(tf.string)}
        )
        training._write_formats(plan, schema, str(tmp_path / "assets.extra"))
        assert (read_text_formats(tmp_path), read_formats(tmp_path)) == (expected, {})


@pytest.mark.parametrize(("train_steps", "max_steps"), [(None, 7), (0, 7), (50, 50)])
def test_the_trainers_steps_go_before_those_of_the_plan(call, train_steps, max_steps):
    plan = make_plan(BINARY, train_steps=7, eval_steps=5)
    made = call(plan, lambda x, city: b"yes", train_steps)
    assert made["train_spec"].max_steps == max_steps
    assert made["eval_spec"].steps == 5


def test_training_data_repeat_and_evaluation_data_do_not(call):
    made = call(make_plan(BINARY), lambda x, city: b"no")
    sizes = [int(tf.shape(label)[0]) for _, label in made["eval_spec"].input_fn()]
    assert sizes == [32] * 9 + [12]
    train = made["train_spec"].input_fn().take(20)
    assert [int(tf.shape(label)[0]) for _, label in train] == [32] * 20
    features, label = next(iter(train))
    assert sorted(features) == sorted([BUCKET_KEY, "category_0", NUMERIC_KEY])
    assert set(label.numpy()) == {b"no"}


def test_rows_that_are_held_out_are_not_trained_on(call):
    made = call(make_plan(BINARY, early_stopping=True), lambda x, city: b"no")
    train, held_out = made["train_spec"].input_fn().take(30), made["eval_spec"].input_fn()
    seen, held_out = (
        [float(x) for features, _ in data for x in features[NUMERIC_KEY].numpy().ravel()]
        for data in (train, held_out)
    )
    assert 30 < len(held_out) < 70  # a sixth of 300
    assert not {*seen} & {*held_out}
    assert len({*seen}) + len(held_out) == 300


def test_trees_learn_from_the_rows_that_gave_the_means_of_the_label(call, tmp_path):
    plan = make_plan(REGRESSION, model="boosted_trees", trees={"n_trees": 3})
    made = call(plan, lambda x, city: 10.0 * city + x)
    (tmp_path / "data.gz").unlink()
    made["estimator"].train(made["train_spec"].input_fn)
    assert made["estimator"].get_variable_value("boosted_trees/finished") == 3
    counts = made["estimator"].get_variable_value("boosted_trees/count")
    assert counts[0] == 300  # rows in the first root


@pytest.mark.more
def test_training_stops_when_it_only_learns_by_heart(call):
    """The labels are noise: the loss on rows that were held out is lowest near the beginning."""
    noise = np.random.default_rng(7)
    plan = make_plan(
        BINARY, early_stopping=True, train_steps=1_600, hidden_units=(64, 64), learning_rate=0.02
    )
    made = call(plan, lambda x, city: noise.choice([b"yes", b"no"]))
    estimator = made["estimator"]
    assert estimator.config.save_checkpoints_steps == 50
    metrics = train(made)
    best = int(estimator.latest_checkpoint().rpartition("-")[2])
    assert best < metrics["global_step"] < 1_600
    at_best = estimator.evaluate(made["eval_spec"].input_fn)
    assert at_best["global_step"] == best
    assert at_best["loss"] < metrics["loss"]


@pytest.mark.more
@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize("label", in_circles([BINARY, REGRESSION], slow=[BINARY]))
def test_auto_takes_the_models_that_are_best_on_held_out_rows(call, tmp_path, label, folds):
    """The sign of x counts one way or the other by city: no linear model can learn it."""
    plan = make_plan(label, model="auto", early_stopping=True, train_steps=60, folds=folds)

    def label_of(x, city):
        is_high = (x > 0.3) == (city == 1)
        return (b"yes" if is_high else b"no") if label is BINARY else 1_000.0 + 300 * is_high

    made = call(plan, label_of)
    found = read_candidates(str(tmp_path))
    assert [one.model for one in found] == ["boosted_trees", "wide_deep", "linear"]
    chosen = [one for one in found if one.is_chosen]
    assert "linear" not in [one.model for one in chosen]
    assert sum(one.weight for one in chosen) == pytest.approx(1)
    assert min(one.loss for one in chosen) == min(one.loss for one in found) < 0.5 * found[2].loss
    assert {one.folds for one in chosen} == {folds}
    assert not (tmp_path / "candidates").exists()
    metrics = train(made)
    assert metrics["global_step"] == made["train_spec"].max_steps == max(one.step for one in chosen)
    if folds == 1 and [one.model for one in chosen] == ["wide_deep"]:  # it is not trained any more
        assert metrics["average_loss"] == pytest.approx(chosen[0].loss)
    else:  # evaluated on all rows
        variance = 0.69 if label is BINARY else 150.0**2  # of a model that answers the same for all
        assert metrics["average_loss"] < 0.1 * variance
    exports = list((tmp_path / "model" / "export" / training.EXPORTER_NAME).iterdir())
    signature = tf.saved_model.load(str(max(exports))).signatures["predict"]
    served = signature(examples=tf.constant([serialize(x=1.5, city=1), serialize(x=1.5, city=2)]))
    if label is BINARY:
        assert served["classes"].numpy().ravel().tolist() == [b"yes", b"no"]
    else:
        assert served["predictions"].numpy().ravel() == pytest.approx([1_300, 1_000], abs=60)
    # Called again, as after an interruption, it compares nothing.
    record = (tmp_path / "model_selection.json").read_bytes()
    again = call(plan, label_of)
    assert again["estimator"].get_variable_value("global_step") == made["train_spec"].max_steps
    key = "logits" if label is BINARY else "predictions"
    before, after = (next(one["estimator"].predict(one["eval_spec"].input_fn)) for one in (made, again))
    assert after[key] == pytest.approx(before[key])
    assert (tmp_path / "model_selection.json").read_bytes() == record


@pytest.mark.more
@pytest.mark.parametrize("model", ["boosted_trees", "wide_deep", "linear"])
def test_one_model_is_trained_where_the_plan_names_it(call, tmp_path, model):
    made = call(stopping(model, train_steps=60, trees={"n_trees": 8}), by_sign)
    found = read_candidates(str(tmp_path))
    assert [one.model for one in found] == (["boosted_trees"] if model == "boosted_trees" else [])
    assert made["train_spec"].max_steps == (found[0].step if found else 60)
    assert train(made)["auc"] > 0.9
    names = made["estimator"].get_variable_names()
    prefix = {"boosted_trees": "boosted_trees/", "wide_deep": "dnn/", "linear": "linear/"}[model]
    assert any(name.startswith(prefix) for name in names)
    assert model == "wide_deep" or not any(name.startswith("dnn/") for name in names)


@pytest.mark.more
def test_the_values_of_a_trial_train_their_model_alone_and_trees_report_on_their_way(call, tmp_path):
    plan = stopping("auto", trees={"n_trees": 40})
    reported = {}
    trial = Trial(3, lambda metrics, step: reported.update({step: metrics}))
    values = {"model": "boosted_trees", "boosted_trees.max_depth": 3}
    # The Trainer's steps are those of the plan, of other trees.
    made = call(plan, by_sign, 77, values, trial)
    assert made["train_spec"].max_steps == 40 * 3
    train({**made, "eval_spec": made["eval_spec"]._replace(exporters=())})
    steps = [5 * number * 3 for number in range(1, 9)]  # each eighth of the trees
    assert list(reported) == steps[: len(reported)]
    assert len(reported) >= 4
    assert all(metrics.keys() == {"average_loss"} for metrics in reported.values())
    assert not (tmp_path / "model_selection.json").exists()


@pytest.mark.more
def test_with_the_best_values_the_trainer_grows_trees_from_all_rows(call, tmp_path):
    plan = make_plan(BINARY, model="auto", early_stopping=True, trees={"n_trees": 40})
    values = {"model": "boosted_trees", "boosted_trees.max_depth": 3}
    made = call(plan, lambda x, city: b"yes" if (x > 0.3) == (city == 1) else b"no", None, values)
    trees, deep, linear = read_candidates(str(tmp_path))
    assert (trees.is_chosen, trees.steps_per_tree) == (True, 3)
    assert not linear.is_chosen
    # Of an auto plan, the trees are grown again with the best number of them; see `select_model`.
    assert trees.step % 3 == 0
    assert made["train_spec"].max_steps == max(one.step for one in (trees, deep) if one.is_chosen)


@pytest.mark.more
@pytest.mark.parametrize("held_out_rows", [50, 50_000])
def test_trees_alone_are_grown_again_from_all_rows(call, tmp_path, held_out_rows):
    """As those that `auto` chooses. They have no other model to wait for, however many rows there are."""
    noise = np.random.default_rng(7)
    plan = stopping("boosted_trees", trees={"n_trees": 400}, held_out_rows=held_out_rows)
    made = call(plan, lambda x, city: b"yes" if x + noise.normal() > 0 else b"no")
    (found,) = read_candidates(str(tmp_path))
    assert found.is_chosen
    assert not found.is_paused
    assert 0 < found.step < 400 * 6
    made["estimator"].train(made["train_spec"].input_fn, max_steps=made["train_spec"].max_steps)
    read = made["estimator"].get_variable_value
    assert read("boosted_trees/finished") == found.step / 6
    assert read("boosted_trees/count")[0] == 300  # rows in the first root, with those held out


def test_trees_are_not_compared_where_there_is_text_alone():
    plan = make_plan(BINARY)
    assert training.possible_models(plan) == ("boosted_trees", "wide_deep", "linear")
    text_alone = plan.model_copy(update={"numeric": (), "categorical": ()})
    assert training.possible_models(text_alone) == ("wide_deep", "linear")


@pytest.mark.more
@pytest.mark.parametrize(
    ("held_out_rows", "expected"),
    [
        (4_166, {"boosted_trees": None, "wide_deep": None}),  # 25,000 rows times 800 trees
        (4_167, {"boosted_trees": 100 * 6, "wide_deep": 4 * 50}),
    ],
)
@pytest.mark.parametrize("n_trees", [800, 2_000])
def test_where_growing_trees_takes_long_models_train_an_eighth_first(call, held_out_rows, n_trees, expected):
    for model, steps in expected.items():
        plan = stopping(model, train_steps=160, trees={"n_trees": n_trees}, held_out_rows=held_out_rows)
        assert training._first_rung(plan, call(plan, by_sign)["estimator"]) == steps


@pytest.mark.more
@pytest.mark.parametrize("model", in_circles(["linear", "boosted_trees"], slow=["boosted_trees"]))
def test_the_decision_threshold_is_part_of_the_model_and_chosen_once(call, tmp_path, model):
    plan = stopping(model, train_steps=50, trees={"n_trees": 8}, decide={"recall": 0.9})

    def label_of(x, city):
        noise = 10_000 * x % 4 - 2
        return b"yes" if x + noise > 1.5 - 0.3 * city else b"no"

    made = call(plan, label_of)
    file = tmp_path / "decision.json"
    chosen = read_decision(str(file))
    assert chosen.threshold < 0.4
    assert chosen.recall >= 0.9
    assert 30 < chosen.held_out_rows < 70  # a sixth of 300
    assert not (tmp_path / "candidates").exists()
    before = file.read_bytes(), file.stat().st_mtime_ns
    made = call(plan, label_of)  # as after an interruption
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    train(made)
    export = only_export(tmp_path)
    assert (export / "assets.extra" / "decision.json").read_bytes() == file.read_bytes()
    signature = tf.saved_model.load(str(export)).signatures["predict"]
    examples = [serialize(x=x, city=city) for x in np.linspace(-2, 2, 41) for city in range(3)]
    outputs = signature(examples=tf.constant(examples))
    scores, classes = outputs["logistic"].numpy()[:, 0], outputs["classes"].numpy()[:, 0]
    assert classes.tolist() == [b"yes" if score > chosen.threshold else b"no" for score in scores]
    assert ((scores > chosen.threshold) != (scores > 0.5)).any()


@pytest.mark.more
def test_a_threshold_that_is_given_needs_no_held_out_rows(call, tmp_path):
    made = call(make_plan(BINARY, model="linear", train_steps=10, decide=0.25), lambda x, city: b"yes")
    assert read_decision(str(tmp_path / "decision.json")) == Decision(0.25, "yes", "as configured")
    train(made)
    assert Model(only_export(tmp_path)).decision["threshold"] == 0.25


@pytest.mark.more
def test_folds_that_no_group_falls_into_are_left_out(call, tmp_path, monkeypatch):
    def check(transform, files, one_held_out_in, column, fold=0):
        if fold == 2:
            raise SettingError("too few values")

    monkeypatch.setattr(training, "check_held_out", check)
    plan = stopping("auto", train_steps=30, folds=4, trees={"n_trees": 4})
    call(plan.model_copy(update={"group": "city"}), by_sign)
    assert [one.folds for one in read_candidates(str(tmp_path))] == [2, 2, 2]
