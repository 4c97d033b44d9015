import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.protobuf import saved_model_pb2

import estimator_core as est
from estimator_core.export import saved_model
from tests.estimator_core.programs import batch_of, counting, example, zeros

_SPEC = {"x": tf.io.FixedLenFeature([], tf.float32)}


_SUPERVISED = est.experimental.build_raw_supervised_input_receiver_fn(
    {"x": tf.TensorSpec([None])}, tf.TensorSpec([None], name="label")
)


def _parsing():
    return est.export.build_parsing_serving_input_receiver_fn(_SPEC)


def _served(path):
    return tf.saved_model.load(path.decode()).signatures["serving_default"]


@pytest.fixture
def trained(make_estimator, input_fn):
    """The weight is 1."""
    return make_estimator(save_checkpoints_steps=1).train(input_fn, steps=1)


def test_the_exported_model_answers_serialized_examples(trained, tmp_path):
    path = trained.export_saved_model(str(tmp_path / "exports"), _parsing())
    assert isinstance(path, bytes)
    loaded = tf.saved_model.load(path.decode())
    assert list(loaded.signatures) == ["serving_default"]
    answer = loaded.signatures["serving_default"](examples=tf.constant([example(x=4.0), example(x=5.0)]))
    np.testing.assert_array_equal(answer["y"], [4, 5])


def test_the_exported_model_answers_raw_tensors(trained, tmp_path):
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([7])})
    serve = _served(trained.export_saved_model(str(tmp_path), receiver_fn))
    np.testing.assert_array_equal(serve(x=tf.constant([4.0]))["y"], [4])
    assert serve.structured_input_signature[1]["x"].shape.as_list() == [None]


def test_a_fixed_batch_size_is_in_the_signature(trained, tmp_path):
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(_SPEC, default_batch_size=3)
    serve = _served(trained.export_saved_model(str(tmp_path), receiver_fn))
    assert serve.structured_input_signature[1]["examples"].shape.as_list() == [3]


def test_the_exported_checkpoint_can_be_chosen(trained, input_fn, tmp_path):
    trained.train(input_fn, steps=2)
    first = os.path.join(trained.model_dir, "model.ckpt-1")
    serve = _served(trained.export_saved_model(str(tmp_path), _parsing(), checkpoint_path=first))
    assert serve(examples=tf.constant([example(x=1.0)]))["y"].numpy() == 1.0


def test_the_eval_graph_gives_loss_metrics_predictions_and_labels(trained, tmp_path):
    def eval_receiver_fn():
        serialized = tf1.placeholder(tf.string, [None])
        features = tf.io.parse_example(serialized, _SPEC)
        return est.export.EvalInputReceiver(features, {"examples": serialized}, features["x"] + 1)

    # The weight is 1: predictions are x, the labels x + 1.
    path = trained.experimental_export_all_saved_models(
        str(tmp_path), {est.ModeKeys.PREDICT: _parsing(), est.ModeKeys.EVAL: eval_receiver_fn}
    ).decode()
    examples = tf.constant([example(x=4.0), example(x=5.0)])
    answer = tf.saved_model.load(path, tags=["eval"]).signatures["eval"](examples)
    assert answer["loss"].numpy() == 1.0
    assert answer["metrics/mae/update_op"].numpy() == 1.0
    np.testing.assert_array_equal(answer["predictions/y"], [4, 5])
    np.testing.assert_array_equal(answer["labels"], [5, 6])
    assert list(tf.saved_model.load(path, tags=["serve"]).signatures) == ["serving_default"]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_predictions_may_be_a_single_tensor(tmp_path, mode):
    def model_fn(features, labels, mode):
        return counting(mode, tf.reduce_mean(features["x"] - labels), predictions=features["x"])

    estimator = est.Estimator(model_fn, tmp_path / "model").train(batch_of({"x": [1.0]}, [0.0]))
    path = estimator.export_saved_model(tmp_path / "export", _SUPERVISED, experimental_mode=mode)
    with tf.Graph().as_default(), tf1.Session() as session:
        signatures = tf1.saved_model.load(session, [mode], path.decode()).signature_def
        assert set(signatures[mode].outputs) >= {"loss", "predictions"}


