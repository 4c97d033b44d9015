"""TFX's Transform, with the same result each time, on each engine."""
