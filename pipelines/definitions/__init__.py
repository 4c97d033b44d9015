"""Pipelines: one file per shape."""
