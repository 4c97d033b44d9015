"""Decisions before anything is written: the inputs of a run, its plan, and the plan of its data."""
