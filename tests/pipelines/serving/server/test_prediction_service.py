"""The service is asked by TensorFlow Serving's own stubs."""

import socket
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    inference_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from pipelines.serving.server.batching import BatchLimits
from pipelines.serving.server.connections import ConnectionLimits
from pipelines.serving.server.server_settings import ServerSettings
from tests.pipelines import sum_models
from tests.pipelines.serving.server.conftest import served

Code = grpc.StatusCode


class Asker:
    """A stub and the address that it asks."""

    def __init__(self, port):
        self.address = f"127.0.0.1:{port}"
        self.channel = grpc.insecure_channel(self.address)
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)


def start(root, **settings):
    """Returns the context of a server with gRPC, and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = ServerSettings(poll_secs=0.05, grpc_address=f"127.0.0.1:{port}", **settings)
    return served(root, given), port


def asker_of(name, version, folder, exported, **settings):
    context, port = start(sum_models.push(exported(name), folder, version), **settings)
    with context as client:
        asker = Asker(port)
        asker.client = client
        yield asker
        asker.channel.close()


@pytest.fixture(scope="module")
def classifier(exported, tmp_path_factory):
    yield from asker_of("classifier", 5, tmp_path_factory.mktemp("grpc"), exported)


@pytest.fixture(scope="module")
def regressor(exported, tmp_path_factory):
    yield from asker_of("regressor", 7, tmp_path_factory.mktemp("grpc"), exported, token="secret")


TOKEN = [("authorization", "Bearer secret")]


def example(**columns):
    made = tf.train.Example()
    for name, value in columns.items():
        feature = made.features.feature[name]
        kinds = {float: feature.float_list, int: feature.int64_list, bytes: feature.bytes_list}
        kinds[type(value)].value.append(value)
    return made


def request_of(kind, *examples, signature="", version=None):
    request = kind()
    request.model_spec.name = "sums"
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    request.input.example_list.examples.extend(examples)
    return request


def predict_request(signature, **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "sums"
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(value)
    return request


def error_of(call, request, **settings):
    with pytest.raises(grpc.RpcError) as raised:
        call(request, **settings)
    return raised.value.code(), raised.value.details()


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def test_classify_returns_labels_and_scores(classifier):
    request = request_of(
        classification_pb2.ClassificationRequest, example(x=1.5, city=b"Oslo"), example(n=-1)
    )
    answer = classifier.stub.Classify(request)
    found = [{one.label: one.score for one in row.classes} for row in answer.result.classifications]
    # x, n and 1 for Oslo: 2.5 and -1.
    assert found[0] == pytest.approx({"no": 1 - sigmoid(2.5), "yes": sigmoid(2.5)}, abs=1e-6)
    assert found[1] == pytest.approx({"no": 1 - sigmoid(-1), "yes": sigmoid(-1)}, abs=1e-6)
    assert answer.model_spec.version.value == 5
    assert answer.model_spec.signature_name == "serving_default"


def test_a_context_belongs_to_each_example(classifier):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name = "sums"
    given = request.input.example_list_with_context
    given.examples.extend([example(x=1.0), example(x=2.0)])
    given.context.CopyFrom(example(n=3, x=7.0))  # an example's own value wins
    answer = classifier.stub.Classify(request)
    scores = [row.classes[1].score for row in answer.result.classifications]
    assert scores == pytest.approx([sigmoid(4), sigmoid(5)], abs=1e-6)
    given.context.CopyFrom(example(city=b"x" * 1_000_000))
    given.examples.extend([example(x=1.0)] * 20)
    code, text = error_of(classifier.stub.Classify, request)
    assert (code, text) == (Code.RESOURCE_EXHAUSTED, "The context is too large for so many examples.")


def test_regress_returns_values(regressor):
    request = request_of(regression_pb2.RegressionRequest, example(x=1.5, n=2), example(), version=7)
    answer = regressor.stub.Regress(request, metadata=TOKEN)
    assert [one.value for one in answer.result.regressions] == [3.5, 0.0]


def test_predict_takes_examples_and_tensors(classifier):
    examples = [example(x=2.0).SerializeToString(), example(n=-2).SerializeToString()]
    request = predict_request("predict", examples=tf.make_tensor_proto(examples))
    request.output_filter.append("logits")
    answer = classifier.stub.Predict(request)
    assert list(answer.outputs) == ["logits"]
    assert tf.make_ndarray(answer.outputs["logits"]).tolist() == [[2.0], [-2.0]]
    columns = {
        "x": tf.make_tensor_proto([0.5], tf.float32),
        "n": tf.make_tensor_proto([1], tf.int64),
        "city": tf.make_tensor_proto([b"Oslo"]),
    }
    answer = classifier.stub.Predict(predict_request("serving_rows", **columns))
    assert tf.make_ndarray(answer.outputs["logits"]).tolist() == [[2.5]]
    assert tf.make_ndarray(answer.outputs["classes"]).tolist() == [[b"yes"]]


def test_answers_are_those_of_rest(classifier):
    rest = classifier.client.post("/v1/models/sums:classify", {"examples": [{"x": 0.3, "n": 1}]})
    answer = classifier.stub.Classify(
        request_of(classification_pb2.ClassificationRequest, example(x=0.3, n=1))
    )
    (row,) = answer.result.classifications
    ((_, no), (_, yes)) = rest.json()["results"][0]
    assert [one.score for one in row.classes] == pytest.approx([no, yes], abs=1e-7)


def test_metadata_are_the_signatures(classifier):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "sums"
    answer = classifier.stub.GetModelMetadata(request)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["serving_default"].method_name == ("tensorflow/serving/classify")
    assert "serving_rows" in signatures.signature_def
    request.metadata_field[:] = ["weights"]
    code, text = error_of(classifier.stub.GetModelMetadata, request)
    assert (code, "Received: weights" in text) == (Code.INVALID_ARGUMENT, True)


def test_errors_have_the_codes_of_tensorflow_serving(classifier):
    stub, kind = classifier.stub, classification_pb2.ClassificationRequest
    request = request_of(kind, example(x=1.0))
    request.model_spec.name = "other"
    assert error_of(stub.Classify, request)[0] == Code.NOT_FOUND
    request = request_of(kind, example(x=1.0), version=6)
    assert error_of(stub.Classify, request)[0] == Code.NOT_FOUND
    request = request_of(kind, example(x=1.0), signature="absent")
    code, text = error_of(stub.Classify, request)
    assert code == Code.INVALID_ARGUMENT
    assert text.startswith("There is no signature 'absent'. There are: serving_default")
    code, text = error_of(stub.Classify, request_of(kind, example(x=1.0), signature="predict"))
    assert (code, text) == (Code.INVALID_ARGUMENT, "The signature 'predict' is not for 'classify'.")
    code, text = error_of(stub.Classify, request_of(kind))
    assert (code, text) == (Code.INVALID_ARGUMENT, "There is no example. Give one or more.")
    code, text = error_of(stub.Classify, request_of(kind, example(x=b"text")))
    assert (code, "The model refuses the input" in text) == (Code.INVALID_ARGUMENT, True)
    code, text = error_of(stub.Predict, predict_request("predict"))
    assert text == "The inputs of 'predict' are examples. Received: none"
    number = predict_request("predict", examples=tf.make_tensor_proto([1.0]))
    code, text = error_of(stub.Predict, number)
    assert code == Code.INVALID_ARGUMENT
    assert text.endswith("takes string of shape ['any']. Received: float32 of shape [1]")
    request = predict_request("predict", examples=tf.make_tensor_proto([b""]))
    request.output_filter.append("absent")
    assert error_of(stub.Predict, request)[1].startswith("There is no output 'absent'.")


@pytest.mark.parametrize("size", [20_000_000, 1 << 40])
def test_a_small_message_makes_no_large_tensor(classifier, size, monkeypatch):
    made = []
    monkeypatch.setattr(tf, "make_ndarray", made.append)
    large = tf.make_tensor_proto([1.0], tf.float32)
    large.tensor_shape.dim[0].size = size
    one = {"n": tf.make_tensor_proto([1], tf.int64), "city": tf.make_tensor_proto([b""])}
    request = predict_request("serving_rows", x=large, **one)
    code, text = error_of(classifier.stub.Predict, request)
    assert code == Code.RESOURCE_EXHAUSTED
    assert text == (f"The input 'x' of shape [{size}] has {4 * size} bytes; {16 << 20} are allowed.")
    assert large not in made


def test_a_text_that_stands_for_many_is_counted_as_often(classifier, monkeypatch):
    made = []
    monkeypatch.setattr(tf, "make_ndarray", made.append)
    large = tf.make_tensor_proto([example(city=b"x" * 8_000).SerializeToString()])
    large.tensor_shape.dim[0].size = 10_000
    code, text = error_of(classifier.stub.Predict, predict_request("predict", examples=large))
    assert code == Code.RESOURCE_EXHAUSTED
    # 8 bytes for each of the references, and the example: the text with 21 bytes of keys and lengths.
    assert text == (
        f"The input 'examples' of shape [10000] has {10_000 * 8_029} bytes; {16 << 20} are allowed."
    )
    assert made == []


def test_all_inputs_together_are_counted(classifier):
    columns = {
        "x": tf.make_tensor_proto([1.0], tf.float32),
        "n": tf.make_tensor_proto([1], tf.int64),
        "city": tf.make_tensor_proto([b""]),
    }
    for proto in columns.values():
        proto.tensor_shape.dim[0].size = 1_000_000
    code, text = error_of(classifier.stub.Predict, predict_request("serving_rows", **columns))
    # 4, 8 and 8 bytes a row: each input is within the limit.
    assert (code, text) == (
        Code.RESOURCE_EXHAUSTED,
        f"The inputs have 20000000 bytes; {16 << 20} are allowed.",
    )


@pytest.mark.more
def test_a_call_has_a_limited_number_of_rows(push):
    batches = BatchLimits(max_request_rows=3, timeout_secs=30.0)
    context, port = start(push("regressor", 7), batches=batches)
    with context:
        asker = Asker(port)
        examples = tf.make_tensor_proto([example(x=1.0).SerializeToString()] * 4)
        regress = request_of(regression_pb2.RegressionRequest, *[example(x=1.0)] * 4)
        calls = [
            (asker.stub.Predict, predict_request("predict", examples=examples)),
            (asker.stub.Regress, regress),
        ]
        for call, request in calls:
            code, text = error_of(call, request)
            assert code == Code.RESOURCE_EXHAUSTED
            assert text == "The request has 4 rows; 3 are allowed. Split it into several."
        del regress.input.example_list.examples[3:]
        assert len(asker.stub.Regress(regress).result.regressions) == 3
        asker.channel.close()


@pytest.mark.more
def test_a_call_has_the_limits_of_connections(push):
    limits = ConnectionLimits(max_connections=1, max_header_bytes=2_000, header_secs=0.2)
    context, port = start(push("regressor", 7), connections=limits)
    with context:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as silent:
            while silent.recv(1_000):  # settings of HTTP/2, and then the end
                pass
        asker, request = Asker(port), request_of(regression_pb2.RegressionRequest, example())
        asker.stub.Regress(request, wait_for_ready=True)
        large = [("x", "a" * 3_000)]
        code, _ = error_of(asker.stub.Regress, request, metadata=large)
        assert code == Code.RESOURCE_EXHAUSTED
        own = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(asker.address, options=own) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            assert error_of(stub.Regress, request)[0] == Code.UNAVAILABLE
        asker.channel.close()


@pytest.mark.more
def test_a_message_that_does_not_arrive_is_given_up(push):
    """The client begins the call, and sends no message until it has the server's answer."""
    context, port = start(push("regressor", 7), batches=BatchLimits(timeout_secs=0.2))
    with context as client:
        asker = Asker(port)
        method = "/tensorflow.serving.PredictionService/Regress"
        answered = threading.Event()

        def messages():
            answered.wait(60)
            yield from ()

        call = asker.channel.stream_unary(method).future(messages())
        assert call.exception(60).code() == Code.DEADLINE_EXCEEDED
        answered.set()
        asker.channel.close()
        assert 'kind="grpc_other",status="408"} 1' in client.get("/metrics").text


