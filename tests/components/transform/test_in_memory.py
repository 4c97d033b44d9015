"""Transform without Beam's runner writes the same files as with it."""

import logging
import threading

import numpy as np
import pytest
import tensorflow as tf

from components.beam import in_memory_runner
from components.transform import decoded_ahead, executor
from components.transform.decoded_ahead import DecodedAhead
from tests.components.transform.conftest import transform, write_inputs

SCHEMA = """
feature { name: "number" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "pair" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 2 } } }
feature { name: "whole" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "group" type: BYTES presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "words" type: BYTES }
feature { name: "gaps" type: FLOAT }
feature { name: "unused" type: BYTES }
"""
MODULE = """
import tensorflow as tf
import tensorflow_transform as tft

def numbers(inputs):
    number, pair, group = inputs["number"], inputs["pair"], inputs["group"][:, 0]
    everywhere = tf.zeros_like(number)
    scaled = tft.scale_to_0_1(tft.scale_to_z_score(number))  # two phases
    mean, variance = tft.mean(pair, reduce_instance_dims=False), tft.var(number)
    return {
        "scaled": scaled,
        "third_phase": tft.scale_by_min_max(scaled * scaled, -1.0, 3.0),
        "constants": everywhere + tf.reduce_sum(mean) + variance + tf.cast(tft.size(pair), tf.float32),
        "gaussian": tft.scale_to_gaussian(number),
        "covariance": everywhere + tf.reduce_sum(tft.covariance(pair, tf.float32)),
        "pca": pair @ tft.pca(pair, 1, tf.float32),
        "bucket": tft.bucketize(number, 5, epsilon=0.03),
        "of_group": tft.scale_to_z_score_per_key(number[:, 0], group),
        "range_of_group": tft.scale_by_min_max_per_key(number[:, 0], group),
        "bucket_of_group": tft.bucketize_per_key(number[:, 0], group, 3),
        "gaps": tft.scale_to_z_score(inputs["gaps"]),
        "interpolated": tft.apply_buckets_with_interpolation(
            number, tft.quantiles(number, 4, 0.01)),
    }

def words(inputs):
    words, group = inputs["words"], inputs["group"]
    weights = tf.abs(inputs["number"][:, 0]) + 1.0
    label, zeros = inputs["whole"][:, 0] % 2, tf.zeros_like(inputs["whole"])
    tokens = tft.compute_and_apply_vocabulary(words, vocab_filename="all", num_oov_buckets=1)
    ids, relevance = tft.tfidf(tokens, 60)
    return {
        "tokens": tokens,
        "top": tft.compute_and_apply_vocabulary(words, top_k=3, frequency_threshold=2),
        "shuffled": tft.compute_and_apply_vocabulary(group, fingerprint_shuffle=True, store_frequency=True),
        "weighted": tft.compute_and_apply_vocabulary(group[:, 0], weights=tf.round(weights)),
        "informative": tft.compute_and_apply_vocabulary(group[:, 0], labels=label, top_k=3),
        "numbers": tft.compute_and_apply_vocabulary(inputs["whole"], top_k=4),
        "covered": tft.compute_and_apply_vocabulary(
            words, top_k=2, coverage_top_k=1, key_fn=lambda word: word[:1]),
        "reserved": tft.compute_and_apply_vocabulary(group, reserved_tokens=["first", "second"]),
        "compressed": tft.compute_and_apply_vocabulary(
            group, file_format="tfrecord_gzip", vocab_filename="packed"),
        "ids": ids,
        "relevance": relevance,
        "hashed": tft.hash_strings(group, 7),
        "ragged": tf.RaggedTensor.from_sparse(words),
        "frequency": zeros + tft.histogram(group[:, 0], categorical=True)[0][0],
        "per_key": zeros + tft.count_per_key(group[:, 0])[1][0],
        "again": tft.compute_and_apply_vocabulary(  # a second phase
            tokens.with_values(tf.strings.as_string(tokens.values))),
    }

def little(inputs):
    return {
        "scaled": tft.scale_to_z_score(inputs["number"]),
        "word": tft.compute_and_apply_vocabulary(inputs["words"], vocab_filename="all"),
    }

def nothing_to_analyze(inputs):
    return {"doubled": 2 * inputs["number"], "words": inputs["words"]}
"""


