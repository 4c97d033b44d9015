"""Configuration of a pipeline: one file for each section, and the grammar of spans."""
