"""One run of a pipeline: its execution, its record, and the outcome of its push."""
