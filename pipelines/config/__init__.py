"""The configuration: one file for each section, and the grammar of spans."""
