"""CSV files to tf.Examples: stock TFX for now."""
