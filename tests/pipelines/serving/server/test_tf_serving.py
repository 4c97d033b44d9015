import base64

import numpy as np
import pytest
import tensorflow as tf

from pipelines.serving.server.tf_serving import labels_and_scores
from tests.pipelines.serving.server.conftest import served

URL = "/v1/models/sums"
ROW = {"x": 1.5, "n": 1, "city": "Oslo"}  # their sum is 3.5
YES = float(1 / (1 + np.exp(-3.5)))


UNKNOWN = {"instances": [{**{f"c{number}": 1 for number in range(5_001)}, "x": 1}]}  # two are missing


def serialized(x):
    made = tf.train.Example()
    made.features.feature["x"].float_list.value.append(x)
    return {"b64": base64.b64encode(made.SerializeToString()).decode()}


def test_classify_and_predict_return_outputs_with_their_names(client):
    answer = client.post(f"{URL}:classify", {"examples": [ROW, {"x": -3.5}]})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    (first, second) = answer.json()["results"]
    assert [label for label, _ in first] == ["no", "yes"]
    assert first[1][1] == pytest.approx(YES, rel=1e-6)
    assert second[0][1] == pytest.approx(YES, rel=1e-6)
    body = {"instances": [{"x": 3, "city": None, "n": 0.0}, {"city": "Oslo", "label": "no"}]}
    rows = client.post(f"{URL}:predict", body).json()["predictions"]
    assert [list(row) for row in rows] == [["scores", "classes"]] * 2 or [sorted(row) for row in rows] == [
        ["classes", "scores"]
    ] * 2
    assert rows[1]["scores"][1] == pytest.approx(1 / (1 + np.exp(-1)), rel=1e-6)
    assert rows[1]["classes"] == ["no", "yes"]
    body = {"signature_name": "predict", "inputs": {"x": [0.0]}}
    outputs = client.post(f"{URL}:predict", body).json()["outputs"]
    assert outputs["logits"] == [[0.0]]
    assert outputs["all_classes"] == [["no", "yes"]]
    assert outputs["probabilities"] == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("outputs", "labels", "scores"),
    [
        ({"classes": [[b"a", b"b"]]}, [[b"a", b"b"]], [[0, 0]]),  # TensorFlow Serving's score is 0, too
        ({"scores": [[0.25, 0.75]]}, [[b"", b""]], [[0.25, 0.75]]),
        ({"scores": [[0.5]], "classes": [[b"a"]]}, [[b"a"]], [[0.5]]),
    ],
)
def test_a_classifier_may_have_no_scores_or_no_labels(outputs, labels, scores):
    arrays = {
        name: np.array(values, object if name == "classes" else None) for name, values in outputs.items()
    }
    found = labels_and_scores(arrays)
    assert [one.tolist() for one in found] == [labels, scores]


def test_regress_returns_values_and_a_context_is_shared(regression):
    body = {"examples": [{"x": 1}, {"x": [2.5]}], "context": {"city": "Oslo", "n": 3}}
    assert regression.post(f"{URL}:regress", body).json() == {"results": [5.0, 6.5]}


@pytest.mark.parametrize("place", ["", "/versions/5", "/labels/latest"])
def test_a_version_is_addressed_by_number_or_label(regression, place):
    body = {"instances": [ROW]}
    assert regression.post(f"{URL}{place}:predict", body).json() == {"predictions": [[3.5]]}


