import sys
import types
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.components.statistics_gen import executor as stock
from tfx.components.util import tfxio_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.types import standard_artifacts

from components.beam import in_memory_runner, record_files
from components.beam.example_batches import ReadBatches
from components.parsed_columns import ParsedColumns, readings
from components.statistics_gen.executor import Executor
from tests.components.conftest import example as make_example

RUNNER = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def example(row):
    features = {"n": row} | ({"word": "odd" if row % 2 else "even"} if row % 3 else {})
    if row > 90:  # a feature that a whole batch may lack
        features["x"] = row / 4
    return make_example(features)


@pytest.fixture
def examples(make_artifact):
    artifact = make_artifact(standard_artifacts.Examples)
    artifact.split_names = '["train", "eval"]'
    for split, rows in (("train", range(80)), ("eval", range(80, 100))):
        folder = Path(artifact.uri) / f"Split-{split}"
        folder.mkdir(parents=True)
        for number in range(2):
            path = record_files.numbered(str(folder / "data"), number, 2)
            record_files.write_records(path, map(example, rows[number::2]))
    return artifact


def statistics(kind, examples, artifact, properties=None):
    context = base_beam_executor.BaseBeamExecutor.Context(beam_pipeline_args=[RUNNER])
    kind(context).Do({"examples": [examples]}, {"statistics": [artifact]}, properties or {})
    found = {}
    for split in ("train", "eval"):
        content = (Path(artifact.uri) / f"Split-{split}" / "FeatureStats.pb").read_bytes()
        (found[split],) = statistics_pb2.DatasetFeatureStatisticsList.FromString(content).datasets
    return found


@pytest.mark.more
def test_statistics_are_those_of_stock(examples, make_artifact, monkeypatch):
    before, read = tfxio_utils.get_split_tfxio, []
    process = ReadBatches.process
    monkeypatch.setattr(ReadBatches, "process", lambda *args: (read.append(args[1]), process(*args))[1])
    ours, stocks, again = (make_artifact(standard_artifacts.ExampleStatistics, name) for name in "abc")
    ours = statistics(Executor, examples, ours)
    assert len(read) == 4
    expected = statistics(stock.Executor, examples, stocks)
    assert len(read) == 4
    assert ours["train"].num_examples == 80
    assert [feature.path.step[0] for feature in ours["eval"].features] == ["n", "word", "x"]
    assert ours == expected
    assert statistics(Executor, examples, again) == ours
    assert tfxio_utils.get_split_tfxio is before


@pytest.mark.more
def test_parsed_columns_are_described_in_each_split(examples, make_artifact, monkeypatch):
    def parse(cells, unit):
        return {"numbers": np.where(pc.equal(cells, "odd"), unit, np.nan)}

    monkeypatch.setitem(sys.modules, "odd", types.SimpleNamespace(parse=parse))
    parsed = ParsedColumns("odd.parse", {"word": {"sevens": 7.0}})
    plain = make_artifact(standard_artifacts.ExampleStatistics, "plain")
    expected = statistics(Executor, examples, plain)
    artifact = make_artifact(standard_artifacts.ExampleStatistics, "parsed")
    found = statistics(Executor, examples, artifact, {"parsed_columns": parsed.to_json()})
    # Of 80 and of 20 rows, those that are odd and no multiple of 3.
    for split, count in (("train", 27), ("eval", 6)):
        word = found[split].features[1]
        values = readings(word)["sevens"]["numbers"].num_stats
        assert (values.common_stats.num_non_missing, values.mean) == (count, 7.0)
        del word.custom_stats[:]
        assert found[split] == expected[split]


@pytest.mark.more
def test_no_batch_is_copied_and_the_columns_are_sorted(examples, make_artifact, monkeypatch):
    def found(name):
        artifact = make_artifact(standard_artifacts.ExampleStatistics, name)
        return [part.SerializeToString() for part in statistics(Executor, examples, artifact).values()]

    run, by_beam = FnApiRunner.run_via_runner_api, []
    monkeypatch.setattr(FnApiRunner, "run_via_runner_api", lambda *a: (by_beam.append(a), run(*a))[1])
    ours = found("ours")
    assert not by_beam
    monkeypatch.setattr(in_memory_runner, "install", lambda pipeline: False)
    assert found("beam") == ours
    assert len(by_beam) == 1
