"""The folder of a pipeline: records, history, lock, versions, schema, metadata and lineage of its runs."""

from pipelines.root.root import Root

__all__ = ["Root"]
