"""Our components among stock ones, as TFX's own runner executes them."""

import csv
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2
from tfx import v1 as tfx
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner

import components as tfx_components
from components import EvalConfig, MetricConfig, MetricsSpec, ModelSpec, SlicingSpec, load_verdict
from tests.components.conftest import example

CASH, CARD = "Cash", "Credit Card"


def write_csv(path, rows=400):
    """Writes trips: card payers tip 30% nine times out of ten, cash payers never do."""
    random = np.random.default_rng(3)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["fare", "payment_type", "tips", "trip_start_hour"])
        for i in range(rows):
            fare = round(float(random.uniform(4, 40)), 2)
            payment = (CARD, CASH)[i % 2]
            tips = 0.3 * fare if payment == CARD and random.uniform() < 0.9 else 0.0
            hour = "" if i % 9 == 0 else i % 4
            writer.writerow([fare, payment, round(tips, 2), hour])


def make_pipeline(root, data, model_spec, trainer_function, stock=()):
    """Returns a pipeline of our components, but for those in `stock`, which are TFX's."""

    def pick(name):
        return getattr(tfx.components if name in stock else tfx_components, name)

    examples = pick("CsvExampleGen")(input_base=str(data))
    statistics = pick("StatisticsGen")(examples=examples.outputs["examples"])
    schema = tfx_components.SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=False)
    validator = pick("ExampleValidator")(statistics.outputs["statistics"], schema.outputs["schema"])
    transform = pick("Transform")(
        examples=examples.outputs["examples"],
        schema=schema.outputs["schema"],
        preprocessing_fn="classic_module.preprocessing_fn",
        disable_statistics=True,
    )
    trainer = pick("Trainer")(
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema.outputs["schema"],
        **trainer_function,
        train_args=tfx_components.TrainArgs(num_steps=600),
        eval_args=tfx_components.EvalArgs(num_steps=4),
    )
    resolver = tfx_components.Resolver(
        strategy_class=tfx_components.LatestBlessedModelStrategy,
        model=tfx_components.Channel(type=tfx_components.Model),
        model_blessing=tfx_components.Channel(type=tfx_components.ModelBlessing),
    ).with_id("latest_blessed_model")
    threshold = tfx_components.MetricThreshold(
        value_threshold=tfx_components.GenericValueThreshold(lower_bound={"value": 0.8}),
        change_threshold=tfx_components.GenericChangeThreshold(
            direction=tfx_components.MetricDirection.HIGHER_IS_BETTER, absolute={"value": -0.1}
        ),
    )
    overall = tfx_components.PerSliceMetricThreshold(slicing_specs=[SlicingSpec()], threshold=threshold)
    metrics = [
        MetricConfig(class_name="AUC", per_slice_thresholds=[overall]),
        MetricConfig(class_name="ExampleCount"),
    ]
    evaluator = pick("Evaluator")(
        examples=examples.outputs["examples"],
        model=trainer.outputs["model"],
        baseline_model=resolver.outputs["model"],
        schema=schema.outputs["schema"],
        eval_config=EvalConfig(
            model_specs=[model_spec],
            slicing_specs=[SlicingSpec(), SlicingSpec(feature_keys=["trip_start_hour"])],
            metrics_specs=[MetricsSpec(metrics=metrics)],
        ),
    )
    steps = [examples, statistics, schema, validator, transform, trainer, resolver, evaluator]
    blessings = {"model_blessing": evaluator.outputs["blessing"]}
    if "InfraValidator" not in stock:  # TFX's needs Docker
        infra_validator = tfx_components.InfraValidator(
            model=trainer.outputs["model"],
            serving_spec=tfx.proto.ServingSpec(
                tensorflow_serving=tfx.proto.TensorFlowServing(tags=["latest"]),
                local_docker=tfx.proto.LocalDockerConfig(),
            ),
        )
        steps.append(infra_validator)
        blessings["infra_blessing"] = infra_validator.outputs["blessing"]
    pusher = pick("Pusher")(
        model=trainer.outputs["model"],
        push_destination=tfx_components.PushDestination(
            filesystem=tfx_components.PushDestination.Filesystem(base_directory=str(root / "serving"))
        ),
        **blessings,
    )
    steps.append(pusher)
    if not stock:
        inferrer = tfx_components.BulkInferrer(
            examples=examples.outputs["examples"],
            model=trainer.outputs["model"],
            model_blessing=evaluator.outputs["blessing"],
        )
        steps.append(inferrer)
    return tfx_components.Pipeline(
        "taxi",
        str(root),
        components=steps,
        enable_cache=True,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(str(root / "metadata.db")),
        beam_pipeline_args=[
            "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner",
            "--beam_plugins=components.tfx.compat",
        ],
    )


