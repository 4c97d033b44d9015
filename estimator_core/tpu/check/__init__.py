"""Would a model run on a TPU? The TPU's own compiler answers, without a TPU."""
