"""Sections of a report: each file prepares the values for its template."""