def test_predict_takes_rows_examples_and_tensors_in_both_forms(regression):
    body = {"signature_name": "serving_rows", "instances": [{"x": [12], "n": 1, "city": [""]}]}
    assert regression.post(f"{URL}:predict", body).json() == {"predictions": [[13.0]]}
    body["instances"][0]["x"] = [None]
    assert regression.post(f"{URL}:predict", body).json() == {"predictions": [[1.0]]}
    columns = {"inputs": {"x": [[1.5], [None]]}}
    assert regression.post(f"{URL}:predict", columns).json() == {"outputs": [[1.5], [0.0]]}
    rows = {"instances": [serialized(1.0), serialized(2.5)]}
    assert regression.post(f"{URL}:predict", rows).json() == {"predictions": [[1.0], [2.5]]}
    named = {"instances": [{"inputs": serialized(1.0)}]}
    assert regression.post(f"{URL}:predict", named).json() == {"predictions": [[1.0]]}
    for given in ([serialized(2.5)], {"inputs": [serialized(2.5)]}):
        assert regression.post(f"{URL}:predict", {"inputs": given}).json() == {"outputs": [[2.5]]}
    body = {"signature_name": "serving_rows", "instances": [ROW, {"x": 2.0, "n": 1, "city": ""}]}
    assert regression.post(f"{URL}:predict", body).json() == {"predictions": [[3.5], [3.0]]}
    columns = {"x": [1.0, None], "n": [1, 2], "city": ["Oslo", "Rome"]}
    body = {"signature_name": "serving_rows", "inputs": columns}
    assert regression.post(f"{URL}:predict", body).json() == {"outputs": [[3.0], [2.0]]}


@pytest.mark.more
def test_a_model_of_raw_tensors_takes_its_inputs(push):
    with served(push("raw", 2)) as client:
        body = {"signature_name": "predict", "instances": [ROW]}
        assert client.post(f"{URL}:predict", body).json() == {"predictions": [[3.5]]}
        del body["instances"][0]["n"]
        answer = client.post(f"{URL}:predict", body)
        assert answer.status_code == 400
        assert "column 'n': there is no value, and the model needs one" in answer.json()["error"]