@pytest.mark.parametrize(
    ("alternatives", "signatures"),
    [
        (["sum"], {"sum:serving_default": ["s"]}),
        (["a"], {}),
        (["a", "a and s", "sparse"], {"a and s:serving_default": ["a", "s"]}),
        (["both"], {"both:serving_default": ["a", "b"]}),
    ],
)
def test_only_alternatives_that_feed_all_are_exported(trained, tmp_path, alternatives, signatures):
    def receiver_fn():
        a = tf1.placeholder(tf.float32, [None])
        b = tf1.placeholder(tf.float32, [None])
        with tf.control_dependencies([tf1.assert_non_negative(a), b.op]):
            total = a + b
        groups = {
            "sum": {"s": total},
            "a": {"a": a},
            "a and s": {"a": a, "s": total},
            "sparse": {"other": tf1.sparse_placeholder(tf.float32)},
            "both": {"a": a, "b": b},
        }
        chosen = {name: groups[name] for name in alternatives}
        return est.export.ServingInputReceiver({"x": total}, {"a": a, "b": b}, chosen)

    path = trained.export_saved_model(tmp_path / "exports", receiver_fn).decode()
    found = tf.saved_model.load(path).signatures
    inputs = {name: sorted(function.structured_input_signature[1]) for name, function in found.items()}
    assert inputs == {"serving_default": ["a", "b"]} | signatures


def test_a_placeholder_that_is_never_fed_is_named(trained, tmp_path):
    def receiver_fn():
        a, b = (tf1.placeholder(tf.float32, [None], name=name) for name in "ab")
        return est.export.ServingInputReceiver({"x": a + b}, {"a": a})

    with pytest.raises(ValueError, match=r"placeholders that are not fed: \['b'\]"):
        trained.export_saved_model(tmp_path / "exports", receiver_fn)


def test_assets_extra_and_text(trained, tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("hello")
    extra = {"docs/note.txt": str(note)}
    path = trained.export_saved_model(str(tmp_path / "exports"), _parsing(), extra, as_text=True)
    folder = pathlib.Path(path.decode())
    assert (folder / "saved_model.pbtxt").exists()
    assert (folder / "assets.extra" / "docs" / "note.txt").read_text() == "hello"


def test_vocabulary_files_travel_with_the_model(tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\nb\n")

    def model_fn(features, labels, mode):
        lines = tf.lookup.TextFileIndex.LINE_NUMBER
        words = tf.lookup.TextFileInitializer(str(vocabulary), tf.string, 0, tf.int64, lines)
        table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=1)
        return counting(mode, tf.constant(0.0), predictions={"id": table.lookup(features["word"])})

    estimator = est.Estimator(model_fn, tmp_path / "model").train(batch_of({"word": ["a"]}, [0]), steps=1)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"word": tf.constant(["a"])})
    path = estimator.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    vocabulary.unlink()
    np.testing.assert_array_equal(_served(path)(word=tf.constant(["b", "z"]))["id"], [1, 2])


def test_an_untrained_estimator_cannot_be_exported(make_estimator, tmp_path):
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        make_estimator().export_saved_model(str(tmp_path / "exports"), _parsing())
    assert not (tmp_path / "exports").exists()


def test_a_failing_export_leaves_nothing_behind(trained, tmp_path):
    def failing():
        raise RuntimeError("no receiver today")

    with pytest.raises(RuntimeError, match="no receiver today"):
        trained.export_saved_model(str(tmp_path / "exports"), failing)
    assert os.listdir(tmp_path / "exports") == []
    with pytest.raises(tf.errors.NotFoundError):
        trained.export_saved_model(
            str(tmp_path / "exports"), _parsing(), assets_extra={"note.txt": str(tmp_path / "absent.txt")}
        )
    assert os.listdir(tmp_path / "exports") == []


