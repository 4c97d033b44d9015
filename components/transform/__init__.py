"""TFX's Transform, with reproducible results on every engine."""