pytestmark = pytest.mark.slow  # a whole pipeline


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A pipeline root after one run."""
    root, data = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("data")
    write_csv(data / "taxi.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        pipeline = make_pipeline(
            root, data, ModelSpec(label_key="tips_xf"), {"trainer_fn": "classic_module.trainer_fn"}
        )
        LocalDagRunner().run(pipeline)
        yield root


def newest(directory):
    return max(directory.iterdir(), key=lambda path: int(path.name))


def test_the_model_that_is_served_answers_raw_examples(root):
    model = tf.saved_model.load(str(newest(root / "serving")))
    raw = tf.constant([*map(example, ({"fare": 10.0, "payment_type": CARD}, {"payment_type": CASH}))])
    predictions = model.signatures["predict"](examples=raw)["logistic"].numpy().ravel()
    assert predictions[0] > 0.5 > predictions[1]
    scores = model.signatures["serving_default"](inputs=raw)["scores"].numpy()
    assert scores[:, 1] == pytest.approx(predictions)


def test_stock_bulk_inferrer_predicts_all_examples_as_the_served_model_does(root):
    files = newest(root / "BulkInferrer" / "inference_result").glob("*.gz")
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record)
        for record in tf.data.TFRecordDataset([*map(str, files)], "GZIP").as_numpy_iterator()
    ]
    assert len(logs) == 400
    model = tf.saved_model.load(str(newest(root / "serving")))
    for log in (item.classify_log for item in logs[:20]):
        (asked,) = log.request.input.example_list.examples
        given = {one.label: one.score for one in log.response.result.classifications[0].classes}
        raw = tf.constant([asked.SerializeToString()])
        scores = model.signatures["serving_default"](inputs=raw)["scores"].numpy()[0]
        assert [given["0"], given["1"]] == pytest.approx(scores)


def test_the_evaluation_knows_the_derived_label(root):
    verdict = load_verdict(str(newest(root / "Evaluator" / "evaluation")))
    assert verdict.blessed
    # Payment tells all but the tenth of the card payers that do not tip:
    # AUC = 1 - (1/11) / 2 = 0.95 for 45% positives, give or take the sample.
    assert verdict.metrics["auc"] == pytest.approx(0.95, abs=0.05)
    assert sorted(verdict.slices) == [f"trip_start_hour:{hour}" for hour in range(4)]


def test_training_leaves_nothing_unfinished(root):
    model_run = newest(root / "Trainer" / "model_run")
    assert tf.train.latest_checkpoint(str(model_run / "Format-Serving")).endswith("model.ckpt-600")
    assert not (model_run.parent / "unfinished").exists()


IN_ORDER = ["CsvExampleGen", "StatisticsGen", "ExampleValidator", "Transform"]
IN_ORDER += ["Trainer", "Evaluator", "InfraValidator", "Pusher"]


@pytest.mark.parametrize("stock", [IN_ORDER[1::2], IN_ORDER[::2]], ids=",".join)
def test_each_of_ours_runs_between_stock_ones(stock, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    write_csv(tmp_path / "data" / "taxi.csv")
    monkeypatch.syspath_prepend(Path(__file__).parent)
    preprocessing = {"preprocessing_function_names": ["transform_features"]}
    model_spec = ModelSpec(signature_name="serving_default", label_key="tips_xf", **preprocessing)
    root, run_fn = tmp_path / "root", {"run_fn": "classic_module.run_fn"}
    root.mkdir()
    LocalDagRunner().run(make_pipeline(root, tmp_path / "data", model_spec, run_fn, stock))
    assert (newest(root / "Evaluator" / "blessing") / "BLESSED").exists()
    (version,) = (root / "serving").iterdir()
    served = tf.saved_model.load(str(version)).signatures["serving_default"]
    raw = tf.constant([example({"payment_type": CARD}), example({"payment_type": CASH})])
    assert served(examples=raw)["outputs"].numpy().ravel() == pytest.approx([0.9, 0.1])
