"""One-command pipelines: from a CSV to a gated, versioned, served model."""
