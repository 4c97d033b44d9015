"""The electricity that a house needs: a Keras model, trained by its own `fit` in a `run_fn`."""
