"""TFX: what of it needs mending, its paths, and faster imports."""
