"""TFX's artifacts as plain values."""
