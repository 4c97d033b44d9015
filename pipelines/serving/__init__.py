"""Predictions by pushed models: in Python, for files, and over HTTP."""
