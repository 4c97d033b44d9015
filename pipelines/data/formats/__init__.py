"""How cells of text are read as numbers and times, here and in the served model.

A format is data: regular expressions that RE2 runs, which pyarrow and TensorFlow both do. Both read
a cell by the same steps, so that the model that is served reads what the profile read.
"""
