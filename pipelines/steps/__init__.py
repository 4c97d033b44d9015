"""Steps: one way to run the components of any TFX pipeline, without a metadata store.

A step's name is a hash of everything that its outputs depend on. They lie in a folder of that name, so an
unchanged step is one whose folder exists.
"""