def test_two_exports_in_one_second_get_two_directories(tmp_path):
    now = [100.0]

    def directory(wait):
        path = saved_model.timestamped_directory(str(tmp_path), clock=lambda: now[0], wait=wait)
        return os.path.basename(path)

    def a_second_later(secs):
        now[0] += secs

    assert directory(a_second_later) == "100"
    (tmp_path / "100").mkdir()
    (tmp_path / "temp-101").mkdir()  # another export is writing this one
    assert directory(a_second_later) == "102"
    (tmp_path / "102").mkdir()
    with pytest.raises(RuntimeError, match="10 attempts"):
        directory(lambda secs: None)


def test_classification_needs_serialized_examples(graph):
    scores = tf.constant([[0.5, 0.5]])
    classification = est.export.ClassificationOutput(scores)
    outputs = {"classification": classification, "serving_default": est.export.PredictOutput(scores)}
    raw = saved_model.signature_defs(outputs, {"x": tf1.placeholder(tf.float32, [None])})
    assert set(raw) == {"serving_default"}
    serialized = {"examples": tf1.placeholder(tf.string, [None])}
    parsed = saved_model.signature_defs(outputs, serialized)
    assert parsed["classification"].method_name == "tensorflow/serving/classify"
    assert set(parsed["classification"].inputs) == {"inputs"}
    other = saved_model.signature_defs(outputs, {"x": scores}, {"bytes": serialized})
    assert set(other) == {"serving_default", "bytes:classification", "bytes:serving_default"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: est.export.ClassificationOutput(), "both are None"),
        (lambda: est.export.ClassificationOutput(scores=tf.constant([1])), "scores must be a float32"),
        (lambda: est.export.ClassificationOutput(classes=tf.constant([1])), "must be a string"),
        (lambda: est.export.RegressionOutput(tf.constant(["a"])), "must be a float32"),
        (lambda: est.export.PredictOutput({1: tf.constant(1)}), "must be a string"),
        (lambda: est.export.PredictOutput({"a": 1}), "must be a Tensor"),
        (lambda: est.export.ServingInputReceiver({}, {"a": tf.Variable(1)}), "'a' must be a Tensor"),
    ],
)
def test_wrong_outputs_and_receivers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_bare_tensor_receiver_gives_model_fn_the_tensor(tmp_path):
    def model_fn(features, labels, mode):
        return counting(mode, tf.constant(0.0), predictions={"double": features * 2})

    def receiver_fn():
        x = tf1.placeholder(tf.float32, [None])
        return est.export.TensorServingInputReceiver(x, x)

    estimator = est.Estimator(model_fn, tmp_path / "model").train(batch_of([0.0], [0]), steps=1)
    serve = _served(estimator.export_saved_model(str(tmp_path / "exports"), receiver_fn))
    np.testing.assert_array_equal(serve(input=tf.constant([3.0]))["double"], [6])


def test_a_model_is_exported_with_the_graphs_of_all_modes(trained, tmp_path):
    path = trained.experimental_export_all_saved_models(
        str(tmp_path), {"train": _SUPERVISED, "eval": _SUPERVISED, "infer": _parsing()}
    ).decode()
    # Three steps by hand on one example, x = 1 and label 2: the gradient is 2 (w - 2) = -2, -1, -0.5
    # and the learning rate 0.25, so w goes from 1 to 1.5, 1.75, 1.875.
    with tf.Graph().as_default(), tf1.Session() as session:
        meta_graph = tf1.saved_model.load(session, ["train"], path)
        assert set(meta_graph.signature_def) == {"train"}
        signature = meta_graph.signature_def["train"]
        assert signature.method_name == "tensorflow/supervised/training"
        feeds = {info.name: [1.0 if key == "x" else 2.0] for key, info in signature.inputs.items()}
        (train_op,) = tf1.get_collection("saved_model_train_op")
        losses = [session.run([signature.outputs["loss"].name, train_op], feeds)[0] for _ in range(3)]
        assert session.run(tf1.global_variables("weight")[0]) == 1.875
    assert losses == [1.0, 0.25, 0.0625]
    for tags, names in ((["eval"], {"eval"}), (["serve"], {"serving_default"})):
        with tf.Graph().as_default(), tf1.Session() as session:
            meta_graph = tf1.saved_model.load(session, tags, path)
            assert set(meta_graph.signature_def) == names