def test_a_call_without_the_token_is_refused_before_its_message_arrives(regressor):
    answered = threading.Event()

    def messages():
        answered.wait(60)
        yield from ()

    method = "/tensorflow.serving.PredictionService/Regress"
    call = regressor.channel.stream_unary(method).future(messages())
    assert call.exception(60).code() == Code.UNAUTHENTICATED
    answered.set()


@pytest.mark.parametrize(
    ("dtype", "sizes", "received"),
    [
        (20, [1], "resource of shape [1]"),
        (999, [1], "type 999 of shape [1]"),
        (7, [-1], "string of shape [-1]"),
        (7, [1, 1], "string of shape [1, 1]"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(classifier, dtype, sizes, received):
    proto = tf.make_tensor_proto([b"x"])
    proto.dtype = dtype
    proto.tensor_shape.ClearField("dim")
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    code, text = error_of(classifier.stub.Predict, predict_request("predict", examples=proto))
    assert (code, text.partition("Received: ")[2]) == (Code.INVALID_ARGUMENT, received)


def test_a_large_request_is_answered(classifier):
    examples = [example(x=1.0, city=b"Bergen" * 100)] * 200
    request = request_of(classification_pb2.ClassificationRequest, *examples)
    assert request.ByteSize() > 100_000
    rows = classifier.stub.Classify(request).result.classifications
    assert [row.classes[1].score for row in rows] == pytest.approx([sigmoid(1)] * 200, abs=1e-6)


def test_a_call_needs_the_token_also_for_multi_inference_which_is_not_offered(regressor):
    request = request_of(regression_pb2.RegressionRequest, example(x=1.0))
    assert error_of(regressor.stub.Regress, request)[0] == Code.UNAUTHENTICATED
    wrong = [("authorization", "Bearer wrong")]
    code, _ = error_of(regressor.stub.Regress, request, metadata=wrong)
    assert code == Code.UNAUTHENTICATED
    text = regressor.client.get("/metrics", headers={"Authorization": "Bearer secret"}).text
    assert 'requests_total{kind="grpc_other",status="401"}' in text
    request = inference_pb2.MultiInferenceRequest()
    assert error_of(regressor.stub.MultiInference, request)[0] == Code.UNAUTHENTICATED
    code, text = error_of(regressor.stub.MultiInference, request, metadata=TOKEN)
    assert code == Code.UNIMPLEMENTED
    assert text == "There is no MultiInference. There are Classify and Regress."


@pytest.mark.more
def test_calls_are_counted(push):
    context, port = start(push("regressor", 7), max_body_bytes=10_000)
    with context as client:
        asker = Asker(port)
        request = request_of(regression_pb2.RegressionRequest, example(x=1.0))
        asker.stub.Regress(request)
        assert error_of(asker.stub.Regress, request_of(type(request)))[0] == Code.INVALID_ARGUMENT
        large = request_of(type(request), example(city=b"x" * 20_000))
        assert error_of(asker.stub.Regress, large)[0] == Code.RESOURCE_EXHAUSTED
        asker.channel.close()
        text = client.get("/metrics").text
    for status in (200, 400):
        count = f'requests_total{{kind="grpc_regress",status="{status}"}} 1.0'
        assert count in text


@pytest.mark.more
def test_a_push_is_served(push):
    context, port = start(push("regressor", 7))
    with context as client:
        asker = Asker(port)
        push("negated", 8)
        while client.versions.versions() != [8]:
            pass
        request = request_of(classification_pb2.ClassificationRequest, example(x=1.0))
        assert asker.stub.Classify(request).model_spec.version.value == 8
        asker.channel.close()
