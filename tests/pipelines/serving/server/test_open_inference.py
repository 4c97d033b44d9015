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
        ({"inputs": [tensor("x", [1], "FLOAT")]}, "needs a datatype: BF16, BOOL"),
        ({"inputs": [tensor("x", [1], {})]}, "needs a datatype: BF16, BOOL"),
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


@pytest.mark.parametrize(
    "body",
    [
        [
            tensor("x", [1, 2, 3, 4, 5, 6], shape=[2, 3]),
            tensor("words", ["a", "b", "c", "d"], "BYTES", [2, 2]),
        ],
        [
            tensor("x", [[1, 2, 3], [4, 5, 6]], shape=[2, 3]),
            tensor("words", [["a", "b"], ["c", {"b64": "ZA=="}]], "BYTES"),
        ],
    ],
    ids=["flat", "nested"],
)
def test_a_model_that_takes_no_rows_takes_and_returns_its_tensors(matrices, body):
    assert matrices.get(URL).json() == {
        "name": "sums",
        "versions": ["1"],
        "platform": "tensorflow_savedmodel",
        "inputs": [
            {"name": "times", "datatype": "INT64", "shape": []},
            {"name": "words", "datatype": "BYTES", "shape": [-1, -1]},
            {"name": "x", "datatype": "FP32", "shape": [-1, 3]},
        ],
        "outputs": [
            {"name": "half", "datatype": "BF16", "shape": [-1]},
            {"name": "text", "datatype": "BYTES", "shape": [-1]},
            {"name": "total", "datatype": "FP32", "shape": [-1]},
        ],
    }  # fmt: skip
    times = {"name": "times", "shape": [], "datatype": "INT64", "data": [2]}
    outputs = matrices.post(f"{URL}/infer", {"inputs": [*body, times]}).json()["outputs"]
    assert sorted(outputs, key=lambda output: output["name"]) == [
        {"name": "half", "datatype": "BF16", "shape": [2], "data": [6.0, 15.0]},
        {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["ab", "cd"]},
        {"name": "total", "datatype": "FP32", "shape": [2], "data": [12.0, 30.0]},
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "The model takes the inputs times, words, x. Received: words, times."),
        ({"x": tensor("x", [1, 2], shape=[2, 3])}, "The input 'x' has the shape [2, 3], but 2 values."),
        ({"x": tensor("x", [], shape=[10**12, 0])}, "has the shape [1000000000000, 0], but 0 values"),
        ({"x": tensor("x", [1], shape="1")}, 'has the shape "1", but 1 value'),
        ({"x": tensor("x", [1, 2], shape=[1, 2])}, "takes float32 of shape ['any', 3]"),
        ({"x": tensor("x", ["a", "b", "c"], shape=[1, 3])}, "takes float32 of shape"),
    ],
)
def test_other_tensors_are_refused(matrices, changes, message):
    tensors = {
        "x": tensor("x", [1, 2, 3], shape=[1, 3]),
        "words": tensor("words", ["a"], "BYTES", [1, 1]),
        "times": {"name": "times", "shape": [], "datatype": "INT64", "data": [2]},
    }
    inputs = [given for given in {**tensors, **changes}.values() if given]
    answer = matrices.post(f"{URL}/infer", {"inputs": inputs})
    assert answer.status_code == 400
    assert message in answer.json()["error"]


def test_the_models_are_listed(client, old_export):
    for server, name, version in ((client, "sums", "5"), (old_export, "old_export", "7")):
        assert server.get("/v1/models").json() == server.get("/v2/models").json() == {"models": [name]}
        index = server.post("/v2/repository/index", "").json()
        assert index == [{"name": name, "version": version, "state": "READY", "reason": ""}]
    assert client.post("/v2/models", {}).status_code == client.get("/v2/repository/index").status_code == 405


def test_the_metadata_of_an_old_export_have_its_outputs_though_it_needs_a_value(old_export):
    metadata = old_export.get("/v2/models/old_export").json()
    assert [(column["name"], column["datatype"]) for column in metadata["inputs"]] == [
        ("kind", "BYTES"), ("price", "FP32"),
    ]  # fmt: skip
    outputs = {column["name"]: column["datatype"] for column in metadata["outputs"]}
    assert outputs == {"name": "BYTES", "value": "FP32"}
    inputs = [tensor("price", [4.5, 1]), tensor("kind", ["bcd", None], "BYTES")]
    answer = old_export.post("/v2/models/old_export/infer", {"inputs": inputs}).json()
    assert {column["name"]: column["data"] for column in answer["outputs"]} == {
        "value": [12.0, 2.0],
        "name": ["BCD", ""],
    }


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
