"""Check of a model for TPUs: the TPU's own compiler compiles it, without a TPU."""
