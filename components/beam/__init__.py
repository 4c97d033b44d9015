"""Beam: workers, record files, and elements of a size that pays."""
