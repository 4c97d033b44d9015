"""Building a `Program` from a model_fn and its inputs, and the loops that run it."""
