import json

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2
from tfx.types import artifact_utils, standard_artifacts

from components.example_validator.executor import Executor

ERROR, WARNING = anomalies_pb2.AnomalyInfo.ERROR, anomalies_pb2.AnomalyInfo.WARNING

SCHEMA = """
feature { name: "color" type: BYTES presence { min_count: 1 } value_count { min: 1 max: 1 } }
feature { name: "tips" type: BYTES domain: "tips" presence { min_count: 1 } value_count { min: 1 max: 1 } }
string_domain { name: "tips" value: "no" value: "yes" }
"""


def statistics(color, tips):
    """Returns statistics as TFDV has them of a split: {value: count}, or {} for no values."""
    result = statistics_pb2.DatasetFeatureStatisticsList()
    dataset = result.datasets.add(num_examples=sum(tips.values()))
    for name, counts in {"color": color, "tips": tips}.items():
        feature = dataset.features.add(type=statistics_pb2.FeatureNameStatistics.STRING)
        feature.path.step.append(name)
        stats = feature.string_stats
        common = stats.common_stats
        common.num_non_missing = common.tot_num_values = sum(counts.values())
        common.num_missing = dataset.num_examples - common.num_non_missing
        if counts:
            common.min_num_values = common.max_num_values = common.avg_num_values = 1
        stats.unique = len(counts)
        for label, count in counts.items():
            stats.rank_histogram.buckets.add(label=label, sample_count=count)
            stats.top_values.add(value=label, frequency=count)
    return result


@pytest.fixture
def run(tmp_path, make_artifact):
    """Returns a function that runs the executor; gives {split: {column: severity}} and the artifact."""

    def artifact(name, splits):
        result = make_artifact(standard_artifacts.ExampleStatistics, name)
        result.split_names = artifact_utils.encode_split_names(list(splits))
        result.span = 7
        for split, content in splits.items():
            folder = tmp_path / name / f"Split-{split}"
            folder.mkdir(exist_ok=True)
            (folder / "FeatureStats.pb").write_bytes(content.SerializeToString())
        return result

    def run(now, before=None, **settings):
        schema = make_artifact(standard_artifacts.Schema)
        parsed = text_format.Parse(SCHEMA, schema_pb2.Schema())
        (tmp_path / "schema" / "schema.pbtxt").write_text(text_format.MessageToString(parsed))
        anomalies = make_artifact(standard_artifacts.ExampleAnomalies)
        inputs = {"statistics": [artifact("now", now)], "schema": [schema]}
        if before is not None:
            inputs["baseline_statistics"] = [artifact("before", before)] if before else []
        result = Executor().Do(inputs, {"anomalies": [anomalies]}, settings)
        assert list(result.output_artifacts["anomalies"].artifacts) == [anomalies.mlmd_artifact]
        severities = {}
        for split in artifact_utils.decode_split_names(anomalies.split_names):
            file = tmp_path / "exampleanomalies" / f"Split-{split}" / "SchemaDiff.pb"
            found = anomalies_pb2.Anomalies.FromString(file.read_bytes()).anomaly_info
            severities[split] = {name: info.severity for name, info in found.items()}
        return severities, anomalies

    return run


GOOD = statistics({"red": 500, "blue": 500}, {"no": 600, "yes": 400})


def test_data_that_fit_are_blessed(run):
    found, artifact = run({"train": GOOD, "eval": GOOD}, {"train": GOOD, "eval": GOOD})
    assert found == {"train": {}, "eval": {}}
    assert artifact.get_json_value_custom_property("blessed") == {"train": 1, "eval": 1}
    assert artifact.span == 7
    # Stock TFX excludes no splits with "null", and before the first push there is no baseline.
    assert run({"train": GOOD}, {}, exclude_splits="null")[0] == {"train": {}}


def test_a_column_that_is_empty_everywhere_is_an_error_and_in_one_split_a_warning(run):
    empty = statistics({}, {"no": 600, "yes": 400})
    found, artifact = run({"train": empty, "eval": empty})
    assert found == {"train": {"color": ERROR}, "eval": {"color": ERROR}}
    assert artifact.get_json_value_custom_property("blessed") == {"train": 0, "eval": 0}
    rare = statistics({"red": 2}, {"no": 600, "yes": 400})
    found, _ = run({"train": rare, "eval": statistics({}, {"no": 60, "yes": 40})})
    assert found == {"train": {}, "eval": {"color": WARNING}}


def test_each_split_is_compared_with_its_own(run):
    moved = statistics({"red": 780, "blue": 220}, {"no": 600, "yes": 400})
    found, _ = run({"train": moved, "eval": moved}, {"train": GOOD, "eval": moved})
    assert found == {"train": {"color": WARNING}, "eval": {}}
    found, _ = run({"train": moved, "new": moved}, {"train": moved})
    assert found == {"train": {}, "new": {}}


def test_the_settings_are_heeded(run):
    moved = statistics({"red": 780, "blue": 220}, {"no": 600, "yes": 300, "perhaps": 100})
    splits = ({"train": moved}, {"train": GOOD})
    assert run(*splits)[0] == {"train": {"color": WARNING, "tips": WARNING}}
    limits = json.dumps({"l_infinity": 0.35})
    assert run(*splits, limits=limits)[0] == {"train": {"tips": WARNING}}
    assert run(*splits, limits=json.dumps({"breaking": 0.25}))[0]["train"]["color"] == ERROR
    assert run(*splits, label="tips")[0] == {"train": {"color": WARNING, "tips": ERROR}}
    assert run(*splits, moving='["color"]')[0] == {"train": {"tips": WARNING}}
    assert run(*splits, exclude_splits='["train"]')[0] == {}
    colors = {"red": 500, "blue": 500}
    rare = statistics(colors, {"no": 999, "yes": 1})  # which the schema has
    splits = ({"train": rare}, {"train": statistics(colors, {"no": 1000})})
    assert run(*splits, fixed_schema=0)[0] == {"train": {"tips": WARNING}}
    assert run(*splits, fixed_schema=1)[0] == {"train": {}}