def test_a_checkpoint_of_another_model_leaves_nothing_behind(trained, tmp_path):
    def larger_model_fn(features, labels, mode):
        weight, other = zeros("weight"), zeros("other")
        return est.EstimatorSpec(mode, predictions={"y": (weight + other) * features["x"]})

    estimator = est.Estimator(larger_model_fn, trained.model_dir)
    with pytest.raises(ValueError, match=r"Couldn't load checkpoint .*-1 into the 'infer' graph.*other"):
        estimator.export_saved_model(str(tmp_path / "exports"), _parsing())
    assert os.listdir(tmp_path / "exports") == []


def test_a_model_without_a_default_signature_is_told_so(caplog, graph):
    x = tf1.placeholder(tf.float32, [None])
    outputs = {"mine": est.export.PredictOutput(x)}
    assert set(saved_model.signature_defs(outputs, {"x": x})) == {"mine"}
    assert "no default signature" in caplog.text
    caplog.clear()
    for name in ("serving_default", "eval", "train"):
        saved_model.signature_defs({name: outputs["mine"]}, {"x": x})
    assert "no default signature" not in caplog.text


class Refusing(est.export.ExportOutput):
    def as_signature_def(self, receiver_tensors):
        raise ValueError("not today")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda x: {"serving_default": est.export.RegressionOutput(x)},
            r"No signature can be exported.*single tensor input",
        ),
        (lambda x: {"serving_default": est.export.PredictOutput(x), "other": Refusing()}, "not today"),
    ],
    ids=["nothing that can be served", "refused by an output of one's own"],
)
def test_outputs_without_a_signature_are_an_error(make, message, graph):
    x = tf1.placeholder(tf.float32, [None])
    with pytest.raises(ValueError, match=message):
        saved_model.signature_defs(make(x), {"x": x})


def test_a_writer_takes_graphs_of_modes_and_publishes_them(tmp_path):
    """The graph of the first mode brings the variables; the graph is binary by default."""
    checkpoint = str(tmp_path / "model.ckpt")
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(tf1.get_variable("weight", initializer=3.0).initializer)
        tf1.train.Saver().save(session, checkpoint, write_meta_graph=False)
    with saved_model.SavedModelWriter(str(tmp_path / "exports")) as writer:
        for mode, name in (("infer", "serving_default"), ("eval", "eval")):
            with tf.Graph().as_default():
                x = tf1.placeholder(tf.float32, [None])
                y = tf1.get_variable("weight", []) * x
                spec = est.EstimatorSpec(mode, predictions={"y": y}, loss=tf.constant(0.0))
                outputs = {name: est.export.PredictOutput({"y": y})}
                writer.add(mode, spec, outputs, {"x": x}, None, checkpoint)
        assert not os.path.exists(writer.path)
    assert os.listdir(tmp_path / "exports") == [os.path.basename(writer.path)]
    file = pathlib.Path(writer.path) / "saved_model.pb"
    graphs = saved_model_pb2.SavedModel.FromString(file.read_bytes()).meta_graphs
    assert len(graphs) == 2
    for graph in graphs:
        # Attributes at their default are left out: an older server need not know of them.
        assert graph.meta_info_def.stripped_default_attrs
        (made,) = (node for node in graph.graph_def.node if node.op == "VarHandleOp")
        assert made.attr["shared_name"].s == b"weight"
        assert "container" not in made.attr
    for tag, name in (("serve", "serving_default"), ("eval", "eval")):
        serve = tf.saved_model.load(writer.path, tags=[tag]).signatures[name]
        np.testing.assert_array_equal(serve(x=tf.constant([2.0]))["y"], [6])


def test_a_directory_that_models_can_not_be_loaded_from_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"export_dir_base must not contain \["):
        saved_model.SavedModelWriter(str(tmp_path / "models[1]"))
