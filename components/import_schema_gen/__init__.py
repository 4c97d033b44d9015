"""Imports a schema file into the pipeline, and checks its content."""