def write_examples(folder, sizes, seed):
    """Writes a file of examples for each size."""
    draw = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for index, size in enumerate(sizes):
        path = folder / f"data-{index:05d}-of-{len(sizes):05d}.gz"
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for _ in range(size):
                writer.write(example(draw).SerializeToString())


def example(draw):
    words = [f"{letter}{draw.integers(5)}".encode() for letter in "abc"[: draw.integers(4)]]
    found = tf.train.Example()
    values = found.features.feature
    values["number"].float_list.value[:] = [draw.normal()]
    values["pair"].float_list.value[:] = draw.normal(size=2)
    values["whole"].int64_list.value[:] = [draw.integers(9)]
    values["group"].bytes_list.value[:] = [b"ABCDE"[(at := int(draw.integers(5))) : at + 1]]
    values["words"].bytes_list.value[:] = words
    values["gaps"].float_list.value[:] = draw.normal(size=draw.integers(2))
    values["unused"].bytes_list.value[:] = [b"x" * 9]
    return found


def transform_both(folder, name, function, caches=(None, None)):
    """Transforms the examples in a folder, and returns the files that do not contain a random path."""
    transform(folder, name, f"module_of_many_analyzers.{function}", '["train", "eval"]', caches=caches)
    return {
        str(path.relative_to(folder / name)): path.read_bytes()
        for path in (folder / name).rglob("*")
        if path.is_file() and path.name not in ("saved_model.pb", "fingerprint.pb")
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with examples of two splits, a schema and a module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    write_examples(tmp_path / "examples" / "Split-train", (700, 1, 500), seed=3)
    write_examples(tmp_path / "examples" / "Split-eval", (40,), seed=4)
    write_inputs(tmp_path, SCHEMA, "module_of_many_analyzers", MODULE)
    return tmp_path


def by_beam(monkeypatch, *arguments):
    """Returns the files of a transformation by Beam's runner."""
    with monkeypatch.context() as patch:
        patch.setattr(in_memory_runner, "install", lambda pipeline: False)
        return transform_both(*arguments)


@pytest.mark.more
@pytest.mark.parametrize("function", ["numbers", "words", "nothing_to_analyze"])
def test_files_are_those_of_beams_runner(folder, function, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, in_memory_runner.__name__)
    ours = transform_both(folder, "ours", function)
    assert "Using Beam's FnApiRunner" not in caplog.text
    assert ours == by_beam(monkeypatch, folder, "beam", function)
    assert len([name for name in ours if "Split-train" in name]) == 3


@pytest.mark.more
@pytest.mark.parametrize(("max_file_bytes", "num_files"), [(1 << 20, 4), (100, None)])
def test_small_files_are_decoded_ahead_once(folder, monkeypatch, max_file_bytes, num_files):
    made = []

    def make(schema, paths):
        made.append(DecodedAhead(schema, paths))
        assert len(paths) == len(set(paths)) == num_files
        assert b"unused" not in schema
        return made[-1]

    monkeypatch.setattr(decoded_ahead, "MAX_FILE_BYTES", max_file_bytes)
    monkeypatch.setattr(executor, "DecodedAhead", make)
    assert len(transform_both(folder, "ours", "nothing_to_analyze")) > 4
    assert len(made) == (num_files is not None)
    assert not any(thread.name == "decode ahead" for thread in threading.enumerate())


@pytest.mark.more
def test_a_cache_is_written_and_read(folder, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, in_memory_runner.__name__)
    expected = by_beam(monkeypatch, folder, "beam", "little")
    assert transform_both(folder, "writes", "little", (None, "cache")) == expected
    assert "Using Beam's FnApiRunner" not in caplog.text
    assert len(list((folder / "cache").rglob("*.gz"))) >= 2
    # Beam's source of the cache's files is a splittable DoFn.
    assert transform_both(folder, "reads", "little", ("cache", "other cache")) == expected
    assert "Using Beam's FnApiRunner, because of OptimizeRun/ReadCache" in caplog.text
