"""Beam: workers, record files, compressed values and an ordered way to distribute elements."""
