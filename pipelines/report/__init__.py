"""HTML pages of a root: a report of each run, and an index of all runs."""
