"""Exported models whose predictions are computed by hand: the sum of x, n, and 1 for Oslo."""

import shutil

import tensorflow as tf

import estimator_core as est
from components.pusher.provenance import Provenance, write_provenance
from components.tfx.decision_file import DECISION_FILE
from pipelines.tabular.decision import Decision, deciding, write_decision

COLUMNS = {
    "x": tf.io.VarLenFeature(tf.float32),
    "n": tf.io.VarLenFeature(tf.int64),
    "city": tf.io.VarLenFeature(tf.string),
}


def dense(column, default):
    if isinstance(column, tf.SparseTensor):
        column = tf.SparseTensor(column.indices, column.values, [column.dense_shape[0], 1])
        column = tf.sparse.to_dense(column, default)
    return tf.reshape(column, [-1, 1])


def model_fn(features, labels, mode, params):
    is_oslo = tf.cast(tf.equal(dense(features["city"], ""), "Oslo"), tf.float32)
    logits = dense(features["x"], 0.0) + tf.cast(dense(features["n"], 0), tf.float32) + is_oslo
    step = tf.compat.v1.train.get_or_create_global_step()
    return params["head"].create_estimator_spec(
        features,
        mode,
        logits * params["factor"],
        labels,
        train_op_fn=lambda loss: tf.compat.v1.assign_add(step, 1),
    )


THRESHOLD = 0.9
"""Decision threshold of the model `decided`."""


def export(folder, head, factor=1.0, receiver_fn=None, threshold=None):
    """Exports the model, and returns its folder."""
    estimator = est.Estimator(
        model_fn, model_dir=str(folder / "model"), params={"head": head, "factor": factor}
    )

    def input_fn():
        columns = {"x": [[1.0]], "n": [[1]], "city": [["Oslo"]]}
        label = ["yes"] if isinstance(head, est.BinaryClassHead) else [1.0]
        return tf.data.Dataset.from_tensors((columns, tf.constant([label])))

    estimator.train(input_fn, steps=1)
    receiver_fn = receiver_fn or est.export.build_rows_serving_input_receiver_fn(COLUMNS)
    if threshold is None:
        return estimator.export_saved_model(str(folder / "export"), receiver_fn).decode()
    file = folder / DECISION_FILE
    write_decision(str(file), Decision(threshold, "yes", "f1"))
    decided = deciding(estimator, threshold)
    return decided.export_saved_model(
        str(folder / "export"), receiver_fn, assets_extra={DECISION_FILE: str(file)}
    ).decode()


def classifier():
    return est.BinaryClassHead(label_vocabulary=["no", "yes"])


def export_by_name(name, folder):
    """Exports one of the models, and returns its folder."""
    raw = {name: tf.TensorSpec([None], kind.dtype) for name, kind in COLUMNS.items()}
    needed = {name: tf.io.FixedLenFeature([1], kind.dtype) for name, kind in COLUMNS.items()}
    head = est.RegressionHead()
    if name == "classifier":
        return export(folder, classifier())
    if name == "negated":
        return export(folder, classifier(), factor=-1.0)
    if name == "decided":
        return export(folder, classifier(), threshold=THRESHOLD)
    if name == "regressor":
        return export(folder, head)
    if name == "raw":
        return export(folder, head, receiver_fn=est.export.build_raw_serving_input_receiver_fn(raw))
    spec, head = {"examples only": (COLUMNS, classifier()), "needed": (needed, head)}[name]
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(spec)
    return export(folder, head, receiver_fn=receiver_fn)


def push(exported, root, version):
    """Pushes an exported model into a root as a version, in one step; returns the root."""
    partial = root / f"partial-{version}"
    shutil.copytree(exported, partial)
    write_provenance(Provenance(f"run-{version}", "m"), str(partial), str(root / "serving"))
    (root / "serving").mkdir(exist_ok=True)
    partial.rename(root / "serving" / str(version))
    return root


def keep_statistics(root, version, frame):
    """Writes TFDV's statistics of a table as those of the training data of a version."""
    import tensorflow_data_validation as tfdv

    folder = root / "kept" / f"run-{version}" / "statistics" / "Split-train"
    folder.mkdir(parents=True)
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=100)
    found = tfdv.generate_statistics_from_dataframe(frame, options)
    (folder / "FeatureStats.pb").write_bytes(found.SerializeToString())
    return found
