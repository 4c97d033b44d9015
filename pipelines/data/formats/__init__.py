"""Formats of numbers and times in text cells, here and in the served model.

A format is data: regular expressions that RE2 runs, which pyarrow and TensorFlow both use. Both read
a cell in the same steps, so the served model reads the same values as the profile.
"""
