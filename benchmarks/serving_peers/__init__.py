"""Servers of other projects around the SavedModel of `benchmarks/serving.py`."""
