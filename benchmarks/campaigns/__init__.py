"""Campaigns of several hours: many runs of the real commands, with faults, and their outcomes."""
