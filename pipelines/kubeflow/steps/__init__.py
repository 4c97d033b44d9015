"""Steps of the compiled pipeline: each runs in its own container."""
