"""The entry of Transform's `custom_config` that names columns to be read as matrices."""

PACKS_KEY = "components.transform.packs"
"""Key of a dict of lists of columns, by the name of the matrix, see `estimator_core.export.parse_packed`."""
