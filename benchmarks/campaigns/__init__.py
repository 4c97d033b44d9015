"""Campaigns of hours: many runs of the real commands, with faults, and what came of each."""
