import itertools

import pytest
import tensorflow as tf

from pipelines.artifacts.curves import MAX_POINTS, read_curves


def write_v1(folder, tag, values):
    """Writes a curve as Estimators do: a simple value."""
    from tensorboard.compat.proto import event_pb2, summary_pb2

    folder.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(folder / "events.out.tfevents.1.vm")) as writer:
        for step, value in values:
            summary = summary_pb2.Summary(value=[{"tag": tag, "simple_value": value}])
            writer.write(event_pb2.Event(step=step, summary=summary).SerializeToString())


def test_curves_of_an_estimator_and_its_evaluation(tmp_path):
    base = tmp_path / "Format-Serving"
    write_v1(base, "loss", [(1, 0.5), (101, 0.25), (201, float("nan"))])
    write_v1(base / "eval_tabular", "loss", [(101, 0.75), (201, 0.625)])
    found = read_curves(str(tmp_path))
    assert found == {
        "num_curves": 2,
        "curves": [
            {"run": "", "tag": "loss", "points": [[1, 0.5], [101, 0.25]]},
            {"run": "eval_tabular", "tag": "loss", "points": [[101, 0.75], [201, 0.625]]},
        ],
    }


def test_curves_of_keras(tmp_path):
    """Keras' callback writes tensors, in `train` and `validation`."""
    for run, values in (("train", (0.5, 0.25)), ("validation", (0.75, 0.5))):
        with tf.summary.create_file_writer(str(tmp_path / "logs" / run)).as_default():
            for step, value in enumerate(values):
                tf.summary.scalar("epoch_loss", value, step=step)
                tf.summary.text("epoch_note", "no scalar", step=step)
    found = read_curves(str(tmp_path))["curves"]
    assert [(one["run"], one["points"]) for one in found] == [
        ("train", [[0, 0.5], [1, 0.25]]), ("validation", [[0, 0.75], [1, 0.5]]),
    ]  # fmt: skip


@pytest.mark.more
def test_a_long_curve_keeps_its_ends(tmp_path):
    write_v1(tmp_path, "loss", [(step, 1 / step) for step in range(1, 5_001)])
    ((points,),) = ([one["points"]] for one in read_curves(str(tmp_path))["curves"])
    assert len(points) == MAX_POINTS
    assert (points[0][0], points[-1][0]) == (1, 5_000)
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(points)]
    assert (min(gaps), max(gaps)) == (16, 17)


def test_a_file_that_was_cut_off_counts_up_to_there(tmp_path, caplog):
    write_v1(tmp_path, "loss", [(1, 0.5), (2, 0.25), (3, 0.125)])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    found = read_curves(str(tmp_path))["curves"][0]["points"]
    assert found == [[1, 0.5], [2, 0.25]]
    assert "is cut off" in caplog.text


def test_no_event_files(tmp_path):
    assert read_curves(str(tmp_path)) == {"curves": [], "num_curves": 0}


@pytest.mark.parametrize("name", ["eval", "train"])
def test_a_lone_folder_of_a_run_keeps_its_name(tmp_path, name):
    write_v1(tmp_path / name, "loss", [(1, 0.5)])
    assert read_curves(str(tmp_path))["curves"][0]["run"] == name
