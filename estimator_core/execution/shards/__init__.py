"""A global batch in shards: copies of the model, their inputs, sums and optimizers."""
