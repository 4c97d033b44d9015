"""The work of a container: one step of the compiled pipeline."""
