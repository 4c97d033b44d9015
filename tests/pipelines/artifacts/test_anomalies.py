import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.types.standard_artifacts import ExampleAnomalies

from pipelines.artifacts.anomalies import Anomaly, read_anomalies, read_drift

ERROR, WARNING = anomalies_pb2.AnomalyInfo.ERROR, anomalies_pb2.AnomalyInfo.WARNING


@pytest.fixture
def artifact(tmp_path):
    """Returns a function that writes an artifact: {split: {feature: (short, long, severity)}}."""

    def write(**splits):
        result = ExampleAnomalies()
        result.uri = str(tmp_path)
        result.splits = list(splits)
        for split, features in splits.items():
            proto = anomalies_pb2.Anomalies()
            for name, (short, long, severity) in features.items():
                proto.anomaly_info[name].severity = severity
                proto.anomaly_info[name].short_description = short
                proto.anomaly_info[name].description = long
            folder = tmp_path / f"Split-{split}"
            folder.mkdir()
            (folder / "SchemaDiff.pb").write_bytes(proto.SerializeToString())
        return result

    return write


def test_white_space_at_the_end_is_left_out(artifact):
    (found,) = read_anomalies(artifact(train={"city": ("New", "Values are new: A (~5%). ", WARNING)}))
    assert found.text == "train split, column 'city': Values are new: A (~5%)."


def test_each_feature_of_each_split_is_one_sentence(artifact):
    found = read_anomalies(
        artifact(
            train={"fare": ("Out of range", "Values above 100.", ERROR), "age": ("Missing", "", WARNING)},
            eval={"fare": ("Out of range", "Values above 99.", WARNING)},
        )
    )
    assert found == [
        Anomaly("eval split, column 'fare': Values above 99.", False, False, "eval", "fare"),
        Anomaly("train split, column 'age': Missing.", False, False, "train", "age"),
        Anomaly("train split, column 'fare': Values above 100.", True, False, "train", "fare"),
    ]


def test_data_that_fit_the_schema_and_splits_of_another_artifact_give_none(artifact, tmp_path):
    found = artifact(train={}, eval={})
    (tmp_path / "Split-old").mkdir()
    (tmp_path / "Split-old" / "SchemaDiff.pb").write_bytes(b"not a proto at all")
    assert read_anomalies(found) == []


def test_values_that_have_moved_are_drift(artifact, tmp_path):
    found = artifact(train={"fare": ("Drift", "New values. Drifted.", WARNING)})
    file = tmp_path / "Split-train" / "SchemaDiff.pb"
    proto = anomalies_pb2.Anomalies.FromString(file.read_bytes())
    kinds = ("ENUM_TYPE_UNEXPECTED_STRING_VALUES", "COMPARATOR_L_INFTY_HIGH")
    for names, is_drift in ((kinds[:1], False), (kinds, True), (kinds[1:], True)):
        del proto.anomaly_info["fare"].reason[:]
        for name in names:
            proto.anomaly_info["fare"].reason.add(type=name)
        file.write_bytes(proto.SerializeToString())
        assert [anomaly.is_drift for anomaly in read_anomalies(found)] == [is_drift]


def test_how_far_the_columns_have_moved(artifact, tmp_path):
    made = artifact(train={}, eval={})
    proto = anomalies_pb2.Anomalies()
    info = proto.drift_skew_info.add()
    info.path.step.append("fare")
    kinds = anomalies_pb2.DriftSkewInfo.Measurement
    info.drift_measurements.add(type=kinds.JENSEN_SHANNON_DIVERGENCE, value=0.25, threshold=0.02)
    (tmp_path / "Split-train" / "SchemaDiff.pb").write_bytes(proto.SerializeToString())
    measured = {"measure": "jensen_shannon_divergence", "value": 0.25, "limit": 0.02}
    assert read_drift(made) == [{"split": "train", "column": "fare", **measured}]
