"""The graph for TPUs in exports, against that of tf.estimator 2.15, operation by operation."""

import json
import pathlib
import sys

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from estimator_core.tpu import serving_graph
from tests.estimator_core.tpu import serving_graph_program as program

EXPECTED = json.loads(pathlib.Path(program.__file__).with_suffix(".json").read_text())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", EXPECTED)
def test_exports_are_those_of_2_15(case):
    assert program.seen_by(est, case) == EXPECTED[case]


@pytest.fixture
def export(tmp_path):
    """Trains a model_fn for no step, and exports it."""

    def run(model_fn, **arguments):
        def with_training(features, labels, mode, params):
            if mode == "train":
                step = tf1.train.get_global_step().assign_add(1)
                model_fn(features, "infer", params)
                return est.EstimatorSpec(mode, loss=tf.constant(0.0), train_op=step)
            return model_fn(features, mode, params)

        def input_fn(params):
            return tf.data.Dataset.from_tensors(({"x": tf.ones([4, 3])}, tf.ones([4])))

        estimator = est.tpu.TPUEstimator(
            with_training,
            tmp_path / "model",
            est.tpu.RunConfig(),
            use_tpu=False,
            train_batch_size=4,
            **arguments,
        ).train(input_fn, steps=1)
        receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 3])})
        return estimator, estimator.export_saved_model(tmp_path / "export", receiver_fn).decode()

    return run


def test_the_graph_for_cpus_answers_beside_the_one_for_tpus(export):
    def model_fn(features, mode, params):
        hidden = tf.keras.layers.Dense(2, kernel_initializer="ones", activation="relu")(features["x"])
        return est.EstimatorSpec(mode, predictions={"sum": hidden})

    _, path = export(model_fn)
    served = tf.saved_model.load(path, tags=["serve"]).signatures["serving_default"]
    assert served(x=tf.constant([[1.0, 2.0, 3.0]]))["sum"].numpy().tolist() == [[6.0, 6.0]]
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(_meta_graph(path))
        call = graph.get_operation_by_name("TPUPartitionedCall")
        # The Dense layer's kernel and bias, and the feature: reads stay outside.
        assert sorted(tensor.dtype.name for tensor in call.inputs) == [
            "float32", "int32", "resource", "resource",
        ]  # fmt: skip


@pytest.mark.parametrize("version", serving_graph.ExportSavedModelApiVersion)
def test_a_version_may_be_a_member_of_the_enum_of_2_15(export, version):
    on_tpu = []

    def model_fn(features, mode, params):
        if mode == "infer":
            on_tpu.append(params["use_tpu"])
        return tpu.TPUEstimatorSpec(mode, predictions=features["x"] * 2.0)

    export(model_fn, export_saved_model_api_version=version)
    # While it trains, in the graph for CPUs, and in the one for TPUs.
    assert on_tpu == [False, False, version.value == 2]


def _meta_graphs(path):
    model = program.saved_model_pb2.SavedModel()
    model.ParseFromString((pathlib.Path(path) / "saved_model.pb").read_bytes())
    return model.meta_graphs


def _meta_graph(path):
    (found,) = (each for each in _meta_graphs(path) if "tpu" in each.meta_info_def.tags)
    return found


def test_what_the_graph_can_not_have_names_the_setting_that_leaves_it_out(export):
    class Other(est.export.ExportOutput):
        def as_signature_def(self, receiver_tensors):
            return est.export.PredictOutput(self.x).as_signature_def(receiver_tensors)

    def model_fn(features, mode, params):
        output = Other()
        output.x = features["x"] * 2.0
        return est.EstimatorSpec(mode, predictions=output.x, export_outputs={"serving_default": output})

    with pytest.raises(TypeError, match=r"Received: export_outputs.* export_to_tpu=False"):
        export(model_fn)


def test_a_feature_that_is_passed_on(export):
    """As programs do with ids; 2.15 refuses it as well."""

    def model_fn(features, mode, params):
        predictions = {"y": features["x"] * 2.0, "id": pass_on(features["x"])}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)

    pass_on = tf.convert_to_tensor  # leaves a tensor as it is

    message = r"predictions\['id'\] .*\(tf\.identity\).* export_to_tpu=False"
    with pytest.raises(ValueError, match=message):
        export(model_fn)

    pass_on = tf.identity
    export(model_fn)


def test_an_error_whose_message_is_no_text_has_a_note(export):
    def model_fn(features, mode, params):
        is_for_tpus = isinstance(tf.compat.v1.get_default_graph(), tf.__internal__.FuncGraph)
        return tpu.TPUEstimatorSpec(mode, predictions=features["y" if is_for_tpus else "x"])

    with pytest.raises(KeyError) as raised:
        export(model_fn)
    assert raised.value.args == ("y",)
    if sys.version_info >= (3, 11):
        assert "export_to_tpu=False" in raised.value.__notes__[0]


def test_a_mode_that_is_for_cpus_alone(export, tmp_path, caplog):
    def model_fn(features, mode, params):
        loss = tf.reduce_mean(features["x"])
        return est.EstimatorSpec(mode, predictions=features["x"] * 1.0, loss=loss)

    estimator, _ = export(model_fn)
    receiver_fn = est.experimental.build_raw_supervised_input_receiver_fn(
        {"x": tf.TensorSpec([None, 3])}, tf.TensorSpec([None], name="y")
    )
    path = estimator.experimental_export_all_saved_models(tmp_path / "both", {"eval": receiver_fn})
    assert "Mode 'eval' is exported only for CPUs" in caplog.text
    assert [list(each.meta_info_def.tags) for each in _meta_graphs(path.decode())] == [["eval"]]


def test_the_scaffold_is_made_for_the_graph_for_tpus(export):
    savers = []

    def model_fn(features, mode, params):
        def scaffold_fn():
            savers.append(tf1.train.Saver(name="own_saver"))
            return tf1.train.Scaffold(saver=savers[-1])

        return est.tpu.TPUEstimatorSpec(mode, predictions=features["x"] * 2.0, scaffold_fn=scaffold_fn)

    _, path = export(model_fn)
    assert len(savers) == 2  # training took none
    assert _meta_graph(path).saver_def.save_tensor_name.startswith("own_saver")


def test_the_tags_are_serve_and_tpu():
    assert serving_graph.TAGS == (tf.saved_model.SERVING, tf1.saved_model.tag_constants.TPU)
