"""TFX: fixes for it, its paths, and faster imports."""
