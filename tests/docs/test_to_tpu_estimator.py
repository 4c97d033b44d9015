"""Runs the text of docs/to-tpu-estimator.md."""

import pytest
import tensorflow as tf

import estimator_core as estimator
from tests.docs.markdown import blocks, read

(CODE,) = blocks(read("docs/to-tpu-estimator.md"), "python")


@pytest.mark.more
def test_a_keras_model_on_shards(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(CODE, names)
    assert names["metrics"]["accuracy"] > 0.9
    rows = names["tpu_estimator"].predict(lambda: names["input_fn"]().take(2))
    assert len(list(rows)) == 64
    receiver_fn = estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.TensorSpec([None, 4], tf.float32)}
    )
    loaded = tf.saved_model.load(
        names["tpu_estimator"].export_saved_model(str(tmp_path / "export"), receiver_fn)
    )
    (served,) = loaded.signatures["serving_default"](x=tf.eye(4)).values()
    assert served.shape == [4, 3]
    # The Estimator that it came from continues where the shards stopped.
    plain = names["plain"].train(names["input_fn"], steps=1)
    assert plain.latest_checkpoint().endswith("-101")
