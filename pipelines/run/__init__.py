"""One run of a pipeline: its execution, its record, and what became of its model."""
