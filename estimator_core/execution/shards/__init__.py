"""Dividing a global batch into shards: copies of the model, their inputs, sums and optimizers."""
