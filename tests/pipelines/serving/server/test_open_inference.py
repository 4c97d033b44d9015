import pytest

import pipelines
from pipelines.serving.files import Reading, predict_files
from tests.pipelines import sum_models

from .conftest import served  # noqa: TID252

URL = "/v2/models/sums"


def tensor(name, data, datatype="FP32", shape=None):
    return {"name": name, "shape": shape or [len(data)], "datatype": datatype, "data": data}


INPUTS = [
    tensor("x", [1.5, 2]),
    tensor("n", [1, None], "INT64"),
    tensor("city", [["Oslo"], ["Rome"]], "BYTES", [2, 1]),
]


def test_the_server_is_ready_and_the_metadata_name_columns_and_predictions(client):
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get(f"{URL}/ready").json() == {"name": "sums", "ready": True}
    assert client.get("/v2").json()["extensions"] == []
    assert client.get(f"{URL}/versions/5").json() == client.get(URL).json()
    assert client.get(URL).json() == {
        "name": "sums",
        "versions": ["5"],
        "platform": "tensorflow_savedmodel",
        "inputs": [
            {"name": "city", "datatype": "BYTES", "shape": [-1]},
            {"name": "n", "datatype": "INT64", "shape": [-1]},
            {"name": "x", "datatype": "FP32", "shape": [-1]},
        ],
        "outputs": [
            {"name": "class", "datatype": "BYTES", "shape": [-1]},
            {"name": "probability", "datatype": "FP32", "shape": [-1]},
            {"name": "probability_no", "datatype": "FP32", "shape": [-1]},
            {"name": "probability_yes", "datatype": "FP32", "shape": [-1]},
        ],
    }


def test_infer_returns_plain_columns(regression):
    body = {"id": "7", "inputs": INPUTS, "parameters": {"binary_data_output": True}}
    assert regression.post(f"{URL}/infer", body).json() == {
        "model_name": "sums",
        "model_version": "5",
        "id": "7",
        "outputs": [{"name": "value", "datatype": "FP32", "shape": [2], "data": [3.5, 2.0]}],
    }


def test_infer_returns_the_outputs_that_are_asked_for(client):
    body = {"inputs": INPUTS, "outputs": [{"name": "class"}]}
    answer = client.post(f"{URL}/versions/5/infer", body).json()
    assert answer["outputs"] == [{"name": "class", "datatype": "BYTES", "shape": [2], "data": ["yes", "yes"]}]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, 'The body needs "inputs", a list of tensors.'),
        ({"inputs": None}, '"inputs" must be a list of tensors. Received: null'),
        ({"inputs": [7]}, "An input must be an object with a name"),
        ({"inputs": [tensor("x", [1], "FLOAT")]}, "needs a datatype: BOOL"),
        ({"inputs": [tensor("x", [1], {})]}, "needs a datatype: BOOL"),
        ({"inputs": [tensor("x", [1, 2], shape=[1, 2])]}, r"must have the shape [rows] or [rows, 1]"),
        ({"inputs": [tensor("x", [1, 2], shape=[True])]}, "must have the shape"),
        ({"inputs": [tensor("x", [1, 2], shape=[3])]}, "has the shape [3], but 2 values"),
        ({"inputs": [tensor("x", ["a"])]}, "row 1, column 'x': 'a' is not a number"),
        ({"inputs": [tensor("x", [1]), tensor("x", [1])]}, "is given twice"),
        ({"inputs": [tensor("xx", [1])]}, "None of the model's columns"),
        ({"inputs": [{**tensor("x", [1]), "data": 7}]}, 'needs its values in "data"'),
        ({"inputs": INPUTS, "outputs": [{"name": "score"}]}, "no output 'score'. There are: class"),
        ({"inputs": INPUTS, "outputs": [{"name": "class"}] * 2}, "'class' is requested twice"),
        ({"inputs": INPUTS, "outputs": 7}, '"outputs" must be a list'),
        ({"inputs": INPUTS, "id": 7}, '"id" must be a string'),
    ],
)
def test_an_error_has_its_message(client, body, message):
    answer = client.post(f"{URL}/infer", body)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert message in answer.json()["error"]


def test_other_paths_are_refused(client):
    assert client.get("/v2/models/other").status_code == 404
    assert client.get(f"{URL}/versions/6").status_code == 404
    assert client.get(f"{URL}/train").status_code == 404
    assert client.post("/v2/health/live", {}).status_code == 405


@pytest.mark.more
def test_the_class_follows_the_decision_threshold_in_every_answer(exported, tmp_path):
    """The sums -1, 1, 2 and 3 have the probabilities 0.27, 0.73, 0.88 and 0.95; the threshold is 0.9."""
    root = sum_models.push(exported("decided"), tmp_path / "root", 5)
    sums, classes = [-1.0, 1.0, 2.0, 3.0], ["no", "no", "no", "yes"]
    model = pipelines.load(root)
    predicted = model.predict({"x": sums})
    assert predicted["class"].tolist() == classes
    assert predicted["probability"] == pytest.approx([0.731, 0.269, 0.119, 0.953], abs=1e-3)
    data = tmp_path / "new.csv"
    data.write_text("x\n-1\n1\n2\n3\n")
    predict_files(model, str(data), tmp_path / "out.csv", Reading(), print)
    assert [line.split(",")[1] for line in (tmp_path / "out.csv").read_text().split()[1:]] == classes
    with served(root) as client:
        body = {"inputs": [tensor("x", sums)], "outputs": [{"name": "class"}]}
        assert client.post(f"{URL}/infer", body).json()["outputs"][0]["data"] == classes
        for signature in ("predict", "serving_rows"):
            body = {"signature_name": signature, "instances": [{"x": x} for x in sums]}
            rows = client.post("/v1/models/sums:predict", body).json()["predictions"]
            assert [row["classes"] for row in rows] == [[name] for name in classes]
            assert [row["class_ids"] for row in rows] == [[0], [0], [0], [1]]
        body = {"examples": [{"x": 2.0}]}  # scores of both classes, without a decision
        ((no, yes),) = client.post("/v1/models/sums:classify", body).json()["results"]
        assert (no[0], yes[0]) == ("no", "yes")
        assert no[1] < yes[1] < sum_models.THRESHOLD
