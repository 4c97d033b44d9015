"""Formats of numbers and times in text cells, here and in the served model.

A format is data: regular expressions of RE2, which pyarrow and TensorFlow both use (they mean the same to
Python's `re`). Both read a cell in the same steps, so the served model reads the same values as the profile.
"""
