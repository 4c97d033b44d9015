"""The parts of an evaluation that only a report shows: plots, importances, intervals by slice."""
