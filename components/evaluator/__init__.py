"""Evaluates a model per slice and gives the verdict: blessed or not."""
