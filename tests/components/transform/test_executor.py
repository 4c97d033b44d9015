import sys

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from tfx.components.transform import executor as stock

from components.beam import record_files
from components.beam.processes import worker_command
from components.transform.executor import Executor
from tests.components.conftest import example
from tests.components.transform.conftest import transform, write_inputs

NUM_ROWS = 9_000
SCHEMA = """feature { name: "x" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }"""
MODULE = """
import tensorflow as tf
import tensorflow_transform as tft

def preprocessing_fn(inputs):
    rows = tf.shape(inputs["x"])[0]
    everywhere = tf.zeros_like(inputs["x"])
    return {
        "x": inputs["x"],
        "largest": everywhere + tf.cast(tft.max(rows), tf.float32),
        "smallest": everywhere + tf.cast(tft.min(rows), tf.float32),
        "batches": everywhere + tft.sum(1 / tf.cast(rows, tf.float32) + 0 * inputs["x"]),
        "sum": everywhere + tft.sum(tf.exp(4 * inputs["x"])),
        "score": tft.scale_to_z_score(inputs["x"]),
        "bucket": tft.bucketize(inputs["x"], 7, epsilon=0.02),
        "word": tft.compute_and_apply_vocabulary(tf.strings.as_string(inputs["x"], precision=0)),
    }
"""
# These take turns with parts of the files, as the workers of an engine do.
THREE_WORKERS = ["--direct_num_workers=3", "--direct_running_mode=multi_threading"]


def write_examples(folder, num_files=1):
    """Writes examples into files and returns their values in the order of the files."""
    values = np.random.default_rng(5).normal(size=(num_files, NUM_ROWS)).astype(np.float32)
    folder.mkdir(parents=True)
    for number, part in enumerate(values):
        path = folder / f"data-{number:05d}-of-{num_files:05d}.gz"
        record_files.write_records(str(path), (example({"x": value}) for value in part))
    return values.ravel()


def transform_train(folder, name, beam_args):
    """Transforms the examples in a folder and returns the folder of the new ones, and the graph's."""
    # With statistics, more steps read the batches.
    function = "module_of_batches.preprocessing_fn"
    transform(folder, name, function, '["train"]', beam_args, statistics=bool(beam_args))
    transformed = folder / name / "transformed"
    assert [path.name for path in transformed.iterdir()] == ["Split-train"]
    return transformed / "Split-train", str(folder / name / "graph")


def read(file, graph):
    """Returns the features of all examples of a file, in their order."""
    spec = tft.TFTransformOutput(graph).transformed_feature_spec()
    (records,) = tf.data.TFRecordDataset(str(file), "GZIP").batch(NUM_ROWS + 1)
    parsed = tf.io.parse_example(records, spec)
    return {name: values.numpy().ravel() for name, values in parsed.items()}


@pytest.mark.more
def test_it_reads_batches_of_a_fixed_size_and_keeps_the_order(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    write_inputs(tmp_path, SCHEMA, "module_of_batches", MODULE)
    values = write_examples(tmp_path / "examples" / "Split-train")
    folder, graph = transform_train(tmp_path, "one", [])
    (file,) = folder.iterdir()
    rows = read(file, graph)
    np.testing.assert_array_equal(rows["x"], values)
    # 9,000 rows are a batch of 8,192 and one of 808; batches that Beam tunes have 1,000 rows at most.
    assert rows["largest"][0] == 8_192
    assert rows["smallest"][0] == 808
    assert rows["batches"][0] == pytest.approx(2, rel=1e-5)
    # The scores of the quantiles 1/7, 2/7, ... are those of the standard normal distribution.
    edges = [rows["x"][rows["bucket"] == bucket].max() for bucket in range(6)]
    np.testing.assert_allclose(edges, [-1.07, -0.57, -0.18, 0.18, 0.57, 1.07], atol=0.1)


def test_a_module_file_of_a_runtime_parameter_is_imported_by_a_name_that_workers_know(tmp_path, monkeypatch):
    (tmp_path / "named_at_run_time.py").write_text("")
    received = {}
    monkeypatch.setattr(stock.Executor, "Do", lambda *arguments: received.update(arguments[-1]))
    properties = {"module_file": str(tmp_path / "named_at_run_time.py"), "custom_config": "null"}
    monkeypatch.setattr(sys, "path", [*sys.path])
    Executor(Executor.Context([], str(tmp_path), "1")).Do({}, {}, properties)
    assert (received["module_file"], received["module_path"]) == (None, "named_at_run_time")
    # Beam's workers are started with this process's path.
    assert str(tmp_path) in worker_command()


@pytest.mark.slow
def test_workers_make_no_difference(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    write_inputs(tmp_path, SCHEMA, "module_of_batches", MODULE)
    values = write_examples(tmp_path / "examples" / "Split-train", num_files=4)
    (one, graph), (other, other_graph) = (
        transform_train(tmp_path, name, args) for name, args in (("one", []), ("other", THREE_WORKERS))
    )
    files, others = (sorted(folder.iterdir()) for folder in (one, other))
    assert [file.name for file in files] == [f"transformed_examples-{n:05d}-of-00004.gz" for n in range(4)]
    parts = [read(file, graph) for file in files]
    np.testing.assert_array_equal(np.concatenate([part["x"] for part in parts]), values)
    expected = np.exp(4 * values.astype(np.float64)).sum()
    assert parts[0]["sum"][0] == pytest.approx(expected, rel=1e-4)
    # Sums, quantiles and vocabulary are in the examples: with their bytes, all of these are the same.
    assert [file.read_bytes() for file in others] == [file.read_bytes() for file in files]
    assert read(others[3], other_graph)["sum"][0] == parts[0]["sum"][0]
