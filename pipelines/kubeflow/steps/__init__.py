"""Steps of the compiled pipeline: each runs in a container of its own."""
