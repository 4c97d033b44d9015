"""ML Metadata of a root: its place, its connection, and the removal of unfinished executions."""