def test_status_and_metadata_have_the_documented_form(client):
    assert client.get(URL).json() == {
        "model_version_status": [
            {"version": "5", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
        ]
    }
    assert client.get(f"{URL}/versions/5").json() == client.get(URL).json()
    found = client.get(f"{URL}/metadata").json()
    assert found["model_spec"] == {"name": "sums", "signature_name": "", "version": "5"}
    signature = found["metadata"]["signature_def"]["signature_def"]["serving_rows"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    tensor = signature["inputs"]["n"]
    assert tensor["dtype"] == "DT_INT64"
    assert tensor["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (":predict", "{", 400, "The body is not JSON"),
        (":predict", b"\xff", 400, "The body is not JSON"),
        (":predict", "[" * 100_000, 400, "nested too deeply"),
        (":predict", "", 400, "The body is empty. Send a JSON object."),
        (":classify", " \n", 400, "The body is empty"),
        (":predict", [], 400, "The body is not a JSON object. Received: []"),
        (":predict", "null", 400, "The body is not a JSON object. Received: null"),
        (":predict", {"instances": None}, 400, "at least one row. Received: null"),
        (":classify", {}, 400, 'The body needs "examples", a list of objects with the columns'),
        (":classify", {"examples": [True, None]}, 400, "Received: [true, null]"),
        (":predict", {}, 400, 'needs one of "instances" and "inputs"'),
        (":predict", {"instances": []}, 400, "at least one"),
        (":predict", {"instances": [{"x": "1"}]}, 400, "row 1, column 'x': '1' is not a number"),
        (":predict", {"instances": [{"xx": 1}]}, 400, "None of the model's columns"),
        (":predict", UNKNOWN, 400, "too many to check for misspelled names"),
        (":predict", {"instances": [{"x": 1}, 7]}, 400, "The instance 1 is 7. Give an object with the"),
        (":predict", {"instances": [{"x": 1}, serialized(2.0)]}, 400, "The instance 1 is a serialized"),
        (":predict", {"instances": [serialized(2.0), {}]}, 400, "The instance 0 is a serialized"),
        (":predict", {"instances": [{"x": 1}, {"inputs": serialized(2.0)}]}, 400, "row 2 has inputs"),
        (":classify", {"examples": [{"x": 1}, serialized(2.0)]}, 400, "row 2 has b64"),
        (":predict", {"instances": [7]}, 400, "The instance 0 is 7. Give an object with the columns"),
        (":predict", {"instances": [[1]]}, 400, "The instance 0 is [1]."),
        (":predict", {"instances": [{"b64": "!"}]}, 400, "needs a text in base64"),
        (":predict", {"instances": [{"b64": "AAAA"}]}, 400, "The model refuses the input"),
        (":predict", {"signature_name": "no", "instances": [ROW]}, 400, "There are: serving_default"),
        (":predict", {"inputs": {"x": [1], "n": [1, 2]}}, 400, "differ in their number of rows"),
        (":predict", {"inputs": {"x": []}}, 400, "There is no row"),
        (":regress", {"examples": [ROW]}, 400, 'Put "signature_name": "regression" into the body'),
        (":classify", {"examples": ROW}, 400, '"examples" must be a list of objects'),
        (":classify", {"examples": [ROW], "context": {"x": 1}}, 400, "'x' is in the context"),
        ("/versions/6:predict", {"instances": [ROW]}, 404, "Version 6 of 'sums' is not loaded"),
        ("/labels/canary:predict", {"instances": [ROW]}, 404, "no label 'canary'. There are: latest"),
        ("/versions/x:predict", {"instances": [ROW]}, 400, "Malformed request: POST /v1/"),
        (":train", {"instances": [ROW]}, 400, "Malformed request"),
        ("", {}, 405, "is for GET requests"),
    ],
)  # fmt: skip
def test_an_error_has_its_status_and_one_message(client, path, body, status, message):
    answer = client.post(f"{URL}{path}", body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert message in answer.json()["error"]


def test_other_names_and_methods_are_refused(client):
    assert client.get("/v1/models/other").status_code == 404
    assert "There is 'sums'" in client.get("/v1/models/other").json()["error"]
    assert client.get(f"{URL}:predict").status_code == 405
    assert client.get("/elsewhere").json() == {"error": "There is no such page."}


def test_a_method_that_no_signature_has_names_the_one_to_ask(regression):
    answer = regression.post(f"{URL}:classify", {"examples": [ROW]})
    assert answer.status_code == 400
    assert "The model has no signature for 'classify': ask :regress." in answer.json()["error"]


def test_an_old_export_answers_by_each_signature(old_export):
    """Twice the price plus the number of letters is 12; its softmax with -12 rounds to 1."""
    url, row = "/v1/models/old_export", {"price": 4.5, "kind": "bcd"}
    for body in ({"instances": [row]}, {"signature_name": "columns:serving_default", "instances": [row]}):
        assert old_export.post(f"{url}:predict", body).json() == {
            "predictions": [{"value": 12.0, "name": "BCD"}]
        }
    columns = {"inputs": {"price": [4.5, 1], "kind": ["bcd", None]}}
    outputs = old_export.post(f"{url}:predict", columns).json()["outputs"]
    assert outputs == {"value": [12.0, 2.0], "name": ["BCD", ""]}
    number = {"signature_name": "number", "examples": [row]}
    assert old_export.post(f"{url}:regress", number).json() == {"results": [12.0]}
    answer = old_export.post(f"{url}:classify", {"signature_name": "class", "examples": [row]}).json()
    ((cheap, dear),) = answer["results"]
    assert (cheap[0], dear) == ("cheap", ["dear", 1.0])
    missing = old_export.post(f"{url}:predict", {"instances": [{"kind": "bcd"}]})
    assert "column 'price': there is no value, and the model needs one" in missing.json()["error"]


def test_the_only_signature_needs_no_name(matrices):
    body = {"inputs": {"x": [[1, 2, 3]], "words": [["a", "b"]], "times": 2}}
    assert matrices.post(f"{URL}:predict", body).json() == {
        "outputs": {"total": [12.0], "half": [6.0], "text": ["ab"]}
    }
    document = matrices.get("/openapi.json").json()["components"]["schemas"]
    assert document["Tensor"]["properties"]["name"]["enum"] == ["times", "words", "x"]
    wrong = matrices.post(f"{URL}:regress", {"examples": [{"x": 1}]}).json()["error"]
    assert "'sum_up' is for 'predict', not for 'regress'" in wrong
