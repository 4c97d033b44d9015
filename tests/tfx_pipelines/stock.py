"""A team's own TFX pipeline, of TFX's components only; the file is also the module file of its Trainer."""

import os

import tensorflow as tf
from tfx import v1 as tfx

FEATURES = {name: tf.io.FixedLenFeature([1], tf.float32) for name in ("x", "y")}


def run_fn(args):
    """Trains y = w * x + b, and exports it."""

    def parse(serialized):
        columns = tf.io.parse_example(serialized, FEATURES)
        return columns["x"], columns["y"]

    files = tf.io.gfile.glob(args.train_files)
    rows = tf.data.TFRecordDataset(files, "GZIP").repeat().batch(32).map(parse)
    model = tf.keras.Sequential([tf.keras.Input([1]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(rows, steps_per_epoch=args.train_steps)
    model.export(args.serving_model_dir)


def create_pipeline(folder, pushed="pushed"):
    """Returns a pipeline of the CSV files in `folder/numbers`, which pushes to `folder/PUSHED`."""
    example_gen = tfx.components.CsvExampleGen(input_base=os.path.join(folder, "numbers"))
    statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = tfx.components.SchemaGen(statistics=statistics_gen.outputs["statistics"])
    trainer = tfx.components.Trainer(
        module_file=os.path.abspath(__file__),
        examples=example_gen.outputs["examples"],
        schema=schema_gen.outputs["schema"],
        train_args=tfx.proto.TrainArgs(num_steps=100),
        eval_args=tfx.proto.EvalArgs(num_steps=1),
    )
    pushed = tfx.proto.PushDestination.Filesystem(base_directory=os.path.join(folder, pushed))
    pusher = tfx.components.Pusher(
        model=trainer.outputs["model"], push_destination=tfx.proto.PushDestination(filesystem=pushed)
    )
    return tfx.dsl.Pipeline(
        pipeline_name="team",
        pipeline_root=os.path.join(folder, "elsewhere"),
        components=[example_gen, statistics_gen, schema_gen, trainer, pusher],
        enable_cache=True,
    )
