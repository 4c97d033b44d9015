"""Computes metrics by slice from examples."""
