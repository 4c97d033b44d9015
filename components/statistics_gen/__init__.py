"""TFX's StatisticsGen, which reads tf.Examples in large batches."""
